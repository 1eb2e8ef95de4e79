from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import themis
from themis.errors import PolicyError, ScenarioError, ThemisError, TraceError
from themis.files.atomic_directory import json_text
from themis.metrics.catalogue import CATALOGUE
from themis.scenario.scenario import Scenario
from themis.scenario.tables import SweepTable
from themis.settings.overrides import SETTING_PLACES
from themis.sweeps import SweepProgress, load_sweep, sweep
from themis.sweeps.address import Addresses
from themis.sweeps.axes import parse_axes, points
from themis.sweeps.local import _Worker, play_locally
from themis.sweeps.play import Task, inputs_only
from themis.sweeps.result import SweepRun
from themis.sweeps.store import open_store

SMALL: dict[str, Any] = {
    "cluster": {"spec": "1x(2x4)"},
    "workload": {"generate": "demo", "params": {"apps": 3, "jobs_max": 4}},
}


def scenario(**changes: object) -> Scenario:
    return Scenario.parse({**SMALL, **changes}, directory=Path())


def grid(axes: Mapping[str, Any], base: Scenario | None = None) -> list[dict[str, object]]:
    base = base or scenario()
    found = parse_axes(base.sweep, axes, seed=base.seed)
    return [point.values for point in points(base, found, directory=Path())]


def test_the_grid_is_the_product_and_its_first_axis_changes_last() -> None:
    assert grid({"lease_s": [300, 600], "policy": ["themis", "las"]}) == [
        {"lease_s": 300.0, "policy": "themis"},
        {"lease_s": 300.0, "policy": "las"},
        {"lease_s": 600.0, "policy": "themis"},
        {"lease_s": 600.0, "policy": "las"},
    ]


def test_a_preset_on_an_axis_lies_under_what_the_scenario_sets() -> None:
    base = scenario(policy={"payment": "lease"})
    axes = parse_axes(None, {"preset": ["none", "nsdi20"], "lease_s": [300]}, seed=0)
    found = [point.scenario for point in points(base, axes, directory=Path())]
    assert [one.preset for one in found] == [None, "nsdi20"]
    assert [one.policy.payment for one in found] == ["lease", "lease"]
    assert [one.policy.filter_key for one in found] == ["best_case", "holdings"]
    assert [one.settings.lease_s for one in found] == [300, 300]
    with pytest.raises(ScenarioError, match="the scenario has the preset nsdi20 already"):
        list(points(scenario(preset="nsdi20"), axes, directory=Path()))


def test_values_are_typed_as_the_scenario_has_them() -> None:
    values = [row["fairness_knob"] for row in grid({"fairness_knob": [0, 1, np.float64(0.5)]})]
    assert values == [0.0, 1.0, 0.5]
    assert {type(value) for value in values[:2]} == {float}
    seeds = [row["seed"] for row in grid({"seed": np.arange(2)})]
    assert [(seed, type(seed)) for seed in seeds] == [(0, int), (1, int)]
    assert grid({"horizon_s": ["none", 60]}) == [{"horizon_s": None}, {"horizon_s": 60.0}]


def test_every_kind_of_axis_reaches_its_place() -> None:
    axes = {
        "cluster": ["2x8", 4], "load": [2], "policy": ["fifo"], "seed": [7], "lease_s": [60],
        "workload.params.apps": [5], "workload.window.end_s": [1000], "policy.t_id": ["paper"],
    }  # fmt: skip
    base = scenario()
    first, second = points(base, parse_axes(None, axes, seed=0), directory=Path())
    one = first.scenario
    assert (one.cluster.spec, second.scenario.cluster.spec) == ("2x8", "4")
    assert (one.workload.load, one.policy.name, one.seed) == (2.0, "fifo", 7)
    assert (one.settings.lease_s, one.workload.params["apps"]) == (60.0, 5)
    assert one.workload.window is not None
    assert one.workload.window.end_s == 1000
    assert one.workload.params["jobs_max"] == base.workload.params["jobs_max"]


def test_a_cluster_axis_takes_files_and_replaces_all_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("", encoding="utf-8")
    base = scenario(cluster={"machines": [{"machine": "m", "rack": "r", "gpus": 2}]})
    axes = parse_axes(None, {"cluster": ["c.toml", "4x8"]}, seed=0)
    found = [point.scenario.cluster for point in points(base, axes, directory=tmp_path)]
    assert [(table.file, table.spec) for table in found] == [
        (str(tmp_path / "c.toml"), None),
        (None, "4x8"),
    ]


