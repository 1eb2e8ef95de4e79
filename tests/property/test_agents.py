"""Agents that decide at random: GPUs and time add up, and hooks tell all that moves."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import Search, workload
from tests.property.test_searches import Case, cases

import themis
from themis.agents.agent import Agent, AppView, Demand, Goal, JobReport, Verdict
from themis.auditing import audit


class Gambler(Agent):
    """Any decision that is allowed, and a count of the GPUs that it has heard of."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - not for secrets
        self.held: dict[str, int] = {}

    def review(self, app: AppView) -> Verdict:
        goals, kills, done = {}, {}, {}
        for job in app.competitors:
            if job.standing in {"done", "dropped"}:
                self.held.pop(job.job_id, None)
                continue
            assert self.held.get(job.job_id, 0) == job.gpus
            chance = self.random.random()
            if chance < 0.1:
                kills[job.job_id] = "bad luck"
            elif chance < 0.2 and job.done_gpu_s > 0:
                done[job.job_id] = "good luck"
            elif job.left_gpu_s > 1e-6 and (chance < 0.7 or job.standing == "at_goal"):
                goals[job.job_id] = self.goal(app, job)
            if job.job_id not in goals and job.standing != "open":
                self.held.pop(job.job_id, None)
        return Verdict(goals, kills, done, "enough" if self.random.random() < 0.02 else None)

    def goal(self, app: AppView, job: JobReport) -> Goal:
        until = job.done_gpu_s + job.left_gpu_s * self.random.choice([0.1, 0.5, 1.0])
        most = max(job.gang_size, job.gpus, job.max_gpus) + self.random.randint(0, 3)
        return Goal(until, max(min(most, app.max_gpus or most), job.gpus))

    def order(self, app: AppView) -> Sequence[str]:
        return self.random.sample([job.job_id for job in app.jobs], len(app.jobs) // 2)

    def expected_gpu_s(self, app: AppView) -> Mapping[str, float]:
        share = self.random.random()
        return {job.job_id: job.work_gpu_s * share for job in app.jobs[::2]}

    def later(self, app: AppView) -> Sequence[Demand]:
        return [Demand(job.work_gpu_s, 1, 0) for job in app.jobs[::3]]

    def on_grant(self, app: AppView, job_id: str, gpus: int) -> None:
        self.held[job_id] = self.held.get(job_id, 0) + gpus
        assert self.held[job_id] == app.job(job_id).gpus

    def on_revoke(self, app: AppView, job_id: str, gpus: int) -> None:
        self.held[job_id] -= gpus
        assert 0 <= self.held[job_id] <= app.job(job_id).gpus


@settings(
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases(), st.integers(0, 99))
def test_random_decisions_add_up(case: Case, seed: int) -> None:
    spec, listed, searches, options = case
    plain = {app: Search("all", search.max_gpus) for app, search in searches.items()}
    load, cluster = workload(listed, searches=plain), themis.Cluster.parse(spec)
    agents = {app: Gambler(seed) for app in searches}
    result = themis.simulate(load, cluster, agents=agents, **options)
    assert audit(result, load, cluster).findings == ()
    asked = dict(load.jobs.select("job_id", "serial_time_s").iter_rows())
    for job, state, done in result.jobs.select("job_id", "state", "work_gpu_s").iter_rows():
        assert -1e-6 <= done <= asked[job] + 1e-6
        assert state in {"done", "killed", "infeasible", "unfinished"}
