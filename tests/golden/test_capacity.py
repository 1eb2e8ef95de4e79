"""Machines that join, leave, fail and are repaired: schedules computed by hand.

One machine of four GPUs, unless a test says more; rows are (at_s, GPUs from then on, cause).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from tests.differential.small import Job, play, spans

import themis
from themis.cluster.cluster import Cluster
from themis.policies.catalogue import POLICIES
from themis.results.result import Result

NAMES = [policy.name for policy in POLICIES]
IN_LINE = ("fifo", "fifo_backfill")
COSTS: dict[str, Any] = {
    "restart_s": 5.0,
    "checkpoint_s": 3.0,
    "checkpoint_every_s": 20.0,
    "lease_s": 10.0,
}
Row = tuple[float, int, str]


def changing(rows: Sequence[Row], spec: str = "1x4", machine: str = "r0-m0") -> Cluster:
    frame = pl.DataFrame(
        [(machine, *row) for row in rows],
        schema={"machine": pl.String, "at_s": pl.Float64, "gpus": pl.Int64, "cause": pl.String},
        orient="row",
    )
    return Cluster.parse(spec).with_capacity(frame)


def only(result: Result, *columns: str) -> tuple[Any, ...]:
    """Return the only job's figures."""
    return result.jobs.select(columns).row(0)


@pytest.mark.parametrize("policy", NAMES)
def test_a_gang_waits_for_a_machine_to_grow(policy: str) -> None:
    # a: 2 x 20 on the two GPUs that there are. b: 4 x 10 from 30 on; c needs 5: never.
    cluster = changing([(0, 2, "planned"), (30, 4, "planned")])
    jobs = [Job("a", 0, 2, 40), Job("b", 0, 4, 40), Job("c", 1, 5, 5)]
    result = play(cluster, jobs, policy, lease_s=10.0)
    assert spans(result) == {"a": (0, 20), "b": (30, 40), "c": (None, None)}
    assert result.jobs["state"].to_list() == ["done", "done", "infeasible"]
    totals = result.usage.select("at_s", "gpus_total")
    assert totals.filter(pl.col("at_s") < 30)["gpus_total"].unique().to_list() == [2]
    assert totals.filter(pl.col("at_s") >= 30)["gpus_total"].unique().to_list() == [4]
    # a saw 2 GPUs all its life, b 2 for 30 s and 4 for 10 s.
    assert result.apps["gpus_avg"].to_list() == [2.0, 2.5, None]


@pytest.mark.parametrize("policy", NAMES)
def test_a_failure_loses_the_work_since_the_last_checkpoint(policy: str) -> None:
    # 4 x 100 from 0; saved at 40, failed at 50: 10 s x 4 are lost. Repaired at 80; works again at
    # 85 (nothing could be saved: no checkpoint), 240 GPU-seconds are left: 60 s.
    cluster = changing([(50, 0, "failure"), (80, 4, "repair")])
    result = play(cluster, [Job("a", 0, 4, 400)], policy, **COSTS)
    assert only(result, "end_s", "failures", "preemptions", "migrations") == (145.0, 1, 0, 0)
    assert only(result, "gpu_s", "work_gpu_s", "lost_gpu_s") == (460.0, 400.0, 40.0)
    assert result.apps["switching_gpu_s"].to_list() == [20.0]
    assert result.leases["ended_by"].to_list()[-2:] == ["failure", "job_end"]
    assert result.capacity.rows() == [(50, "r0-m0", 0, "failure"), (80, "r0-m0", 4, "repair")]


@pytest.mark.parametrize("policy", NAMES)
def test_an_eviction_saves_the_work(policy: str) -> None:
    # 200 are done at 50. Back at 80; works at 88 (checkpoint and restart): 50 s more.
    cluster = changing([(50, 0, "evicted"), (80, 4, "planned")])
    result = play(cluster, [Job("a", 0, 4, 400)], policy, **COSTS)
    assert only(result, "end_s", "failures", "preemptions", "lost_gpu_s") == (138.0, 0, 1, 0.0)


