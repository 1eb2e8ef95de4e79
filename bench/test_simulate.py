"""What a simulation costs: more jobs, more GPUs at the same load, and more load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bench.workloads import philly_like

from themis.cluster.cluster import Cluster
from themis.simulation.simulate import simulate

if TYPE_CHECKING:
    from bench.conftest import Meter

POLICIES = ("fifo", "tiresias", "max_rho", "themis")
ASKING_AGAIN = ("gandiva", "optimus", "slaq", "srtf", "drf", "static", "fsp")
"""Whose rules look at apps anew after a grant or an arrival."""
GPUS = 256
JOBS = 2000


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("jobs", [1000, 2000, 4000, 8000])
def test_more_jobs(meter: Meter, policy: str, jobs: int) -> None:
    play(meter, policy, "jobs", jobs=jobs, gpus=GPUS)


@pytest.mark.parametrize("policy", ASKING_AGAIN)
@pytest.mark.parametrize("jobs", [1000, 2000, 4000, 8000])
def test_more_jobs_that_wait(meter: Meter, policy: str, jobs: int) -> None:
    """At a load at which ever more apps wait."""
    play(meter, policy, "jobs", jobs=jobs, gpus=GPUS, percent=160)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("gpus", [128, 256, 512, 1024])
def test_more_gpus(meter: Meter, policy: str, gpus: int) -> None:
    play(meter, policy, "GPUs", jobs=JOBS, gpus=gpus)


@pytest.mark.parametrize("policy", POLICIES + ASKING_AGAIN)
@pytest.mark.parametrize("percent", [40, 80, 160, 320])
def test_more_load(meter: Meter, policy: str, percent: int) -> None:
    """Beyond 100 % the apps that wait, and so those that each decision looks at, pile up."""
    play(meter, policy, "load", jobs=JOBS, gpus=GPUS, percent=percent)


def play(  # noqa: PLR0913 - a cell of the table
    meter: Meter, policy: str, grows: str, *, jobs: int, gpus: int, percent: int = 80
) -> None:
    workload = philly_like(jobs, gpus, load=percent / 100)
    cluster = Cluster.uniform(machines=gpus // 8, gpus_per_machine=8, racks=gpus // 64)
    fixed, size = {
        "jobs": (f"{gpus} GPUs, load {percent / 100}", jobs),
        "GPUs": (f"{jobs:,} jobs", gpus),
        "load": (f"{jobs:,} jobs, {gpus} GPUs", percent),
    }[grows]
    result = meter.time(
        f"simulate {policy}, {fixed}",
        grows,
        size,
        lambda: simulate(workload, cluster, policy=policy),
    )
    assert result.manifest["job_states"] == {"done": jobs}
    busy = result.usage.get_column("gpus_used").max()
    assert isinstance(busy, int)
    assert busy <= gpus
    meter.note(
        policy=policy,
        jobs=jobs,
        gpus=gpus,
        load_percent=percent,
        most_waiting_apps=result.usage.get_column("waiting_apps").max(),
        us_a_job=1e3 * meter.benchmark.extra_info.get("cpu_ms", 0.0) / jobs,
        auctions=result.auctions.height,
        leases=result.leases.height,
        renewals=int(result.leases.get_column("renewals").sum()),
    )
