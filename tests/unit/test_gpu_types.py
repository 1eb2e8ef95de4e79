"""GPU types: which a job may use, how fast it runs there, and what that does to rho."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from tests.differential.small import FREE_SWITCHES, Job, ends, play, spans, workload

import themis
from themis import Cluster, ScenarioError
from themis.profiles import ProfileInput
from themis.results.result import Result
from themis.workload.workload import Workload

TWO = "1x(1x4:a+1x4:b)"
FAST_A: Mapping[str, ProfileInput] = {"p": {"scores": [1, 1, 1, 1], "speeds": {"a": 2.0, "b": 0.5}}}
ALL_POLICIES = ("themis", "tiresias", "fifo", "fifo_backfill", "drf", "srtf", "static", "max_rho")


def typed(jobs: list[Job], types: Mapping[str, str]) -> Workload:
    """Return the workload of these jobs, some of whose apps are bound to GPU types."""
    load = workload(jobs)
    wanted = [types.get(app) for app in load.apps["app_id"]]
    return Workload(
        apps=load.apps.with_columns(gpu_types=pl.Series(wanted, dtype=pl.String)), jobs=load.jobs
    )


def run(
    jobs: list[Job], types: Mapping[str, str], policy: str = "themis", cluster: str = TWO
) -> Result:
    return themis.simulate(
        typed(jobs, types),
        Cluster.parse(cluster),
        policy=policy,
        profiles=FAST_A,
        **FREE_SWITCHES,
    )


def of_app(result: Result, app: str) -> dict[str, object]:
    return result.apps.row(by_predicate=pl.col("app_id") == app, named=True)


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_an_app_runs_on_its_types_only_and_at_their_speed(policy: str) -> None:
    # 400 GPU-s at speed 1: 4 GPUs of a do 8 a second, 4 of b do 2.
    jobs = [Job("x", 0, 4, 400, profile="p"), Job("y", 0, 4, 400, profile="p")]
    result = run(jobs, {"x": "a", "y": "b"}, policy)
    assert ends(result) == {"x": 50, "y": 200}
    where = dict(result.leases.group_by("app_id").agg(pl.col("machine").first()).iter_rows())
    assert where == {"x": "r0-m0", "y": "r0-m1"}
    assert result.jobs["work_gpu_s"].to_list() == [400, 400]


def test_a_bundle_of_two_types_runs_at_the_slower() -> None:
    # 8 GPUs: 8 x 0.5 = 4 GPU-s a second. Elastic, it takes the 4 fast ones instead: 8 a second.
    rigid = run([Job("x", 0, 8, 400, profile="p")], {})
    assert ends(rigid) == {"x": 100}
    elastic = run([Job("x", 0, 1, 400, max_gpus=8, profile="p")], {})
    assert ends(elastic) == {"x": 50}


def test_ideal_time_counts_gpus_in_the_apps_own_speed() -> None:
    # Alone: R_C is 4 x 2 + 4 x 0.5 = 10 for x, so that T_ID = 400 / 10; it takes 100 s on 8 GPUs at
    # the slower's speed. Bound to a: R_C is 8.
    free = of_app(run([Job("x", 0, 8, 400, profile="p")], {}), "x")
    assert (free["t_id_s"], free["rho"], free["rho_floor"]) == (40, 2.5, 2.5)
    bound = of_app(run([Job("x", 0, 4, 400, profile="p")], {"x": "a"}), "x")
    assert (bound["t_id_s"], bound["rho"], bound["rho_floor"]) == (50, 1, 1)
    slow = of_app(run([Job("x", 0, 4, 400, profile="p")], {"x": "b"}), "x")
    assert (slow["t_id_s"], slow["rho"]) == (200, 1)


def test_gpu_time_on_a_slow_type_is_slowed_but_well_placed() -> None:
    # y may use both, but x has the fast ones: 400 / 2 = 200 s on b, where a quarter is useful.
    jobs = [Job("x", 0, 4, 4000, profile="p"), Job("y", 1, 4, 400, profile="p")]
    app = of_app(run(jobs, {"x": "a"}, "fifo"), "y")
    assert (app["gpu_s"], app["useful_gpu_s"], app["slowed_gpu_s"]) == (800, 200, 600)
    assert app["placement_score"] == 1


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_too_few_gpus_of_the_right_type_are_known_at_submission(policy: str) -> None:
    # Case 15, by type: five of a there are not, and c nowhere; the third runs under every policy.
    jobs = [Job("big", 0, 5, 10), Job("none", 0, 1, 10), Job("small", 1, 1, 10)]
    result = run(jobs, {"big": "a", "none": "c|d", "small": "b|c"}, policy)
    assert spans(result) == {"big": (None, None), "none": (None, None), "small": (1, 11)}
    assert result.jobs["reason"].to_list() == [
        "needs 5 GPUs of type a, the cluster has 4",
        "needs 1 GPUs of type c|d, the cluster has 0",
        None,
    ]
    assert result.apps["state"].to_list() == ["infeasible", "infeasible", "done"]


@pytest.mark.parametrize("policy", [name for name in ALL_POLICIES if name != "fifo"])
def test_the_shortage_of_a_type_blocks_nobody_who_does_not_want_it(policy: str) -> None:
    # a is taken; the second wants it too and waits; the third wants b, which is free.
    jobs = [Job("x", 0, 4, 4000), Job("y", 1, 4, 400), Job("z", 2, 4, 40)]
    result = run(jobs, {"x": "a", "y": "a", "z": "b"}, policy)
    assert spans(result)["z"] == (2, 12)


def test_strict_order_blocks_across_types_and_says_so() -> None:
    jobs = [Job("x", 0, 4, 4000), Job("y", 1, 4, 400), Job("z", 2, 4, 40)]
    result = run(jobs, {"x": "a", "y": "a", "z": "b"}, "fifo")
    assert spans(result) == {"x": (0, 1000), "y": (1000, 1100), "z": (1000, 1010)}
    assert "strict order" in str(result.manifest["notes"])
    alone = play(TWO, jobs, "fifo")
    assert "strict order" not in str(alone.manifest["notes"])


def test_backfill_looks_at_the_types_that_the_head_waits_for() -> None:
    # The head waits for a; a long job on b does not delay it, one on a would.
    jobs = [
        Job("x", 0, 3, 300), Job("head", 1, 4, 400), Job("b", 2, 4, 4000), Job("a", 2, 1, 1000),
    ]  # fmt: skip
    result = run(jobs, {"x": "a", "head": "a", "b": "b", "a": "a"}, "fifo_backfill")
    assert spans(result) == {"x": (0, 100), "head": (100, 200), "b": (2, 1002), "a": (200, 1200)}


def test_types_that_no_one_names_are_no_types() -> None:
    load = typed([Job("x", 0, 2, 10)], {"x": "v100"})
    assert themis.simulate(load, Cluster.parse("1x2")).summary()["jobs_done"] == 1


@pytest.mark.parametrize("policy", ["themis", "tiresias"])
def test_a_cluster_of_one_named_type_gives_the_same_bytes(policy: str) -> None:
    jobs = [Job(f"j{k}", 10 * k, 1 + k % 4, 500 + 37 * k, max_gpus=4) for k in range(12)]
    plain, named = (play(text, jobs, policy) for text in ("2x(2x4)", "2x(2x4:h100)"))
    for table in ("apps", "jobs", "leases", "auctions", "usage"):
        assert getattr(plain, table).equals(getattr(named, table))


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({}, "it is empty: expected scores, speeds or scaling"),
        ({"speed": {"a": 1}}, "key 'speed' is unknown"),
        ({"speeds": {}}, "speeds is {}"),
        ({"speeds": {"a": 0}}, "speed on 'a' is 0: expected a number from 0.001 to 1000"),
        ({"speeds": {"a": float("nan")}}, "speed on 'a' is nan"),
        ({"scores": [1, 1, 1]}, "has 3 scores"),
    ],
)
def test_profiles_are_checked(profile: Any, message: str) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(ScenarioError, match=message):
        themis.simulate(
            workload([Job("x", 0, 1, 1)]), Cluster.parse("1x1"), profiles={"p": profile}
        )


def test_a_speed_that_is_not_told_is_noted() -> None:
    result = themis.simulate(
        workload([Job("x", 0, 1, 10, profile="p")]),
        Cluster.parse("1x(1x1:a+1x1:c)"),
        profiles={"p": {"speeds": {"a": 0.5}}},
    )
    assert "profile 'p' says no speed on c: 1 is assumed" in str(result.manifest["notes"])
    assert ends(result) == {"x": 10}


def test_the_manifest_tells_gpu_time_by_type() -> None:
    # x has a for 50 of 200 seconds, y has b all the time.
    jobs = [Job("x", 0, 4, 400, profile="p"), Job("y", 0, 4, 400, profile="p")]
    assert run(jobs, {"x": "a", "y": "b"}).manifest["gpu_types"] == {
        "a": {"gpus": 4, "gpu_s": 200, "utilisation": 0.25},
        "b": {"gpus": 4, "gpu_s": 800, "utilisation": 1},
    }


def apart(load: Workload, *job_ids: str) -> Workload:
    """Return the workload in which these jobs mix no types."""
    mixes = ~pl.col("job_id").is_in(job_ids)
    return Workload(apps=load.apps, jobs=load.jobs.with_columns(mixes_types=mixes))


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_a_job_that_does_not_mix_waits_for_one_type(policy: str) -> None:
    # 2 of a and 2 of b are free: x takes all at S = 1.1, or waits for the 4 of a until 100.
    jobs = [Job("w", 0, 2, 200), Job("v", 0, 4, 1200), Job("x", 1, 4, 40)]
    load = typed(jobs, {"w": "a", "v": "b"})
    ends_of = {}
    for mixes in (True, False):
        last = load if mixes else apart(load, "x")
        cluster = Cluster.parse("1x(1x4:a+1x6:b)")
        result = themis.simulate(last, cluster, policy=policy, **FREE_SWITCHES)
        assert themis.audit(result).passed
        ends_of[mixes] = spans(result)["x"]
    assert ends_of == {True: (1, 12), False: (100, 110)}


def test_too_few_gpus_of_one_type_are_known_at_submission() -> None:
    jobs = [Job("x", 0, 5, 10), Job("y", 0, 4, 10), Job("z", 0, 5, 10)]
    load = apart(typed(jobs, {"x": "a|b"}), "x", "y")
    result = themis.simulate(load, Cluster.parse(TWO), **FREE_SWITCHES)
    assert result.jobs["state"].to_list() == ["infeasible", "done", "done"]
    assert result.jobs["reason"][0] == "needs 5 GPUs, all of one type, the cluster has 4"


def test_the_auditor_sees_a_job_on_two_types_that_it_may_not_mix() -> None:
    jobs = [Job("w", 0, 2, 200), Job("v", 0, 4, 1200), Job("x", 1, 4, 40)]
    load = typed(jobs, {"w": "a", "v": "b"})
    result = themis.simulate(load, Cluster.parse("1x(1x4:a+1x6:b)"), **FREE_SWITCHES)
    assert themis.audit(result).passed
    report = themis.audit(result, workload=apart(load, "x"))
    assert [found.rule for found in report.findings] == ["lone_jobs_did_the_work_of_their_leases"]


def test_a_check_knows_which_jobs_never_find_their_gang_on_one_type() -> None:
    load = apart(typed([Job("x", 0, 5, 10), Job("y", 0, 5, 10)], {}), "x")
    report = load.check(Cluster.parse(TWO))
    assert report.load is not None
    assert report.load.infeasible == ("x",)