@pytest.mark.parametrize("policy", NAMES)
def test_planned_changes_wait_for_the_end_of_the_lease(policy: str) -> None:
    # Announced at 55, gone at 60, when the unopposed lease ends; 240 are done. Back at 80; works
    # at 88: 40 s more. Without leases the machine leaves with the job.
    cluster = changing([(55, 0, "planned"), (80, 4, "planned")])
    result = play(cluster, [Job("a", 0, 4, 400)], policy, **COSTS)
    if policy in IN_LINE:
        assert only(result, "end_s", "preemptions") == (100.0, 0)
    else:
        assert only(result, "end_s", "preemptions") == (128.0, 1)
        assert (60.0, "withdrawn") in result.leases.select("end_s", "ended_by").rows()


def test_nobody_else_gets_what_is_to_leave() -> None:
    # Both GPUs of machine 0 are to leave from 5 on; a ends at 8, b comes at 6 and starts at 20.
    cluster = changing([(5, 0, "planned"), (20, 2, "planned")], "1x2")
    jobs = [Job("a", 0, 1, 8), Job("b", 6, 1, 10)]
    for policy in ("fifo", "tiresias"):
        result = play(cluster, jobs, policy, lease_s=10.0)
        assert spans(result) == {"a": (0, 8), "b": (20, 30)}
        # One GPU was idle and left at once, the other with a.
        assert result.usage.select("at_s", "gpus_total").rows()[:3] == [(0, 2), (5, 1), (6, 1)]


@pytest.mark.parametrize("policy", NAMES)
def test_an_elastic_job_goes_on_with_what_is_left(policy: str) -> None:
    # 2 to 4 GPUs. Of 200 done at 50, 40 are lost; on two GPUs it works from 55: 240 / 2.
    cluster = changing([(50, 2, "failure")])
    result = play(cluster, [Job("a", 0, 2, 400, 4)], policy, **COSTS)
    assert only(result, "end_s", "failures", "preemptions", "migrations") == (175.0, 1, 0, 0)


@pytest.mark.parametrize("policy", NAMES)
def test_what_the_cluster_became_too_small_for_has_failed(policy: str) -> None:
    # Two GPUs are gone for good at 50: a can't go on, b starts (but for static, at once).
    cluster = changing([(50, 2, "evicted")])
    result = play(cluster, [Job("a", 0, 4, 400), Job("b", 60, 2, 20)], policy, lease_s=100.0)
    assert spans(result) == {"a": (0, 50), "b": (60, 70)}
    assert result.jobs["state"].to_list() == ["failed", "done"]
    assert result.jobs["reason"].to_list() == ["needs 4 GPUs, the cluster has 2 at most", None]
    assert result.apps["state"].to_list() == ["failed", "done"]
    assert result.apps["rho"].is_null().to_list() == [True, False]


@pytest.mark.parametrize("policy", NAMES)
def test_no_gpus_at_all_for_a_while(policy: str) -> None:
    cluster = changing([(0, 0, "planned"), (100, 4, "planned")])
    jobs = [Job("a", 0, 2, 20), Job("b", 0, 4, 40), Job("c", 50, 1, 5)]
    result = play(cluster, jobs, policy, lease_s=10.0)
    assert result.jobs["state"].to_list() == ["done"] * 3
    assert result.jobs["start_s"].min() == 100
    assert (result.usage["gpus_used"] <= result.usage["gpus_total"]).all()
    # No event between the last arrival and the machine's.
    assert result.usage.filter(pl.col("at_s").is_between(51, 99)).is_empty()


@pytest.mark.parametrize("policy", NAMES)
def test_a_job_that_ends_just_then_has_ended(policy: str) -> None:
    for cause in ("failure", "evicted", "planned"):
        cluster = changing([(100, 0, cause), (150, 4, "repair")])
        result = play(cluster, [Job("a", 0, 4, 400), Job("b", 100, 4, 40)], policy, **COSTS)
        assert spans(result) == {"a": (0, 100), "b": (150, 160)}
        assert result.jobs["failures"].to_list() == [0, 0]


