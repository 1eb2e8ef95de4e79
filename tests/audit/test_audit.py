"""The audit itself: a sound result passes, and each kind of forgery is found."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from tests.audit.audit import audit
from tests.differential.small import Job, Search, play, workload

from themis.cluster import Cluster
from themis.policies import POLICIES
from themis.result import Result

JOBS = [Job("a", 0, 2, 60), Job("b", 5, 3, 30, profile="vgg16"), Job("c", 5, 1, 40, 2)]
CLUSTER = "2x2"
Edit = Callable[[pl.DataFrame], pl.DataFrame]


def sound(policy: str) -> Result:
    return play(CLUSTER, JOBS, policy, lease_s=10.0, restart_s=2.0, checkpoint_s=1.0)


def found(result: Result) -> set[str]:
    problems = audit(result, workload(JOBS), Cluster.parse(CLUSTER))
    return {problem.split(":")[0] for problem in problems}


def plus(column: str, by: float, row: int = 0) -> Edit:
    at = pl.int_range(pl.len()) == row
    return lambda table: table.with_columns(
        pl.when(at).then(pl.col(column) + by).otherwise(column).alias(column)
    )


@pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])
def test_sound_results_pass(policy: str) -> None:
    assert found(sound(policy)) == set()


@pytest.mark.parametrize(
    ("table", "edit", "check"),
    [
        ("leases", plus("gpu_first", 1), "leases_name_gpus_that_exist"),
        ("leases", lambda t: t.with_columns(pl.col("end_s") + 1), "no_gpu_is_used_twice"),
        ("leases", plus("end_s", -1), "gpu_seconds_are_conserved"),
        ("leases", plus("end_s", 1e6), "leases_lie_in_the_life_of_their_app"),
        ("leases", plus("end_s", -0.5), "leases_end_on_time"),
        ("leases", plus("renewals", 1), "causes_fit_the_policy"),
        ("leases", lambda t: t.with_columns(cause=pl.lit("auction")), "causes_fit_the_policy"),
        ("leases", lambda t: t.slice(1), "nothing_stands_idle_in_vain"),
        ("leases", lambda t: t.with_columns(gpus=pl.lit(1, pl.Int64)), "gangs_are_whole"),
        ("jobs", plus("gpu_s", 1e-6), "gpu_seconds_are_conserved"),
        ("jobs", plus("work_gpu_s", -1.0), "every_job_has_one_final_state"),
        ("jobs", plus("start_s", -1.0), "every_job_has_one_final_state"),
        ("jobs", plus("preemptions", 1), "lone_jobs_can_be_replayed"),
        ("jobs", lambda t: t.with_columns(state=pl.lit("killed")), "every_job_has_one_final_state"),
        ("apps", plus("useful_gpu_s", 1e-3), "gpu_seconds_are_conserved"),
        ("apps", plus("switching_gpu_s", 1e-3), "lone_jobs_can_be_replayed"),
        ("apps", plus("end_s", 1.0), "apps_end_with_their_jobs"),
        ("apps", plus("n_avg", 1e-3), "counts_of_active_apps"),
        ("apps", plus("t_id_s", 1e-3), "rho_is_its_definition"),
        ("apps", plus("rho", 1e-3), "rho_is_its_definition"),
        ("apps", plus("rho_floor", 1e-3), "rho_is_its_definition"),
        ("apps", plus("queue_s", 1.0), "queues_start_at_arrival"),
        ("usage", plus("gpus_used", -1), "use_is_that_of_the_leases"),
        ("usage", plus("gpus_productive", -1), "gpu_seconds_are_conserved"),
        ("usage", plus("active_apps", 1), "use_is_that_of_the_leases"),
        ("usage", lambda t: t.reverse(), "use_is_that_of_the_leases"),
    ],
)
def test_forgeries_are_found(table: str, edit: Edit, check: str) -> None:
    result = sound("tiresias")
    forged = edit(result.frames[table])
    assert not forged.equals(result.frames[table])
    frames = {**result.frames, table: forged}
    assert check in found(Result(frames=frames, manifest=result.manifest))


def test_forged_auctions_are_found() -> None:
    result = sound("themis")
    for edit in (plus("winners", 100), plus("offered_gpus", 100), plus("objective", 100.0)):
        frames = {**result.frames, "auctions": edit(result.auctions)}
        assert "auctions_add_up" in found(Result(frames=frames, manifest=result.manifest))


def test_a_lease_that_outlasts_a_waiting_app_is_found() -> None:
    # Merge the first two leases of an app into one: it goes on at 10 although others wait.
    result = sound("tiresias")
    rows = result.leases.filter(pl.col("app_id") == "a").sort("start_s")
    longer = rows.slice(0, 1).with_columns(end_s=pl.lit(25.0), ended_by=pl.lit("job_end"))
    frames = {**result.frames, "leases": longer}
    assert "leases_end_when_somebody_waits" in found(
        Result(frames=frames, manifest=result.manifest)
    )


def test_forged_searches_are_found() -> None:
    jobs = [Job(f"a{k}", 0, 1, 70, 2, "a", iterations=7.0) for k in range(4)]
    for search, edit, check in (
        (Search("successive_halving"), plus("work_gpu_s", 5.0), "halving_drops_the_worse_half"),
        (
            Search("successive_halving"),
            lambda t: t.with_columns(state=pl.lit("done")),
            "halving_drops_the_worse_half",
        ),
        (Search("fixed"), lambda t: t, "no_app_is_above_its_cap"),
    ):
        result = play("1x8", jobs, "themis", searches={"a": search})
        frames = {**result.frames, "jobs": edit(result.jobs)}
        told = search._replace(max_gpus=3) if search.stopping == "fixed" else search
        problems = audit(
            Result(frames=frames, manifest=result.manifest),
            workload(jobs, searches={"a": told}),
            Cluster.parse("1x8"),
        )
        assert check in {problem.split(":")[0] for problem in problems}
        honest = workload(jobs, searches={"a": search})
        assert audit(result, honest, Cluster.parse("1x8")) == []
