"""Fractions of a GPU: schedules computed by hand. Leases end every 10 s; switches are free."""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.small import Job, Search, play, spans
from tests.golden.test_capacity import changing

from themis.policies.catalogue import POLICIES
from themis.results.result import Result

NAMES = [policy.name for policy in POLICIES]
TEN: dict[str, Any] = {"lease_s": 10.0}


def share(name: str, submit_s: float, milli: int, seconds: float, **more: Any) -> Job:  # noqa: ANN401
    """Return a job that uses thousandths of a GPU for some time."""
    return Job(name, submit_s, 1, seconds * milli / 1000, gpu_milli=milli, **more)


def places(result: Result) -> list[tuple[str, int, float, float, str]]:
    """Return (app, GPU, start, end, cause) of every lease, by start, GPU and app."""
    rows = result.leases.sort("start_s", "gpu_first", "app_id")
    return rows.select("app_id", "gpu_first", "start_s", "end_s", "cause").rows()


@pytest.mark.parametrize("policy", NAMES)
def test_two_halves_share_a_gpu_and_run_at_once(policy: str) -> None:
    jobs = [share("a", 0, 500, 30), share("b", 0, 500, 20)]
    result = play("1x2", jobs, policy, **TEN, audit=True)
    assert spans(result) == {"a": (0, 30), "b": (0, 20)}
    assert result.leases["gpu_first"].unique().to_list() == [0]
    assert result.jobs["gpu_s"].to_list() == [15.0, 10.0]
    assert result.apps["useful_gpu_s"].to_list() == [15.0, 10.0]
    use = result.usage.select("at_s", "gpus_used", "gpus_productive").rows()
    assert use == [(0.0, 1, 1.0), (20.0, 1, 0.5), (30.0, 0, 0.0)]


@pytest.mark.parametrize("policy", NAMES)
def test_shares_that_exceed_a_gpu_need_two(policy: str) -> None:
    jobs = [share("a", 0, 600, 30), share("b", 0, 600, 20)]
    two = play("1x2", jobs, policy, **TEN, audit=True)
    assert spans(two) == {"a": (0, 30), "b": (0, 20)}
    assert sorted(two.leases["gpu_first"].unique().to_list()) == [0, 1]
    one = play("1x1", jobs, "fifo", **TEN, audit=True)
    assert spans(one) == {"a": (0, 30), "b": (30, 50)}


@pytest.mark.parametrize("policy", NAMES)
def test_three_shares_fill_a_gpu_and_a_fourth_opens_another(policy: str) -> None:
    jobs = [share(name, 0, milli, 10) for name, milli in (("a", 500), ("b", 300), ("c", 200))]
    result = play("1x4", [*jobs, share("d", 0, 1, 10)], policy, **TEN, audit=True)
    assert set(spans(result).values()) == {(0, 10)}
    assert result.leases.sort("app_id")["gpu_first"].to_list() == [0, 0, 0, 1]


def test_a_whole_job_never_joins_and_none_joins_it() -> None:
    jobs = [share("a", 0, 100, 30), Job("b", 0, 1, 30), share("c", 1, 100, 5)]
    result = play("1x2", jobs, "fifo", audit=True)
    assert places(result) == [
        ("b", 0, 0, 30, "policy"),
        ("a", 1, 0, 30, "policy"),
        ("c", 1, 1, 6, "shared"),
    ]
    alone = play("1x1", [Job("b", 0, 1, 30), share("c", 1, 100, 5)], "fifo", audit=True)
    assert spans(alone) == {"b": (0, 30), "c": (30, 35)}


def test_a_share_goes_where_the_least_room_is_left_that_suffices() -> None:
    # 0.6 on GPU 0, 0.7 on GPU 1: 0.3 fits both, best on GPU 1; then 0.4 fits only GPU 0.
    jobs = [share("a", 0, 600, 50), share("b", 0, 700, 50)]
    jobs += [share("c", 1, 300, 10), share("d", 2, 400, 10), share("e", 3, 10, 5)]
    result = play("1x2", jobs, "fifo", audit=True)
    assert places(result)[2:] == [
        ("c", 1, 1, 11, "shared"),
        ("d", 0, 2, 12, "shared"),
        ("e", 1, 11, 16, "shared"),
    ]


def test_earlier_jobs_are_seated_first_and_join_past_a_gang_in_line() -> None:
    # The gang of two is first in line from 1 on; nobody else could use the room beside a.
    jobs = [share("a", 0, 400, 20), Job("g", 1, 2, 20), share("b", 2, 700, 5)]
    result = play("1x2", [*jobs, share("c", 3, 600, 5)], "fifo", audit=True)
    assert spans(result) == {"a": (0, 20), "g": (20, 30), "b": (30, 35), "c": (3, 8)}


