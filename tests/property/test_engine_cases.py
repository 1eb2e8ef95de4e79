"""The kinds of trouble that schedulers of the field have reported, at random, under every policy.

Numbers are those of the cases; illegal answers (E1) and runs that must end (23) are with one's own
policies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import Job, play, spans, workload

import themis
from themis.auditing import audit
from themis.cluster.cluster import Cluster
from themis.metrics.thrash import repeats
from themis.policies.catalogue import POLICIES
from themis.policies.policy import Grant, Policy, PolicyView

RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NAMES = st.sampled_from([policy.name for policy in POLICIES])
EVERY = pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])


@RUNS
@given(
    NAMES,
    st.integers(1, 4),
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(1, 50)), min_size=1, max_size=8
    ),
)
def test_jobs_that_can_never_run_block_nobody(
    policy: str, machines: int, rows: list[tuple[int, int, int]]
) -> None:
    """Case 15: the others end as if those had never been submitted."""
    gpus = 2 * machines
    jobs = [Job(f"j{k}", at, gang, gang * run) for k, (at, gang, run) in enumerate(rows)]
    possible = [job for job in jobs if job.gpus <= gpus]
    result = play(f"{machines}x2", jobs, policy, lease_s=20.0)
    states = dict(result.jobs.select("job_id", "state").iter_rows())
    assert states == {j.job_id: "done" if j.gpus <= gpus else "infeasible" for j in jobs}
    if possible and len(possible) < len(jobs):
        alone = play(f"{machines}x2", possible, policy, lease_s=20.0)
        mine = {name: times for name, times in spans(result).items() if states[name] == "done"}
        assert mine == spans(alone)


@EVERY
def test_nothing_is_taken_that_nobody_can_use(policy: str) -> None:
    """Case 17: three of four GPUs of each machine are held; a gang of 4 waits, and evicts nobody.

    A GPU is free on each machine, so that four are, and none of the leases helps.
    """
    held = [Job(f"h{k}", 0, 3, 3 * 1000) for k in range(4)]
    jobs = [*held, Job("big", 10, 14, 14 * 10)]
    result = play("4x4", jobs, policy, lease_s=100.0, horizon_s=900.0)
    evicted = dict(result.apps.select("app_id", "preemptions").iter_rows())
    started = spans(result)["big"][0]
    if started is None:  # it waits for what only three evictions at once would give
        assert evicted == dict.fromkeys(evicted, 0)
    assert audit(result).passed


@EVERY
def test_two_elastic_queues_do_not_play_ping_pong(policy: str) -> None:
    """Case 18: evictions are no faster than leases."""
    lease_s = 500.0
    tasks = [
        Job(f"{app}{k:02}", at, 1, 20_000, app=app)
        for app, at in (("a", 0), ("b", 100))
        for k in range(12)
    ]
    result = play("1x14", tasks, policy, lease_s=lease_s, horizon_s=10_000.0)
    figures = result.summary()
    ends = result.leases.filter(result.leases["ended_by"] == "expired")["end_s"].unique().sort()
    assert all(gap >= lease_s for gap in ends.diff().drop_nulls())
    assert figures["evictions"] <= 2 * 10_000 / lease_s  # type: ignore[operator]
    assert audit(result).passed


class Swap(Policy):
    """A bad policy: gives all GPUs to another app at every lease end."""

    def decide(self, view: PolicyView) -> list[Grant]:
        apps = view.apps.app[np.argsort(view.apps.offered_gpus, kind="stable")]
        return [grant for app in apps for grant in view.claim_app(app)]


def test_a_cycle_is_named() -> None:
    """Case 18: two apps that take turns for nothing."""
    jobs = [Job("a", 0, 2, 4000), Job("b", 0, 2, 4000)]
    result = play("1x2", jobs, Swap(), lease_s=10.0, horizon_s=1000.0)
    [since, until, times, states] = repeats(result.jobs, result.leases).row(0)
    assert (since, until, states) == (0.0, 990.0, 2)
    assert times == 1000 / 10 - 2
    figures = result.summary()
    assert (figures["repeated_allocations"], figures["evictions"]) == (98, 99)
    notes = result.manifest["notes"]
    assert isinstance(notes, list)
    assert any(
        "2 allocations took turns from 0 to 990 s and came back 98 times, between a, b" in n
        for n in notes
    )
    still = play("1x4", jobs, Swap(), lease_s=10.0, horizon_s=1000.0).summary()
    assert (still["repeated_allocations"], still["evictions"]) == (0, 0)


def test_a_starved_app_is_named() -> None:
    """Case 22: small jobs keep a large one waiting, until their stream dries up."""
    stream = [Job(f"s{k:03}", 15 * k, 1, 100) for k in range(400)]
    load = workload([*stream, Job("wide", 60, 8, 800)])

    class Greedy(Policy):
        leases = False

        def decide(self, view: PolicyView) -> list[Grant]:
            waiting = view.jobs.job[view.jobs.gpus == 0]
            small_first = sorted(waiting, key=lambda job: view.job_ids[job])
            return [grant for job in small_first if (grant := view.claim(job))]

    result = themis.simulate(load, Cluster.parse("1x8"), policy=Greedy())
    start = spans(result)["wide"][0]
    assert start is not None
    assert start > 15 * 399
    figures = result.summary()
    assert figures["starved_apps"] == 1
    assert figures["wait_longest_s"] == start - 60
    notes = result.manifest["notes"]
    assert isinstance(notes, list)
    assert any(note.startswith("1 of 401 apps starved") and "wide" in note for note in notes)
    fair = themis.simulate(load, Cluster.parse("1x8"), policy="fifo")
    assert fair.summary()["starved_apps"] == 0


@EVERY
def test_release_comes_before_allocation_and_ties_go_by_arrival_then_id(policy: str) -> None:
    """Case 25: b and c are submitted as a ends; b is first, use is never above 100 %."""
    jobs = [Job("a", 0, 2, 200), Job("b", 100, 2, 100), Job("c", 100, 2, 100)]
    result = play("1x2", jobs, policy)
    assert spans(result) == {"a": (0.0, 100.0), "b": (100.0, 150.0), "c": (150.0, 200.0)}
    assert result.usage["gpus_used"].max() == 2


@EVERY
def test_gangs_are_atomic(policy: str) -> None:
    """Case E2: two gangs of three on four GPUs never hold two each."""
    result = play("1x4", [Job("a", 0, 3, 300), Job("b", 0, 3, 300)], policy, lease_s=10.0)
    assert set(result.leases["gpus"]) <= {3}
    assert result.usage["gpus_used"].max() == 3


@EVERY
def test_a_paused_elastic_job_resumes_among_many_that_wait(policy: str) -> None:
    """Case E5: with two hundred jobs behind it, everything is done in the end."""
    jobs = [Job("e", 0, 1, 4000, 4), *(Job(f"w{k:03}", 10 + k, 1, 10) for k in range(200))]
    result = play("1x4", jobs, policy, lease_s=50.0)
    assert result.manifest["job_states"] == {"done": 201}
    assert audit(result).passed


@EVERY
@pytest.mark.parametrize("at", [0.0, 1e6])
def test_a_late_first_arrival_changes_nothing_else(policy: str, at: float) -> None:
    """Case E8: lease ends are common multiples, so that shifts by whole leases are exact."""
    rows = [("a", 0, 2, 60), ("b", 5, 1, 90), ("c", 7, 2, 30)]
    jobs = [Job(name, at + submit, gang, work) for name, submit, gang, work in rows]
    result = play("1x2", jobs, policy, lease_s=20.0)
    base = play("1x2", [Job(*row) for row in rows], policy, lease_s=20.0)
    shifted = {name: (start - at, end - at) for name, (start, end) in spans(result).items()}  # type: ignore[operator]
    assert shifted == spans(base)
    assert result.apps["rho"].to_list() == pytest.approx(base.apps["rho"].to_list())
    assert result.leases.height < 40


def test_backfill_sees_the_request_and_the_engine_the_work() -> None:
    """Case E11: a job that asks for too long is not let in, although it would have fitted."""
    jobs = [Job("long", 0, 1, 100), Job("wide", 1, 2, 20), Job("short", 2, 1, 60)]
    seen: dict[float, Any] = {
        factor: spans(play("1x2", jobs, "fifo_backfill", request_factor=factor))["short"][0]
        for factor in (1.0, 4.0)
    }
    assert seen[1.0] == 2.0
    # Asked for 240 s, and the wide job is promised 400 s: still in time.
    assert seen[4.0] == 2.0
    late = [Job("long", 0, 1, 100), Job("wide", 1, 2, 20), Job("short", 2, 1, 99)]
    assert spans(play("1x2", late, "fifo_backfill", request_factor=1.0))["short"][0] == 110.0


@EVERY
def test_rho_is_finite_or_null_with_a_reason(policy: str) -> None:
    """Case E12: shorter than a round, alone, more jobs than GPUs, no GPUs, no work, impossible."""
    jobs = [
        Job("brief", 0, 1, 1e-3),
        *(Job(f"m{k}", 0, 1, 30, app="many") for k in range(9)),
        Job("none", 0, 0, 20),
        Job("empty", 0, 1, 0),
        Job("huge", 0, 9, 9),
        Job("alone", 5000, 2, 10),
    ]
    apps = play("1x2", jobs, policy, lease_s=300.0).apps
    for app, rho, reason in apps.select("app_id", "rho", "reason").iter_rows():
        assert (rho is None) == (app in {"none", "empty", "huge"}), app
        assert rho is None or 0 < rho < 1e6
        assert rho is not None or reason
    assert apps.filter(apps["app_id"] == "alone")["rho"].item() == pytest.approx(1.0)