def test_growth_makes_a_waiting_job_feasible_and_the_head_of_the_line() -> None:
    # Case 15 with a second machine from 50 on: big waits for it, huge never runs; only strict fifo
    # keeps small behind big.
    cluster = changing([(0, 0, "planned"), (50, 4, "planned")], "2x4", "r0-m1")
    jobs = [Job("big", 0, 6, 6), Job("huge", 0, 9, 10), Job("small", 1, 1, 10)]
    jobs = [job._replace(profile="compute") for job in jobs]
    for policy in NAMES:
        found = spans(play(cluster, jobs, policy, lease_s=10.0))
        assert found["huge"] == (None, None)
        assert found["big"][0] == 50
        assert found["small"][0] == (50 if policy == "fifo" else 1)


def test_chance_strikes_all_policies_alike_and_seeds_differ() -> None:
    jobs = [Job(f"j{k}", 10 * k, 1 + k % 3, 300, profile="compute") for k in range(12)]
    settings: dict[str, Any] = {
        "mtbf_s": 400.0,
        "mttr_s": 50.0,
        "checkpoint_every_s": 30.0,
        "lease_s": 60.0,
    }

    def struck(policy: str, seed: int) -> pl.DataFrame:
        return play("3x4", jobs, policy, seed=seed, **settings).capacity

    first = struck("fifo", 0)
    assert first.height > 3
    for policy in ("themis", "tiresias"):
        other = struck(policy, 0)
        rows = min(first.height, other.height)
        assert other.head(rows).equals(first.head(rows))
    assert not struck("fifo", 1).head(3).equals(first.head(3))
    assert struck("themis", 7).equals(struck("themis", 7))


@pytest.mark.parametrize(("after", "ends", "back"), [(None, 100, 40), (2, 200, 140), (1, 180, 120)])
@pytest.mark.parametrize("policy", NAMES)
def test_a_bad_machine_is_left_alone(policy: str, after: int | None, ends: int, back: int) -> None:
    # 4 x 60 from the start, lost at 10 and at 30; the machine rests for 100 s after the repair at
    # 40, or at 20.
    cluster = changing(
        [(10, 0, "failure"), (20, 4, "repair"), (30, 0, "failure"), (40, 4, "repair")]
    )
    rules: dict[str, Any] = {
        "quarantine_after": after,
        "quarantine_s": 100.0,
        "checkpoint_every_s": None,
    }
    result = play(cluster, [Job("a", 0, 4, 240)], policy, lease_s=10.0, **rules)
    assert only(result, "end_s", "state") == (ends, "done")
    there = result.capacity.filter(pl.col("gpus") == 4)
    assert there.select("at_s", "cause").row(-1) == (back, "repair")


def test_after_failures_by_chance_machines_are_left_alone_too() -> None:
    chance: dict[str, Any] = {"mtbf_s": 100.0, "mttr_s": 10.0, "quarantine_after": 1}
    chance |= {"quarantine_s": 1000.0, "horizon_s": 5000.0}
    result = play("4x2", [Job("a", 0, 2, 9000)], "fifo", **chance)
    gone: dict[str, float] = {}
    rests = []
    for at_s, machine, gpus, _cause in result.capacity.iter_rows():
        if gpus == 0:
            gone.setdefault(machine, at_s)
        elif machine in gone:
            rests.append(at_s - gone.pop(machine))
    assert len(rests) > 4
    assert min(rests) > 1000


def test_a_job_that_failures_never_let_end_is_told_of() -> None:
    # A thousand seconds of work, and a failure every ten: without a checkpoint it starts for ever
    # anew.
    with pytest.raises(
        themis.ThemisError, match=r"no job has ended for .* longer mtbf_s or shorter"
    ):
        play("1x1", [Job("a", 0, 1, 1000)], "fifo", mtbf_s=10.0, mttr_s=1.0)
