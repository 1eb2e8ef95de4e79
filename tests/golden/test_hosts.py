"""Machines of few CPU cores and little memory: schedules worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from tests.differential.small import FREE_SWITCHES, Job, spans, workload

import themis
from themis import Cluster, Grant, Policy, PolicyView
from themis.errors import PolicyAnswerError
from themis.policies.catalogue import POLICIES
from themis.results.result import Result

Needs = Mapping[str, tuple[float | None, float | None]]
"""Cores and GiB of each GPU by job."""

IN_LINE = ("fifo", "fifo_backfill")
OTHERS = tuple(info.name for info in POLICIES if info.name not in IN_LINE)


def machines(*rows: tuple[int, float | None, float | None]) -> Cluster:
    """Machines of so many GPUs, cores and GiB, in this order."""
    names = [f"m{at}" for at in range(len(rows))]
    columns = dict(zip(("gpus", "cpu_cores", "memory_gib"), zip(*rows, strict=True), strict=True))
    schema = {"gpus": pl.Int64, "cpu_cores": pl.Float64, "memory_gib": pl.Float64}
    return Cluster.from_frame(pl.DataFrame({"machine": names, **columns}, schema_overrides=schema))


def needing(jobs: Sequence[Job], needs: Needs) -> themis.Workload:
    load = workload(jobs)
    of = [needs.get(name, (None, None)) for name in load.jobs["job_id"]]
    named = {
        name: pl.Series([need[at] for need in of], dtype=pl.Float64)
        for at, name in enumerate(("cpu_cores_per_gpu", "memory_gib_per_gpu"))
    }
    return themis.Workload(apps=load.apps, jobs=load.jobs.with_columns(**named))


def run(
    jobs: Sequence[Job],
    needs: Needs,
    cluster: Cluster,
    policy: str | Policy,
    **settings: Any,  # noqa: ANN401 - each setting has its own type
) -> Result:
    result = themis.simulate(
        needing(jobs, needs), cluster, policy=policy, **{**FREE_SWITCHES, **settings}
    )
    report = themis.audit(result)
    assert report.passed, report.to_text()
    assert report.skipped == ()
    return result


# One machine of 4 GPUs and 8 cores. b finds 3 GPUs when it comes, and no core until a has ended.
THREE = (Job("a", 0, 1, 10), Job("b", 5, 1, 10), Job("d", 5, 1, 10))
CORES: Needs = {"a": (8, None), "b": (4, None)}


@pytest.mark.parametrize("policy", OTHERS)
def test_who_needs_no_cores_starts_beside_who_waits_for_some(policy: str) -> None:
    result = run(THREE, CORES, machines((4, 8, None)), policy, lease_s=1000.0)
    assert spans(result) == {"a": (0, 10), "b": (10, 20), "d": (5, 15)}


@pytest.mark.parametrize("policy", IN_LINE)
def test_in_a_line_nobody_passes_who_waits_for_cores(policy: str) -> None:
    result = run(THREE, CORES, machines((4, 8, None)), policy)
    assert spans(result) == {"a": (0, 10), "b": (10, 20), "d": (10, 20)}


def test_a_backfilled_job_ends_before_the_head_finds_its_cores() -> None:
    jobs = [*THREE[:2], Job("c", 5, 1, 6), Job("d", 5, 1, 5)]
    result = run(jobs, CORES, machines((4, 8, None)), "fifo_backfill", request_factor=1.0)
    assert spans(result) == {"a": (0, 10), "b": (10, 20), "c": (10, 16), "d": (5, 10)}


@pytest.mark.parametrize("policy", [*OTHERS, *IN_LINE])
def test_the_scarcer_resource_decides(policy: str) -> None:
    # Cores for 4 GPUs, memory for 1 of x and 3 of y.
    jobs = [Job("x", 0, 1, 10), Job("y", 0, 1, 10), Job("z", 0, 1, 10)]
    needs = {"x": (2, 48), "y": (2, 16), "z": (2, 16)}
    result = run(jobs, needs, machines((4, 8, 64)), policy, lease_s=1000.0)
    ends = sorted(end or 0 for _, end in spans(result).values())
    assert ends == [10, 10, 20]


@pytest.mark.parametrize("policy", [*OTHERS, *IN_LINE])
def test_a_gang_goes_where_its_memory_is(policy: str) -> None:
    # Both gangs fit either machine by their GPUs; g by its memory only the second.
    jobs = [Job("g", 0, 2, 20), Job("h", 0, 2, 20)]
    needs = {"g": (None, 32), "h": (None, 8)}
    result = run(jobs, needs, machines((2, None, 16), (2, None, 64)), policy)
    assert spans(result) == {"g": (0, 10), "h": (0, 10)}
    where = {row["app_id"]: row["machine"] for row in result.leases.rows(named=True)}
    assert where == {"g": "m1", "h": "m0"}


@pytest.mark.parametrize("policy", [*OTHERS, *IN_LINE])
def test_a_gang_is_spread_where_each_machine_serves_a_part(policy: str) -> None:
    jobs = [Job("g", 0, 4, 40)]
    result = run(jobs, {"g": (4, None)}, machines((4, 4, None), (4, 12, None)), policy)
    held = result.leases.group_by("machine").agg(pl.col("gpus").sum()).sort("machine").rows()
    assert held == [("m0", 1), ("m1", 3)]


@pytest.mark.parametrize("policy", [*OTHERS, *IN_LINE])
def test_what_no_machine_can_serve_is_infeasible_and_blocks_nobody(policy: str) -> None:
    jobs = [Job("big", 0, 5, 50), Job("ok", 0, 4, 40)]
    needs = {"big": (4, 1.5), "ok": (4, None)}
    result = run(jobs, needs, machines((4, 8, None), (4, 10, None)), policy)
    by_id = {row["job_id"]: row for row in result.jobs.rows(named=True)}
    assert (by_id["ok"]["state"], by_id["ok"]["end_s"]) == ("done", 11)  # spread over a rack
    assert (by_id["big"]["state"], by_id["big"]["start_s"]) == ("infeasible", None)
    assert by_id["big"]["reason"] == (
        "needs 5 GPUs with 4 CPU cores and 1.5 GiB of memory each, the cluster has 4 at most"
    )
    report = needing(jobs, needs).check(machines((4, 8, None), (4, 10, None)))
    assert report.load is not None
    assert report.load.infeasible == ("big",)


def test_leases_take_turns_at_cores() -> None:
    # 4 GPUs, but cores for one of the two; least attained service first, the earlier on a tie.
    jobs = [Job("a", 0, 1, 20), Job("b", 0, 1, 20)]
    needs = {"a": (6, None), "b": (6, None)}
    result = run(jobs, needs, machines((4, 8, None)), "tiresias", lease_s=5.0)
    assert spans(result) == {"a": (0, 35), "b": (5, 40)}
    held = result.leases.sort("start_s").select("app_id", "start_s", "end_s").rows()
    assert held == [("ab"[at % 2], 5.0 * at, 5.0 * (at + 1)) for at in range(8)]


@pytest.mark.parametrize(("cores", "second"), [(8, (0, 20)), (7.998, (20, 40))])
@pytest.mark.parametrize("policy", ["themis", "tiresias", "fifo"])
def test_a_fraction_takes_its_part(policy: str, cores: float, second: tuple[int, int]) -> None:
    jobs = [Job("a", 0, 1, 10, gpu_milli=500), Job("b", 0, 1, 10, gpu_milli=500)]
    needs = {"a": (8, None), "b": (8, None)}
    result = run(jobs, needs, machines((4, cores, None)), policy, lease_s=1000.0)
    assert spans(result) == {"a": (0, 20), "b": second}
    assert (result.leases["gpu_first"] == 0).all()


def test_jobs_without_gpus_take_no_cores() -> None:
    jobs = [Job("cpu", 0, 0, 10), Job("x", 0, 1, 10)]
    result = run(jobs, {"cpu": (9, None), "x": (8, None)}, machines((1, 8, None)), "themis")
    assert spans(result)["x"] == (0, 10)


def test_gpus_handed_on_within_an_app_need_the_cores_of_their_new_job() -> None:
    # b ends; its GPU would pass to c, which needs more cores than a leaves.
    jobs = [Job("a", 0, 1, 30, app="p"), Job("b", 0, 1, 10, app="p"), Job("c", 0, 1, 5, app="p")]
    needs = {"a": (6, None), "b": (2, None), "c": (3, None)}
    result = run(jobs, needs, machines((2, 8, None)), "themis", lease_s=1000.0)
    assert spans(result) == {"a": (0, 30), "b": (0, 10), "c": (30, 35)}


def test_failed_machines_come_back_with_their_cores() -> None:
    changes = pl.DataFrame(
        {"machine": ["m0"] * 2, "at_s": [5.0, 8.0], "gpus": [0, 2], "cause": ["failure", "repair"]}
    )
    cluster = machines((2, 4, None)).with_capacity(changes)
    jobs = [Job("a", 0, 1, 10), Job("b", 0, 1, 10)]
    result = run(jobs, {"a": (4, None), "b": (4, None)}, cluster, "fifo")
    # a loses five seconds of work and begins anew.
    assert spans(result) == {"a": (0, 18), "b": (18, 28)}


class Greedy(Policy):
    """Gives every waiting job a GPU of slot 0, whatever it needs."""

    name = "greedy"

    def decide(self, view: PolicyView) -> list[Grant]:
        self.seen = (view.free_host.tolist(), view.jobs.cpu_cores_per_gpu.tolist())
        waiting = view.jobs.gpus == 0
        return [Grant(int(job), {0: 1}) for job in view.jobs.job[waiting]][: int(view.free_gpus)]


class Careful(Policy):
    """Claims by the rule of the built-in policies."""

    name = "careful"

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def __deepcopy__(self, _: object) -> Careful:
        return self  # what it saw is read afterwards

    def decide(self, view: PolicyView) -> list[Grant]:
        before = view.free_host.tolist()
        grants = [grant for app in view.apps.app for grant in view.claim_app(int(app))]
        needs = zip(view.jobs.cpu_cores_per_gpu, view.jobs.memory_gib_per_gpu, strict=True)
        self.seen.append((view.now_s, before, view.free_host.tolist(), [*needs]))
        return grants


def test_an_answer_that_takes_more_cores_than_there_are_is_refused() -> None:
    jobs = [Job("a", 0, 1, 10), Job("b", 0, 1, 10)]
    problem = (
        r"^policy greedy, at 0.0 s: app 'b', job 'b': 1 GPUs of machine 0: it lacks the CPU cores "
        "or memory that they need"
    )
    with pytest.raises(PolicyAnswerError, match=problem):
        run(jobs, {"a": (5, None), "b": (4, None)}, machines((4, 8, None)), Greedy())


def test_a_policy_of_ones_own_sees_what_machines_have_left() -> None:
    seen: list[Any] = []
    jobs = [Job("a", 0, 1, 10), Job("b", 0, 1, 10, gpu_milli=500)]
    cluster = machines((1, 8, None), (1, 4, 2))
    result = run(jobs, {"a": (5, 1.5), "b": (4, None)}, cluster, Careful(seen), lease_s=1000.0)
    assert spans(result) == {"a": (0, 10), "b": (0, 20)}
    inf = float("inf")
    assert seen == [(0, [[8, inf], [4, 2]], [[3, inf], [2, 2]], [(5, 1.5), (2, 0)])]


def test_nothing_changes_where_a_side_says_nothing() -> None:
    plain = machines((4, None, None))
    limited = machines((4, 2, 1))
    for policy in ("themis", "fifo", "srtf"):
        with_nothing = run(THREE, {}, plain, policy, lease_s=7.0)
        for needs, cluster in ((CORES, plain), ({}, limited)):
            other = run(THREE, needs, cluster, policy, lease_s=7.0)
            assert all(
                other.frames[name].equals(frame) for name, frame in with_nothing.frames.items()
            )