def test_a_lease_that_another_app_wins_takes_the_gpu_from_all() -> None:
    # LAS: at 10 s w has had nothing. a and b had 5 GPU-seconds each, w has 10 by 20: they are back.
    jobs = [share("a", 0, 500, 15), share("b", 0, 500, 15), Job("w", 1, 1, 20)]
    result = play("1x1", jobs, "tiresias", **TEN, audit=True)
    assert places(result) == [
        ("a", 0, 0, 10, "policy"),
        ("b", 0, 0, 10, "shared"),
        ("w", 0, 10, 20, "policy"),
        ("a", 0, 20, 25, "policy"),
        ("b", 0, 20, 25, "shared"),
        ("w", 0, 25, 35, "policy"),
    ]
    assert result.jobs["preemptions"].to_list() == [1, 1, 1]


def test_a_gpu_passes_to_the_oldest_guest_with_the_lease_that_it_has() -> None:
    # b holds GPU 0 from 4 on. At 10 the lease ends and w, who had nothing, wins. At 15 b has had
    # 9 x 0.3 GPU-seconds and c 8 x 0.3: c is served first.
    jobs = [share("a", 0, 300, 4), share("b", 1, 300, 20), share("c", 2, 300, 20)]
    result = play("1x1", [*jobs, Job("w", 5, 1, 5)], "tiresias", **TEN, audit=True)
    assert places(result) == [
        ("a", 0, 0, 4, "policy"),
        ("b", 0, 1, 10, "shared"),
        ("c", 0, 2, 10, "shared"),
        ("w", 0, 10, 15, "policy"),
        ("b", 0, 15, 26, "shared"),
        ("c", 0, 15, 27, "policy"),
    ]


@pytest.mark.parametrize("policy", ["themis", "tiresias"])
def test_nobody_loses_a_gpu_that_nobody_else_takes(policy: str) -> None:
    # g wants two and never gets them while a and b go on: leases are renewed, guests stay.
    jobs = [share("a", 0, 500, 35), share("b", 0, 500, 35), Job("g", 1, 3, 3)]
    result = play("1x2", jobs, policy, **TEN, audit=True)
    assert spans(result)["a"] == spans(result)["b"] == (0, 35)
    assert result.jobs["preemptions"].to_list()[:2] == [0, 0]


@pytest.mark.parametrize(("cause", "lost"), [("failure", 1), ("evicted", 0)])
def test_a_gpu_that_goes_takes_the_work_of_all_who_sit_there(cause: str, lost: int) -> None:
    # GPU 1 goes at 12. x and y sat there: both lose their 12 s (failure) or none, and wait for a.
    jobs = [Job("a", 0, 1, 30), share("x", 0, 500, 20), share("y", 0, 400, 20)]
    cluster = changing([(0, 2, "planned"), (12, 1, cause)])
    result = play(cluster, jobs, "fifo", audit=True)
    rest = 20 if lost else 8
    assert spans(result) == {"a": (0, 30), "x": (0, 30 + rest), "y": (0, 30 + rest)}
    figures = result.jobs.sort("job_id").select("failures", "preemptions", "lost_gpu_s").rows()
    assert figures[1:] == [(lost, 1 - lost, 6.0 * lost), (lost, 1 - lost, 4.8 * lost)]


def test_thousandths_are_exact_over_long_runs() -> None:
    jobs = [share(f"j{k:03}", k, 1, 1e6) for k in range(1000)]
    result = play("1x4", [*jobs, share("last", 999, 1, 1e6)], "fifo", audit=True)
    used = result.leases.group_by("gpu_first").len().sort("gpu_first")["len"].to_list()
    assert used == [1000, 1]
    assert set(result.jobs["gpu_s"]) == {1000.0}
    assert result.usage["gpus_productive"].max() == 1.001


def test_an_apps_cap_counts_each_share_as_a_gpu() -> None:
    jobs = [share("a0", 0, 100, 10, app="a"), share("a1", 0, 100, 10, app="a")]
    apps = {"a": Search("all", max_gpus=1)}
    result = play("1x2", jobs, "fifo", searches=apps, audit=True)
    assert sorted(result.jobs["start_s"].to_list()) == [0.0, 10.0]


def test_a_gpu_lost_and_another_got_in_the_second_decision_is_a_migration() -> None:
    # At 10, a takes GPU 0 from c, and b wants one too; b can join a, and what that frees is c's.
    jobs = [
        Job("c", 0, 1, 20),
        Job("d", 5, 1, 20),
        share("a", 10, 600, 58),
        share("b", 10, 300, 67),
    ]
    result = play("1x2", jobs, "drf", **TEN, audit=True)
    assert places(result)[2:5] == [
        ("a", 0, 10, 20, "policy"),
        ("b", 0, 10, 77, "shared"),
        ("c", 1, 10, 20, "policy"),
    ]
    moved = result.jobs.select("job_id", "preemptions", "migrations").rows()
    assert moved[0] == ("c", 0, 1)
