"""What a policy in Python costs beside the native one of the same rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from bench.workloads import philly_like

from themis.cluster.cluster import Cluster
from themis.policies.policy import Grant, Policy, PolicyView
from themis.simulation.simulate import simulate

if TYPE_CHECKING:
    from bench.conftest import Meter

GPUS = 256


class Fifo(Policy):
    """The policy `fifo`, for workloads without caps on apps."""

    name = "own-fifo"
    leases = False

    def decide(self, view: PolicyView) -> list[Grant]:
        jobs, grants = view.jobs, list[Grant]()
        for row in np.lexsort((jobs.job, jobs.submit_s)):
            if jobs.gpus[row]:
                continue
            grant = view.claim(jobs.job[row])
            if grant is None:
                break
            grants.append(grant)
        return grants


class Las(Policy):
    """The policy `tiresias`."""

    name = "own-las"

    def decide(self, view: PolicyView) -> list[Grant]:
        order = np.argsort(view.apps.attained_gpu_s, kind="stable")
        return [grant for app in view.apps.app[order] for grant in view.claim_app(app)]


@pytest.mark.parametrize("jobs", [500, 1000, 2000])
@pytest.mark.parametrize(
    ("name", "policy"),
    [("fifo", "fifo"), ("own-fifo", Fifo()), ("tiresias", "tiresias"), ("own-las", Las())],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_own_and_native(meter: Meter, name: str, policy: str | Policy, jobs: int) -> None:
    workload = philly_like(jobs, GPUS)
    cluster = Cluster.uniform(machines=GPUS // 8, gpus_per_machine=8, racks=4)
    result = meter.time(
        f"simulate {name}, {GPUS} GPUs",
        "jobs",
        jobs,
        lambda: simulate(workload, cluster, policy=policy),
        rounds=1,
    )
    assert result.manifest["job_states"] == {"done": jobs}
    native = {"own-fifo": "fifo", "own-las": "tiresias"}.get(name, name)
    twin = simulate(workload, cluster, policy=native)
    assert all(table.equals(twin.frames[kind]) for kind, table in result.frames.items())
