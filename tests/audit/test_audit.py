"""The audit itself: a sound result passes, and each kind of forgery is found."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from tests.audit.audit import audit
from tests.differential.small import Job, Search, play, workload

import themis
from themis.auditing.rules import RULES
from themis.cluster.cluster import Cluster
from themis.policies.catalogue import POLICIES
from themis.results.result import Result

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


def to(column: str, value: str, row: int = 0) -> Edit:
    at = pl.int_range(pl.len()) == row
    changed = pl.when(at).then(pl.lit(value)).otherwise(column).alias(column)
    return lambda table: table.with_columns(changed)


GONE = pl.DataFrame({"at_s": [5.0], "machine": ["r0-m0"], "gpus": [0], "cause": ["planned"]})


@pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])
def test_sound_results_pass(policy: str) -> None:
    assert found(sound(policy)) == set()


@pytest.mark.parametrize(
    ("table", "edit", "check"),
    [
        ("leases", plus("gpu_first", 1), "leases_name_gpus_that_exist"),
        ("leases", plus("slot", 1), "leases_name_gpus_that_exist"),
        ("leases", to("machine", "m9"), "leases_name_gpus_that_exist"),
        ("leases", plus("gpus", 1), "leases_name_gpus_that_exist"),
        ("leases", lambda t: t.with_columns(pl.col("end_s") + 1), "no_gpu_is_used_twice"),
        ("leases", lambda t: pl.concat([t, t.slice(0, 1)]), "no_gpu_is_used_twice"),
        ("leases", plus("end_s", -1), "gpu_seconds_add_up"),
        ("leases", plus("end_s", -1), "gpu_seconds_of_use_add_up"),
        ("leases", plus("end_s", -1), "use_is_that_of_the_leases"),
        ("leases", plus("end_s", 1e6), "leases_lie_in_the_life_of_their_app"),
        ("leases", plus("start_s", -1), "leases_lie_in_the_life_of_their_app"),
        ("leases", to("app_id", "zz"), "leases_lie_in_the_life_of_their_app"),
        ("leases", to("app_id", "b"), "gangs_are_whole"),
        ("leases", plus("end_s", -0.5), "leases_end_on_time"),
        ("leases", plus("renewals", 1), "causes_fit_the_policy"),
        ("leases", to("cause", "auction"), "causes_fit_the_policy"),
        ("leases", to("ended_by", "boredom"), "causes_fit_the_policy"),
        ("leases", lambda t: t.slice(1), "nothing_stands_idle_in_vain"),
        ("leases", lambda t: t.slice(1), "jobs_start_with_their_gang"),
        ("leases", lambda t: t.with_columns(gpus=pl.lit(1, pl.Int64)), "gangs_are_whole"),
        ("jobs", plus("gpu_s", 1e-6), "gpu_seconds_add_up"),
        ("jobs", plus("work_gpu_s", -1.0), "work_is_neither_lost_nor_invented"),
        ("jobs", plus("work_gpu_s", 1.0), "work_is_neither_lost_nor_invented"),
        ("jobs", plus("work_gpu_s", 1.0), "lone_jobs_did_the_work_of_their_leases"),
        ("jobs", plus("start_s", -1.0), "jobs_have_one_final_state"),
        ("jobs", plus("start_s", -1.0), "jobs_start_with_their_gang"),
        ("jobs", plus("start_s", 1e6), "jobs_have_one_final_state"),
        ("jobs", plus("submit_s", -1.0, row=1), "jobs_have_one_final_state"),
        ("jobs", to("state", "killed"), "jobs_have_one_final_state"),
        ("jobs", to("state", "lost"), "jobs_have_one_final_state"),
        ("jobs", to("state", "unfinished"), "apps_end_with_their_jobs"),
        ("jobs", to("state", "failed"), "counts_add_up"),
        ("jobs", lambda t: t.slice(1), "counts_add_up"),
        ("jobs", lambda t: pl.concat([t, t.slice(0, 1)]), "counts_add_up"),
        ("jobs", plus("preemptions", 1), "counts_add_up"),
        ("jobs", plus("preemptions", 1), "lone_jobs_did_the_work_of_their_leases"),
        ("jobs", plus("migrations", 1), "lone_jobs_did_the_work_of_their_leases"),
        ("apps", plus("useful_gpu_s", 1e-3), "gpu_seconds_add_up"),
        ("apps", plus("switching_gpu_s", 1e-3), "lone_jobs_did_the_work_of_their_leases"),
        ("apps", plus("migrations", 1), "counts_add_up"),
        ("apps", plus("end_s", 1.0), "apps_end_with_their_jobs"),
        ("apps", plus("end_s", -1.0), "apps_end_with_their_jobs"),
        ("apps", to("state", "infeasible"), "apps_end_with_their_jobs"),
        ("apps", to("state", "waiting"), "apps_have_one_final_state"),
        ("apps", plus("n_avg", 1e-3), "contention_is_that_of_the_lives"),
        ("apps", plus("t_id_s", 1e-3), "rho_is_its_definition"),
        ("apps", plus("t_sh_s", 1e-3), "rho_is_its_definition"),
        ("apps", plus("rho", 1e-3), "rho_is_its_definition"),
        ("apps", plus("rho_floor", 1e3), "rho_is_its_definition"),
        ("apps", plus("rho_floor", 1e-3), "ideal_times_are_those_of_the_definitions"),
        ("apps", plus("queue_s", 1.0), "apps_have_one_final_state"),
        ("apps", plus("first_gpu_s", -1.0), "apps_have_one_final_state"),
        ("apps", plus("first_gpu_s", 1.0), "leases_lie_in_the_life_of_their_app"),
        ("capacity", lambda _: GONE, "leases_begin_on_gpus_there_are"),
        ("usage", plus("gpus_used", -1), "use_is_that_of_the_leases"),
        ("usage", plus("gpus_used", 9), "use_is_in_order"),
        ("usage", plus("gpus_productive", -1), "gpu_seconds_of_use_add_up"),
        ("usage", plus("active_apps", 1), "use_is_that_of_the_leases"),
        ("usage", plus("waiting_apps", 1, row=1), "use_is_that_of_the_leases"),
        ("usage", lambda t: t.reverse(), "use_is_in_order"),
        ("usage", lambda t: pl.concat([t.slice(0, 1), t]), "use_is_in_order"),
    ],
)
def test_forgeries_are_found(table: str, edit: Edit, check: str) -> None:
    result = sound("tiresias")
    forged = edit(result.frames[table])
    assert not forged.equals(result.frames[table])
    frames = {**result.frames, table: forged}
    assert check in found(Result(frames=frames, manifest=result.manifest))


def test_forged_weights_are_found() -> None:
    result = play(CLUSTER, JOBS, "tiresias", lease_s=10.0, weights={"a": 3.0})
    light, heavy = (
        themis.audit(Result(result.frames, result.manifest), workload(JOBS, weights=weights))
        for weights in (None, {"a": 3.0})
    )
    assert {one.rule for one in light.findings} == {"contention_is_that_of_the_lives"}
    assert heavy.passed
    unknown = themis.audit(Result(result.frames, result.manifest))
    assert unknown.passed
    assert "contention_is_that_of_the_lives" in unknown.skipped


def test_forged_tenants_are_found() -> None:
    owners = {"a": "x", "b": "y"}
    result = play(CLUSTER, JOBS, "static", owners=owners, tenants={"x": {"guaranteed": 0.4}})
    assert themis.audit(result).passed
    for table in ({"guaranteed": 0.5}, {"weight": 1.1}, {}):
        manifest = {**result.manifest, "tenants": {"x": table}}
        found = themis.audit(Result(result.frames, manifest)).findings
        assert {one.rule for one in found} == {"contention_is_that_of_the_lives"}


@pytest.mark.parametrize(
    ("quota", "problem"),
    [
        ([[0, 2]], "a lease begins above the quota"),
        ([[0, 3], [12, 1]], "a lease begins above the quota"),
        ([[0, 3], [1, 2]], "above the quota for longer than a lease"),
    ],
)
def test_forged_quotas_are_found(quota: list[list[float]], problem: str) -> None:
    # x holds 3 GPUs up to 20, on leases of 10 that go on unopposed.
    jobs = [Job("a", 0, 2, 40), Job("b", 0, 1, 20)]
    result = play("1x3", jobs, "drf", lease_s=10.0, owners=dict.fromkeys("ab", "x"))
    forged = {**result.manifest, "tenants": {"x": {"quota_gpus": quota}}}
    if problem.startswith("a lease") and len(quota) > 1:
        # The lease of b is two, the second from 13 on.
        rows = result.leases.filter(app_id="b")
        parts = (rows.with_columns(end_s=13.0), rows.with_columns(start_s=13.0))
        leases = pl.concat([result.leases.filter(app_id="a"), *parts])
    else:
        leases = result.leases
    told = Result({**result.frames, "leases": leases}, forged, result.inputs)
    found = {one.rule: one for one in themis.audit(told).findings}
    examples = found["tenants_stay_below_their_quotas"].examples
    assert problem in {row["problem"] for row in examples}


def test_every_rule_finds_some_forgery() -> None:
    marks = test_forgeries_are_found.pytestmark  # type: ignore[attr-defined]
    forged = {check for _, _, check in marks[0].args[1]}
    elsewhere = {
        *("apps_stay_below_their_caps", "auctions_are_in_order", "figures_are_finite"),
        *("machines_have_what_their_gpus_take", "tenants_stay_below_their_quotas"),
    }
    assert {rule.name for rule in RULES} - forged == elsewhere


@pytest.mark.parametrize(
    ("table", "edit", "check"),
    [
        ("leases", plus("gpu_milli", 1, row=1), "no_gpu_is_used_twice"),
        ("leases", plus("gpu_milli", -1, row=1), "gangs_are_whole"),
        ("leases", plus("gpu_milli", -1, row=1), "gpu_seconds_add_up"),
        ("leases", plus("gpu_milli", -500), "causes_fit_the_policy"),
        ("leases", plus("gpu_first", 1), "use_is_that_of_the_leases"),
        ("leases", plus("end_s", 1.0, row=1), "gpu_seconds_add_up"),
        ("jobs", plus("gpu_milli", 1), "work_is_neither_lost_nor_invented"),
        ("jobs", plus("gpu_s", 2e-6), "gpu_seconds_add_up"),
        ("usage", plus("gpus_productive", -0.001), "gpu_seconds_of_use_add_up"),
    ],
)
def test_forged_shares_of_gpus_are_found(table: str, edit: Edit, check: str) -> None:
    jobs = [Job("a", 0, 1, 15, gpu_milli=500), Job("b", 0, 1, 10, gpu_milli=500)]
    result = play("1x2", [*jobs, Job("c", 2, 1, 5)], "tiresias", lease_s=10.0)
    cluster, load = Cluster.parse("1x2"), workload([*jobs, Job("c", 2, 1, 5)])
    assert themis.audit(result, load, cluster).passed
    frames = {**result.frames, table: edit(result.frames[table])}
    report = themis.audit(Result(frames, result.manifest), load, cluster)
    assert check in {broken.rule for broken in report.findings}


def test_forged_auctions_are_found() -> None:
    result = sound("themis")
    for edit in (plus("winners", 100), plus("offered_gpus", 100), plus("objective", 100.0)):
        frames = {**result.frames, "auctions": edit(result.auctions)}
        assert "auctions_are_in_order" in found(Result(frames=frames, manifest=result.manifest))


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
        (Search("fixed"), lambda t: t, "apps_stay_below_their_caps"),
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
