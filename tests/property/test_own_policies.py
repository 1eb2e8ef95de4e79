"""Policies that decide at random: every allowed answer is carried out, and the run adds up."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import workload
from tests.property import test_engine, test_searches

import themis
from themis.auditing import audit
from themis.cluster.cluster import Cluster
from themis.policies.policy import Decision, Grant, Policy, PolicyView
from themis.workload.workload import Workload

RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Gambler(Policy):
    """Serves, passes over, rejects and waits as it comes; places jobs by the rule or anyhow."""

    def __init__(self, seed: int, *, leases: bool, strict: bool) -> None:
        self.random = random.Random(seed)  # noqa: S311 - not for secrets
        self.leases = leases
        self.strict = strict

    def decide(self, view: PolicyView) -> Decision:
        grants, rejects = [], {}
        jobs = list(zip(view.jobs.job.tolist(), view.jobs.gpus.tolist(), strict=True))
        self.random.shuffle(jobs)
        by_hand: set[int] = set()
        for job, kept in jobs:
            luck = self.random.random()
            if luck < 0.1 and not self.strict and kept == 0 and not view.holdings(job)[1]:
                rejects[job] = "bad luck"
            elif luck < 0.5:
                grant = view.claim(job, self.random.choice([None, None, 1, 2, 3]))
                grants += [] if grant is None else [grant]
            elif luck < 0.8 and not grants:
                by_hand.add(job)
        grants += self.anyhow(view, by_hand) if not grants else []
        wake = view.now_s + self.random.choice([0.5, 7.0, 1e5])
        return Decision(grants, rejects, wake if self.random.random() < 0.3 else None)

    def anyhow(self, view: PolicyView, chosen: set[int]) -> list[Grant]:
        """Place jobs on random free GPUs, without the engine's help."""
        slots = [slot for slot, gpus in enumerate(view.free.tolist()) for _ in range(gpus)]
        spare = {app: view.spare_gpus(app) for app in view.apps.app.tolist()}
        self.random.shuffle(slots)
        grants = []
        table = view.jobs
        for row, job in enumerate(table.job.tolist()):
            kept, app = int(table.gpus[row]), int(table.app[row])
            least = max(int(table.gang_size[row]) - kept, 1)
            most = min(int(table.max_gpus[row]) - kept, len(slots), spare[app])
            if job in chosen and least <= most:
                taken = [slots.pop() for _ in range(self.random.randint(least, most))]
                spare[app] -= len(taken)
                grants.append(Grant(job, {slot: taken.count(slot) for slot in taken}))
        return grants


def check(load: Workload, cluster: Cluster, policy: Policy, options: Mapping[str, Any]) -> None:
    first, again = (
        themis.simulate(load, cluster, **{**options, "policy": policy}) for _ in range(2)
    )
    report = audit(first, load, cluster)
    assert report.findings == (), report.to_text()
    counts = first.manifest["job_states"]
    assert isinstance(counts, dict)
    assert sum(counts.values()) == load.jobs.height
    for name, table in first.frames.items():
        assert table.equals(again.frames[name]), name


GAMBLERS = st.builds(Gambler, st.integers(0, 999), leases=st.booleans(), strict=st.booleans())


@RUNS
@given(GAMBLERS, test_engine.cases())
def test_random_decisions_on_random_workloads(policy: Gambler, case: test_engine.Case) -> None:
    spec, listed, first, options = case
    check(workload(listed, first=first), Cluster.parse(spec), policy, options)


@RUNS
@given(GAMBLERS, test_searches.cases())
def test_random_decisions_on_searches(policy: Gambler, case: test_searches.Case) -> None:
    spec, listed, searches, options = case
    check(workload(listed, searches=searches), Cluster.parse(spec), policy, options)
