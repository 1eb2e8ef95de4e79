"""Quotas by hand: what a tenant may hold, when it changes, and who waits for it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.small import Job, ends, play, spans

from themis.policies.catalogue import POLICIES
from themis.results.result import Result

ALL = [policy.name for policy in POLICIES]
LEASED = [name for name in ALL if name not in {"fifo", "fifo_backfill"}]
OWNERS = {"a": "x", "b": "x", "c": "y"}


def run(policy: str, jobs: list[Job], quota: Any, **settings: Any) -> Result:  # noqa: ANN401
    tenants = {"x": {"quota_gpus": quota}}
    return play("1x4", jobs, policy, owners=OWNERS, tenants=tenants, audit=True, **settings)


@pytest.mark.parametrize("policy", ALL)
def test_a_tenant_never_holds_more_and_others_take_the_rest(policy: str) -> None:
    # x may hold one of four GPUs: of a and b, one runs after the other. c has the other three.
    jobs = [Job("a", 0, 1, 20), Job("b", 0, 1, 20), Job("c", 0, 3, 60)]
    found = ends(run(policy, jobs, 1, lease_s=600.0))
    assert {found["a"], found["b"]} == {20, 40}
    assert found["c"] == 20


@pytest.mark.parametrize("policy", ALL)
def test_a_quota_of_zero_waits_and_is_served_when_it_grows(policy: str) -> None:
    jobs = [Job("a", 0, 2, 20), Job("c", 0, 1, 10)]
    result = run(policy, jobs, [[0, 0], [86_400, 2]])
    assert spans(result) == {"a": (86_400, 86_410), "c": (0, 10)}
    assert result.jobs["state"].to_list() == ["done", "done"]
    # Its wait costs no event: arrivals, two ends, and the change.
    assert result.usage.height <= 5


@pytest.mark.parametrize("policy", LEASED)
def test_leases_above_a_quota_that_shrinks_are_not_renewed(policy: str) -> None:
    # At 13 two of a's four GPUs are too many; nobody else wants them. They go at 20: a has done 80
    # of 100 by then, and needs 10 s more on two.
    result = run(policy, [Job("a", 0, 1, 100, 4)], [[0, 4], [13, 2]], lease_s=10.0)
    assert ends(result) == {"a": 30}
    assert result.leases.filter(ended_by="expired").select("end_s", "gpus").rows() == [(20, 2)]


@pytest.mark.parametrize("policy", LEASED)
def test_a_gang_above_its_quota_gives_up_all(policy: str) -> None:
    # Nothing is held half: from 20 on a has none, until it may have three again at 50.
    result = run(policy, [Job("a", 0, 3, 120)], [[0, 4], [13, 2], [50, 3]], lease_s=10.0)
    assert ends(result) == {"a": 70}
    assert result.jobs["preemptions"].to_list() == [1]


@pytest.mark.parametrize("policy", ["fifo", "fifo_backfill"])
def test_without_leases_a_tenant_drains_as_its_jobs_end(policy: str) -> None:
    # The app of a has three jobs of one GPU: above the quota, no job takes over the GPU of one that
    # ends. a1 ends at 10, a2 at 30, then a3 may begin.
    jobs = [
        *(Job("a1", 0, 1, 10, app="a"), Job("a2", 0, 1, 30, app="a"), Job("a3", 0, 1, 5, app="a")),
        Job("c", 0, 2, 100),
    ]
    result = run(policy, jobs, [[0, 2], [5, 1]])
    assert spans(result)["a3"] == (30, 35)


@pytest.mark.parametrize("policy", ALL)
def test_a_job_that_waits_for_its_tenant_blocks_nobody(policy: str) -> None:
    jobs = [Job("a", 0, 2, 20), Job("b", 1, 2, 20), Job("c", 2, 2, 20)]
    assert ends(run(policy, jobs, 2, lease_s=600.0)) == {"a": 10, "b": 20, "c": 12}


@pytest.mark.parametrize(
    ("quota", "state", "reason"),
    [
        (2, "infeasible", "needs 3 GPUs, its tenant's quota is 2 at most"),
        (0, "infeasible", "needs 3 GPUs, its tenant's quota is 0 at most"),
        ([[0, 4], [5, 2]], "infeasible", "needs 3 GPUs, its tenant's quota is 2 at most"),
        ([[0, 0], [15, 2]], "infeasible", "needs 3 GPUs, its tenant's quota is 2 at most"),
        ([[0, 0], [15, 3], [25, 1]], "done", None),
        # Its one instant with four GPUs free of c never comes: c holds two until 100.
        ([[0, 4], [25, 1]], "failed", "needs 3 GPUs, its tenant's quota is 1 at most"),
    ],
)
def test_a_gang_that_no_quota_will_ever_allow(quota: Any, state: str, reason: str | None) -> None:  # noqa: ANN401
    busy = [Job("c", 0, 2, 200)] if state == "failed" else []
    result = run("fifo", [*busy, Job("a", 10, 3, 30)], quota)
    [told] = result.jobs.filter(job_id="a").select("state", "reason").rows()
    assert told == (state, reason)
    assert result.apps.filter(app_id="a")["state"][0] == state


def test_quotas_of_an_aligned_and_a_rolling_day() -> None:
    # E3: capacity of a virtual cluster by day, as in Helios: 3, 1, 0, 2. Four jobs of 15 GPU-s on
    # one GPU each, leases of 5 that roll: three at first, one from 10 on (the second and third
    # give theirs up at 10), none from 20 on, two from 30 on.
    jobs = [Job(f"a{k}", 0, 1, 15, app="a") for k in range(4)]
    quota = [[0, 3], [10, 1], [20, 0], [30, 2]]
    for mode in ("rolling", "aligned"):
        result = run("tiresias", jobs, quota, lease_s=5.0, lease_mode=mode)
        work = sorted(end for end in ends(result).values() if end is not None)
        # 60 GPU-seconds: 30 by 10, 10 more by 20, the last 20 on two GPUs by 40.
        assert work[-1] == 40
        held = result.usage.select("at_s", "gpus_used").rows()
        assert dict(held)[20.0] == 0
        assert dict(held)[30.0] == 2


@pytest.mark.parametrize("policy", LEASED)
def test_a_guest_above_its_quota_leaves_when_the_lease_ends(policy: str) -> None:
    # a and c have halves of one GPU. y, whose is c, may hold none from 13 on: c stays to the end of
    # the lease, at 20, waits, and goes on beside a at 50. a never notices.
    jobs = [
        Job("a", 0, 1, 35, gpu_milli=500),
        Job("c", 0, 1, 20, gpu_milli=500),
    ]
    tenants = {"y": {"quota_gpus": [[0, 1], [13, 0], [50, 1]]}}
    owners = {"a": "x", "c": "y"}
    result = play("1x1", jobs, policy, owners=owners, tenants=tenants, audit=True, lease_s=10.0)
    assert spans(result) == {"a": (0, 70), "c": (0, 70)}
    held = result.leases.filter(app_id="c").select("start_s", "end_s").sort("start_s").rows()
    assert (held[0][0], held[-1][1]) == (0, 70)
    assert not [row for row in held if row[0] < 50 and row[1] > 20]
    assert result.jobs.filter(job_id="c")["preemptions"].to_list() == [1]