def test_axes_of_the_scenario_may_be_nested_and_are_replaced_by_those_given() -> None:
    table = {"axes": {"policy": {"name": ["fifo"]}, "lease_s": [60, 120]}, "seeds": 2}
    base = scenario(sweep=table, seed=5)
    assert [tuple(row.values()) for row in grid({"lease_s": [30]}, base)] == [
        ("fifo", 30.0, 5),
        ("fifo", 30.0, 6),
    ]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"fairness_knb": [1]}, "fairness_knb: unknown key .did you mean 'fairness_knob'"),
        ({"polcy": ["fifo"]}, "polcy: unknown key .did you mean 'policy'"),
        ({"policy.fairnes_knob": [1]}, "unknown key .did you mean 'fairness_knob'"),
        ({"polcy.name": [1]}, "polcy: unknown key .did you mean 'policy'"),
        ({"fairness_knob": [0.5, 2]}, "fairness_knob = 2: must be <= 1"),
        ({"lease_s": ["long"]}, "lease_s = 'long': expected a number"),
        ({"payment": ["lotery"]}, "payment = 'lotery': expected one of lottery"),
        ({"seed": [-1]}, "seed = -1: must be >= 0"),
        ({"lease_s": []}, "axis lease_s has no value"),
        ({"lease_s": 60}, "axis lease_s is 60: expected a list"),
        ({"policy": "fifo"}, "axis policy is 'fifo': expected a list"),
        ({"lease_s": [60, 60.0]}, "axis lease_s: value 60.0 is given twice"),
        ({"lease_s": [1], "settings.lease_s": [2]}, "axes lease_s and settings.lease_s are the"),
        ({"sweep.seeds": [1]}, "axis sweep.seeds: is the same in all runs"),
        ({"workload.trace": ["a.csv"]}, "expected exactly one of trace or generate, found both"),
        ({}, "no axis to vary"),
    ],
)
def test_bad_axes_are_refused(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        grid(axes)


def test_seeds_and_an_axis_of_seeds_are_refused_together() -> None:
    with pytest.raises(ScenarioError, match="seeds is given and there is an axis seed"):
        parse_axes(SweepTable(seeds=2), {"seed": [1]}, seed=0)


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ({"policy": ["fifo", "las", "thems"]}, PolicyError, "did you mean 'themis'"),
        ({"cluster": ["1x(2x4)", "huge"]}, themis.ClusterError, "huge"),
        ({"workload.params.lod": [1]}, TraceError, "lod: unknown key .did you mean 'load'"),
        ({"workload.generate": ["dmo"]}, TraceError, "did you mean 'demo'"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_written(
    axes: dict[str, Any], error: type[ThemisError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        sweep(SMALL, axes, out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_no_setting_is_named_like_a_column_of_the_table() -> None:
    assert not {*SETTING_PLACES, "policy", "load", "cluster", "seed"} & {
        *CATALOGUE, "run", "state", "error",
    }  # fmt: skip


def test_an_address_changes_with_all_that_a_result_depends_on(tmp_path: Path) -> None:
    trace, machines = tmp_path / "t.csv", tmp_path / "c.toml"
    trace.write_text("one", encoding="utf-8")
    machines.write_text("one", encoding="utf-8")

    def address(**more: object) -> str:
        tables: dict[str, object] = {"workload": {"trace": str(trace)}} | more
        return Addresses().of(scenario(**tables))

    on_file: dict[str, object] = {"cluster": {"file": str(machines)}}
    found = [
        address(), address(seed=1), address(policy={"name": "fifo"}),
        address(settings={"lease_s": 60}), address(cluster={"spec": "4"}), address(**on_file),
    ]  # fmt: skip
    assert address(settings={"lease_s": 600}, sweep={"seeds": 3}) == found[0]
    trace.write_text("two", encoding="utf-8")
    found += [address(), address(**on_file)]
    machines.write_text("two", encoding="utf-8")
    found.append(address(**on_file))
    assert len(set(found)) == len(found)


def test_a_missing_trace_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = {**SMALL, "workload": {"trace": str(tmp_path / "none.csv")}}
    with pytest.raises(TraceError, match=r"none.csv: no such file"):
        sweep(table, {"seed": [1]}, out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("workload", "draws"),
    [
        ({"generate": "demo"}, True),
        ({"generate": "demo", "params": {"seed": 3}}, False),
        ({"generate": "demo", "params": {"seed": 3}, "sample": 0.5}, True),
        ({"trace": "t.csv"}, False),
        ({"trace": "t.csv", "sample": 0.5}, True),
        ({"trace": "t.csv", "transform": [{"kind": "sample", "n": 2, "seed": 1}]}, False),
    ],
)
def test_runs_share_a_workload_unless_the_seed_draws_it(
    workload: dict[str, object], *, draws: bool
) -> None:
    one, other = (
        scenario(workload=workload, seed=seed, policy={"name": name})
        for seed, name in ((1, "fifo"), (2, "las"))
    )
    assert (inputs_only(one) != inputs_only(other)) == draws


def test_a_sweep_without_a_directory_keeps_its_results_as_long_as_it_lives() -> None:
    told: list[tuple[int, int, bool]] = []
    progress: SweepProgress = lambda done, total, run: told.append((done, total, run is None))  # noqa: E731
    done = sweep(SMALL, {"policy": ["fifo", "las"]}, workers=1, progress=progress)
    assert told == [(0, 2, True), (1, 2, False), (2, 2, False)]
    assert done.complete
    assert done.runs.select("policy", "state").rows() == [("fifo", "done"), ("las", "done")]
    result = done.result(1)
    assert result.policy == "tiresias"
    assert result.summary()["rho_max"] == done.runs["rho_max"][1]
    expected = themis.simulate(*scenario().build_inputs(), policy="las")
    assert result.apps.equals(expected.apps)
    place = done.directory
    assert place.is_dir()
    del done
    assert not place.exists()


def test_a_sweep_is_a_comparison_of_its_combinations() -> None:
    axes: dict[str, Any] = {
        "policy": ["fifo", "themis"], "lease_s": [60, 600], "seed": [0, 3],
    }  # fmt: skip
    compared = sweep(SMALL, axes, workers=2).comparison()
    assert compared.seeds == [0, 3]
    assert compared.policies == [
        "fifo, lease_s=60", "fifo, lease_s=600", "themis, lease_s=60", "themis, lease_s=600",
    ]  # fmt: skip
    assert compared.complete
    inputs = scenario(seed=3).build_inputs()
    alone = themis.simulate(*inputs, policy="themis", seed=3, lease_s=60)
    assert compared.results["themis, lease_s=60", 3].apps.equals(alone.apps)


def test_medians_over_seeds_have_a_row_a_point_of_the_other_axes() -> None:
    axes: dict[str, Any] = {"policy": ["fifo", "las"], "seed": [5, 0, 3]}
    done = sweep(SMALL, axes, workers=2)
    medians = done.medians()
    assert medians.select("policy", "runs").rows() == [("fifo", 3), ("las", 3)]
    for name in ("rho_max", "apps", "makespan_s"):
        assert medians[name].to_list() == [
            sorted(done.runs[name].to_list()[:3])[1], sorted(done.runs[name].to_list()[3:])[1],
        ]  # fmt: skip
    alone = sweep(SMALL, {"seed": [5, 0, 3]}, workers=1).medians()
    assert alone.select("runs", "apps").rows() == [(3, 3.0)]


def test_a_table_has_types_also_where_every_run_failed(tmp_path: Path) -> None:
    done = sweep(SMALL, {"workload.window.end_s": [-1, -2]}, workers=1, out=tmp_path / "out")
    assert done.runs.schema["rho_max"] == pl.Float64
    assert done.runs.schema["apps"] == pl.Int64
    assert done.runs["state"].to_list() == ["failed"] * 2
    assert "none of the 3 apps is left" in done.runs["error"][0]
    with pytest.raises(ThemisError, match="run 0 failed: window"):
        done.result(0)
    again = load_sweep(tmp_path / "out")
    assert again.runs.equals(done.runs)
    assert done.medians().select("runs", "rho_max").rows() == [(0, None), (0, None)]
    assert json.loads(json_text(again.summary()))["failed"] == 2


def test_summaries_alone_count_where_they_suffice(tmp_path: Path) -> None:
    axes = {"policy": ["fifo"]}
    brief = sweep(SMALL, axes, workers=1, out=tmp_path / "out", tables=False)
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert sorted(path.name for path in run.iterdir()) == ["manifest.json", "summary.json"]
    with pytest.raises(ThemisError, match="kind is 'summary': expected 'result'"):
        brief.result(0)
    runs: list[SweepRun | None] = []
    full = sweep(
        SMALL, axes, workers=1, out=tmp_path / "out", progress=lambda _1, _2, run: runs.append(run)
    )
    assert len(runs) == 2
    assert full.result(0).policy == "fifo"
    assert full.runs.equals(brief.runs)
    sweep(SMALL, axes, out=tmp_path / "out", tables=False)
    assert full.result(0).policy == "fifo"


def test_a_damaged_result_is_played_again(tmp_path: Path) -> None:
    axes = {"policy": ["fifo"]}
    first = sweep(SMALL, axes, workers=1, out=tmp_path / "out").runs
    (run,) = (tmp_path / "out" / "runs").iterdir()
    (run / "summary.json").write_text("{", encoding="utf-8")
    assert load_sweep(tmp_path / "out").runs["state"].to_list() == ["pending"]
    assert sweep(SMALL, axes, workers=1, out=tmp_path / "out").runs.equals(first)


def test_two_sweeps_cannot_share_a_directory(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "out", force=False, tables=True),
        pytest.raises(ThemisError, match="another sweep is at work there"),
    ):
        sweep(SMALL, {"seed": [1]}, out=tmp_path / "out")


def test_foreign_files_are_lost_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(ThemisError, match=r"thesis.tex"):
        sweep(SMALL, {"policy": ["fifo"]}, out=tmp_path)
    sweep(SMALL, {"policy": ["fifo"]}, workers=1, out=tmp_path, force=True)
    assert not (tmp_path / "thesis.tex").exists()


def test_what_killed_sweeps_left_is_removed(tmp_path: Path) -> None:
    axes = {"policy": ["fifo"]}
    sweep(SMALL, axes, workers=1, out=tmp_path / "out")
    (tmp_path / "out" / "runs" / ".abc.1234.partial").mkdir()
    (tmp_path / "out" / ".sweep.parquet.partial").touch()
    sweep(SMALL, axes, workers=1, out=tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").rglob(".*")] == []


def test_a_worker_that_dies_fails_its_own_run_alone(tmp_path: Path) -> None:
    task = Task(scenario().to_toml(), str(tmp_path / "one"), tables=False)
    worker = _Worker()
    try:
        assert worker.play(task).error is None
        assert worker._process is not None
        os.kill(worker._process.pid, signal.SIGKILL)
        assert worker.play(task).error == "the process that played it was killed by signal 9"
        assert worker.play(task).error is None
    finally:
        worker.dismiss()
        worker.bury()


def test_a_pool_that_is_left_early_ends_its_processes(tmp_path: Path) -> None:
    text = scenario(workload={"generate": "demo", "params": {"apps": 3000}}).to_toml()
    quick = Task(scenario().to_toml(), str(tmp_path / "quick"), tables=False)
    slow = [Task(text, str(tmp_path / f"slow{k}"), tables=False) for k in range(4)]
    outcomes = play_locally([quick, *slow], 2)
    assert next(outcomes).task == quick
    outcomes.close()
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == ["quick"]


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="workers is 0"):
        sweep(SMALL, {"seed": [1]}, workers=0)
    with pytest.raises(ScenarioError, match="backend is 'slurm': expected one of local, ray"):
        sweep(SMALL, {"seed": [1]}, backend="slurm")  # type: ignore[arg-type]
    with pytest.raises(ThemisError, match="no such directory"):
        load_sweep(tmp_path / "none")
    for text, message in [
        ('{"kind": "result"}', "kind is 'result': expected 'sweep'"),
        ('{"kind": "sweep", "schema_version": 9}', "schema version 9: expected 1"),
        ('{"kind": "sweep", "schema_version": 1}', "damaged: expected axes, runs and scenario"),
    ]:
        (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(ThemisError, match=message):
            load_sweep(tmp_path)


def test_ray_is_named_with_its_extra_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ThemisError, match=r"expected the extra ray .*themis-sched\[ray\]"):
        sweep(SMALL, {"seed": [1]}, backend="ray")
