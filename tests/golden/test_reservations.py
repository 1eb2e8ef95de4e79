"""Big gangs in a stream of small jobs: starved without a reservation, bounded with one."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.small import Job, play, spans

from themis.auditing import audit
from themis.policies.catalogue import POLICIES

NAMES = [policy.name for policy in POLICIES]
IN_LINE = ("fifo", "fifo_backfill")
LEASED = [name for name in NAMES if name not in IN_LINE]

SMALL = [Job(f"s{k:03}", 15 * k, 1, 100) for k in range(401)]
"""Case 22: one GPU for 100 s every 15 s until 6,000 s."""
CASE_22 = [*SMALL, Job("big", 60, 8, 800)]


def waited(policy: str, **more: Any) -> float:  # noqa: ANN401 - settings
    start, _ = spans(play("1x8", CASE_22, policy, lease_s=100.0, **more))["big"]
    assert start is not None
    return start - 60


def test_jobs_in_line_do_not_starve_a_gang() -> None:
    # Four small ones run at 60 (of two that come then, big has the smaller id): until 145.
    assert {policy: waited(policy) for policy in IN_LINE} == dict.fromkeys(IN_LINE, 85.0)


def test_who_starves_a_gang_and_who_does_not() -> None:
    # Recorded, in seconds; the stream is dry at 6,100.
    assert {policy: waited(policy) for policy in LEASED} == {
        **dict.fromkeys(("tiresias", "gandiva", "optimus", "drf"), 40.0),
        **dict.fromkeys(("slaq", "slack", "max_rho"), 140.0),
        "fsp": 840.0,
        **dict.fromkeys(("themis", "srtf", "srsf", "static"), 6040.0),
    }


@pytest.mark.parametrize("policy", LEASED)
def test_a_reservation_bounds_the_wait(policy: str) -> None:
    assert waited(policy, reserve_after_s=0.0) == 40.0  # the next end of all leases
    # After 200 s, at 260: the leases end at 300. With rolling ones, within two leases.
    assert waited(policy, reserve_after_s=200.0) <= 240.0
    assert waited(policy, reserve_after_s=200.0, lease_mode="rolling") <= 400.0


def test_a_promised_gang_that_grows_at_once_does_not_switch() -> None:
    # Its gang by promise and the other two by the policy, all at 0: 40 on four.
    result = play("1x4", [Job("a", 0, 2, 40, 4)], "drf", reserve_after_s=0.0, restart_s=2.0)
    assert set(result.leases["cause"]) == {"policy", "reservation"}
    assert spans(result) == {"a": (0, 10)}
    assert result.apps.select("migrations", "switching_gpu_s").row(0) == (0, 0.0)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from([1, 1, 1, 2, 3, 8]), st.integers(5, 120)),
        min_size=2,
        max_size=14,
    ),
    policy=st.sampled_from(LEASED),
    mode=st.sampled_from(["aligned", "rolling"]),
    after_s=st.sampled_from([0.0, 15.0, 50.0]),
)
def test_no_gang_waits_longer_than_the_bound(
    jobs: list[tuple[int, int, int]], policy: str, mode: str, after_s: float
) -> None:
    """Each gang starts a lease after those that wait longer, and no later than promised."""
    listed = [Job(f"j{k:02}", at, gpus, gpus * run) for k, (at, gpus, run) in enumerate(jobs)]
    options: dict[str, Any] = {"lease_s": 10.0, "lease_mode": mode, "reserve_after_s": after_s}
    result = play("2x4", listed, policy, **options)
    assert audit(result).passed, audit(result)
    kept = result.jobs.filter(pl.col("promised_s").is_not_null())
    assert (kept["start_s"] <= kept["promised_s"]).all()
    gangs = sum(job.gpus > 1 for job in listed)
    bound_s = after_s + 10.0 * (gangs + (mode == "rolling"))
    # A gang that lost its GPUs waits anew: others may be promised some meanwhile, again and again.
    firsts = result.jobs.filter((pl.col("gang_size") > 1) & (pl.col("preemptions") == 0))
    if firsts.height == gangs:
        assert (firsts["start_s"] - firsts["submit_s"] <= bound_s).all()
