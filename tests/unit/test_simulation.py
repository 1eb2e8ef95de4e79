"""The facade of the simulator: arguments, errors, notes, manifest, and odd workloads."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl
import pytest
from tests.audit.audit import audit
from tests.differential.small import Job, ends, play, spans, workload

import themis
from themis import Cluster, PolicyError, ScenarioError
from themis.workload.workload import Workload

ONE = [Job("a", 0, 1, 10)]
POLICIES = tuple(policy.name for policy in themis.POLICIES)


def test_aliases_give_the_same_result_under_the_full_name() -> None:
    las, full = (play("1x1", [*ONE, Job("b", 0, 1, 10)], name) for name in ("las", "tiresias"))
    assert las.policy == full.policy == "tiresias"
    assert las.leases.equals(full.leases)


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(PolicyError, match=r"fifoo.*fifo"):
        play("1x1", ONE, "fifoo")
    nothing: Any = None
    with pytest.raises(PolicyError, match="policy is None: expected one of themis"):
        play("1x1", ONE, nothing)


@pytest.mark.parametrize("policy", ["themis", "tiresias", "max_rho", "fifo"])
def test_a_run_longer_than_the_clock_is_refused(policy: str) -> None:
    jobs = [Job(f"j{number}", 0, 1, 1e12) for number in range(6)]
    with pytest.raises(themis.ThemisError, match=r"beyond 4\.6e12 seconds"):
        play("1x1", jobs, policy, lease_s=1e12)
    assert play("1x1", jobs, policy, lease_s=1e12, horizon_s=1e12).summary()["jobs"] == 6


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, "0", None])
def test_bad_seeds_are_refused(seed: Any) -> None:  # noqa: ANN401 - anything at all
    with pytest.raises(ScenarioError, match="seed is"):
        themis.simulate(workload(ONE), Cluster.parse("1x1"), seed=seed)


def test_the_largest_seed_is_accepted() -> None:
    assert play("1x1", ONE, "themis", seed=2**64 - 1).seed == 2**64 - 1


def test_unknown_settings_are_refused_with_the_nearest_one() -> None:
    with pytest.raises(ScenarioError, match="lease_s"):
        play("1x1", ONE, "themis", lease=5)
    with pytest.raises(ScenarioError, match="fairness_knob"):
        play("1x1", ONE, "themis", fairness_knob=1.5)


def test_profiles_of_ones_own() -> None:
    # Two machines in one rack at 0.4: 80 / (2 x 0.4) = 100.
    jobs = [Job("a", 0, 2, 80, profile="mine")]
    load, cluster = workload(jobs), Cluster.parse("2x1")
    own = themis.simulate(load, cluster, policy="fifo", profiles={"mine": (1, 1, 0.4, 0.4)})
    assert ends(own) == {"a": 100}
    assert own.manifest["notes"] == []
    with pytest.raises(ScenarioError, match="profile 'mine'"):
        themis.simulate(load, cluster, profiles={"mine": (1, 1, 0.4, 0.5)})


def test_profiles_that_nobody_knows_are_noted() -> None:
    jobs = [Job("a", 0, 2, 80, profile="mine"), Job("b", 0, 2, 80), Job("c", 0, 1, 8)]
    result = play("2x1", jobs, "fifo")
    notes = result.manifest["notes"]
    assert isinstance(notes, list)
    nameless, unknown = notes
    assert nameless.startswith("1 of 3 jobs run on several GPUs and name no placement profile")
    assert unknown.startswith("1 jobs name an unknown profile (mine): cold_start")
    # S = 1.1 in a rack: 80 x 1.1 / 2.
    assert ends(result)["a"] == pytest.approx(44)


def test_the_profile_of_an_app_holds_for_jobs_without_one() -> None:
    load = workload([Job("a", 0, 2, 70), Job("b", 0, 2, 70, profile="compute")])
    apps = load.apps.with_columns(profile=pl.lit("network"))
    both = Workload(apps=apps, jobs=load.jobs)
    result = themis.simulate(both, Cluster.parse("4x1"), policy="fifo")
    assert ends(result) == pytest.approx({"a": 70 / (2 * 0.7), "b": 70 / (2 * 0.98)}, abs=1e-5)


def test_progress_is_told_and_its_exceptions_end_the_run() -> None:
    jobs = [Job(f"j{k:04d}", k, 1, 0.5) for k in range(2000)]
    told: list[tuple[int, int, float]] = []
    play("1x1", jobs, "fifo", progress=lambda *values: told.append(values))
    assert len(told) >= 2
    assert [jobs for _, jobs, _ in told] == [2000] * len(told)
    assert told == sorted(told)
    assert all(done <= 2000 and at_s < 2000 for done, _, at_s in told)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play("1x1", jobs, "fifo", progress=stop)


def test_the_manifest_says_what_was_run() -> None:
    result = play("2x(1x2)", [*ONE, Job("b", 0, 9, 1)], "fifo", seed=5, lease_s=60)
    manifest = result.manifest
    assert (manifest["policy"], manifest["seed"]) == ("fifo", 5)
    assert manifest["job_states"] == {"done": 1, "infeasible": 1}
    assert manifest["app_states"] == {"done": 1, "infeasible": 1}
    assert manifest["themis_version"] == themis.__version__
    settings, cluster = manifest["settings"], manifest["cluster"]
    assert isinstance(settings, dict)
    assert isinstance(cluster, dict)
    assert (settings["lease_s"], settings["payment"]) == (60, "lottery")
    assert (cluster["spec"], cluster["gpus"]) == ("2x(1x2)", 4)
    assert json.loads(json.dumps(dict(manifest))) == manifest


@pytest.mark.parametrize("policy", POLICIES)
def test_every_corner_of_rho_is_a_number_or_a_null_with_a_reason(policy: str) -> None:
    jobs = [
        Job("short", 0, 1, 1),  # shorter than a round
        *(Job(f"many{k}", 0, 1, 30, app="many") for k in range(9)),  # more jobs than GPUs
        Job("quick", 0, 1, 5, app="race"),
        Job("killed", 0, 1, 500, app="race"),
        Job("later", 400, 1, 500, app="race"),  # killed before it is submitted
        Job("cpu", 0, 0, 60),
        Job("nothing", 0, 2, 0),
        Job("huge", 0, 99, 10),
        Job("alone", 100_000, 1, 10),
    ]
    load, cluster = workload(jobs, first=["race"]), Cluster.parse("1x2")
    result = themis.simulate(load, cluster, policy=policy, lease_s=60)
    assert audit(result, load, cluster) == []
    rho = dict(result.apps.select("app_id", "rho").iter_rows())
    reason = dict(result.apps.select("app_id", "reason").iter_rows())
    assert {app for app, value in rho.items() if value is None} == {"cpu", "nothing", "huge"}
    assert all(reason[app] for app in ("cpu", "nothing", "huge"))
    assert all(math.isfinite(value) for value in rho.values() if value is not None)
    assert rho["alone"] == pytest.approx(1)
    states = dict(result.jobs.select("job_id", "state").iter_rows())
    assert (states["killed"], states["later"], states["huge"]) == ("killed", "killed", "infeasible")
    text = json.dumps(result.summary(), allow_nan=False)
    assert "rho_max" in text


@pytest.mark.parametrize("policy", POLICIES)
def test_times_of_three_thousand_years(policy: str) -> None:
    jobs = [Job("a", 0, 1, 1e11), Job("b", 1e11, 1, 1e11)]
    assert spans(play("1x1", jobs, policy)) == {"a": (0, 1e11), "b": (1e11, 2e11)}
    wide = play("1x8", [Job("w", 1e11, 8, 1e12)], policy)
    assert spans(wide) == {"w": (1e11, 2.25e11)}
    assert wide.apps.get_column("gpu_s").to_list() == [1e12]


def test_more_gpu_time_than_can_be_counted_is_refused() -> None:
    jobs = [Job(f"j{k}", 0, 8, 1e12, app="a") for k in range(12)]
    with pytest.raises(themis.ThemisError, match=r"1\.\d*e13 GPU-seconds"):
        play("16x8", jobs, "fifo")


@pytest.mark.parametrize("policy", POLICIES)
def test_leases_of_a_millisecond(policy: str) -> None:
    jobs = [Job("a", 0, 1, 0.02), Job("b", 0, 1, 0.02)]
    load, cluster = workload(jobs), Cluster.parse("1x1")
    options = {"lease_s": 0.001, "restart_s": 0.0, "checkpoint_s": 0.0}
    result = themis.simulate(load, cluster, policy=policy, **options)  # type: ignore[arg-type]
    assert audit(result, load, cluster) == []
    assert max(end for end in ends(result).values() if end is not None) == 0.04


@pytest.mark.parametrize("policy", ["themis", "tiresias", "max_rho"])
def test_many_equal_apps_share_in_turns(policy: str) -> None:
    jobs = [Job(f"j{k:02d}", 0, 1, 30) for k in range(30)]
    load, cluster = workload(jobs), Cluster.parse("3x2")
    options: dict[str, Any] = {"lease_s": 10.0, "restart_s": 0.0, "checkpoint_s": 0.0}
    result = themis.simulate(load, cluster, policy=policy, **options)
    assert audit(result, load, cluster) == []
    # 900 GPU-seconds on 6 GPUs, never idle while somebody waits.
    assert max(end for end in ends(result).values() if end is not None) == 150


@pytest.mark.parametrize(("policy", "knob"), [("themis", 1.0), ("tiresias", 0.8), ("max_rho", 0.8)])
def test_aligned_leases_bound_the_wait_of_the_largest_gang(policy: str, knob: float) -> None:
    # Single-GPU jobs arrive all the time at 75 % load; a gang of the whole cluster at 95.
    stream = [Job(f"s{k:03d}", 20 * k / 3, 1, 40) for k in range(300)]
    jobs = [*stream, Job("w", 95, 8, 800)]
    start, end = spans(play("1x8", jobs, policy, lease_s=100.0, fairness_knob=knob))["w"]
    assert start is not None
    assert end is not None
    # It has had no service and is worst off at the latest when it has waited for some rounds.
    assert start <= 500
    assert start % 100 == 0


def test_two_gangs_that_come_together_never_share_a_gpu() -> None:
    for policy in POLICIES:
        jobs = [Job("a", 0, 3, 90), Job("b", 0, 3, 90)]
        load, cluster = workload(jobs), Cluster.parse("1x4")
        result = themis.simulate(load, cluster, policy=policy)
        assert audit(result, load, cluster) == []
        assert min(row[0] for row in spans(result).values() if row[0] is not None) == 0


@pytest.mark.parametrize("policy", ["themis", "tiresias", "max_rho"])
def test_a_switch_longer_than_a_lease_still_lets_jobs_work(policy: str) -> None:
    """1,318 s by hand for tiresias: 43 s of switching, then work to the next multiple of 10 s."""
    jobs = [Job("a", 0, 1, 100), Job("b", 0, 1, 100)]
    result = play("1x1", jobs, policy, lease_s=10, restart_s=35, checkpoint_s=8)
    assert result.jobs.get_column("state").to_list() == ["done", "done"]
    assert audit(result, workload(jobs), Cluster.parse("1x1")) == []
    if policy == "tiresias":
        assert result.summary()["makespan_s"] == 1318


def test_notes_say_what_slaq_and_backfill_assume() -> None:
    curved = Job("b", 0, 1, 10, iterations=10.0, loss=(0.1, 1.0, 0.0))
    assert play("1x1", [curved], "slaq").manifest["notes"] == []
    assert play("1x1", [*ONE, curved], "slaq").manifest["notes"] == [
        "1 of 2 jobs have no loss curve: slaq serves them last, in order of arrival"
    ]
    notes = play("1x1", ONE, "fifo_backfill", request_factor=3).manifest["notes"]
    assert "requested times are unknown: 3 times what the job needs" in str(notes)
