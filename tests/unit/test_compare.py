from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from themis.comparison.comparing import Comparison, compare, load_comparison
from themis.errors import PolicyError, ScenarioError, ThemisError
from themis.metrics.catalogue import HEADLINES
from themis.results.digest import app_rows, digest
from themis.results.paired import default_baseline, winners
from themis.results.result import Result
from themis.schema.result import RESULT_SCHEMA_VERSION

if TYPE_CHECKING:
    from tests.unit.conftest import MakeResult

    from themis.cluster.cluster import Cluster
    from themis.workload.workload import Workload

# The stand-in engine looks at neither.
WORKLOAD = cast("Workload", SimpleNamespace())
CLUSTER = cast("Cluster", SimpleNamespace())

Engine = list[tuple[str, int, dict[str, object]]]


@pytest.fixture
def engine(make_result: MakeResult, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Stand in for the simulator: made-up results; 'broken' fails, 'slow' is interrupted."""
    calls: Engine = []

    def simulate(
        workload: object,
        cluster: object,
        *,
        policy: str,
        seed: int,
        progress: Callable[[int, int, float], None] | None,
        **settings: object,
    ) -> Result:
        assert (workload, cluster) == (WORKLOAD, CLUSTER)
        calls.append((policy, seed, settings))
        if policy == "broken":
            raise PolicyError("policy 'broken' gave GPUs that are busy")
        if progress is not None:
            progress(1, 40, 5.0)
        if policy == "slow":
            raise KeyboardInterrupt
        return make_result(40, policy, seed)

    module = ModuleType("themis.simulation.simulate")
    module.simulate = simulate  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "themis.simulation.simulate", module)
    monkeypatch.setattr("themis.policies.catalogue.resolve_policy", lambda name: name)
    return calls


def files_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def run_two(seeds: Iterable[int] = (0,), out: Path | None = None) -> Comparison:
    return compare(WORKLOAD, CLUSTER, policies=["themis", "fifo"], seeds=seeds, out=out)


def test_every_policy_is_played_with_every_seed_and_all_settings(engine: Engine) -> None:
    seen: list[tuple[object, ...]] = []
    comparison = compare(
        WORKLOAD,
        CLUSTER,
        policies=["themis", "fifo"],
        seeds=range(2),
        progress=lambda *step: seen.append(step),
        lease_s=60.0,
    )
    runs = [("themis", 0), ("themis", 1), ("fifo", 0), ("fifo", 1)]
    assert [(policy, seed) for policy, seed, _ in engine] == runs
    assert all(settings == {"lease_s": 60.0} for _, _, settings in engine)
    assert seen == [(policy, seed, 1, 40, 5.0) for policy, seed in runs]
    assert list(comparison.results) == runs
    assert repr(comparison) == ("Comparison(policies=['themis', 'fifo'], seeds=[0, 1], apps=40)")


@pytest.mark.usefixtures("engine")
def test_the_table_has_a_row_a_policy_with_medians_over_seeds() -> None:
    comparison = run_two(seeds=range(3))
    table = comparison.table(spread=True)
    assert table.columns[:3] == ["policy", "seeds", HEADLINES[0]]
    assert table.get_column("policy").to_list() == ["themis", "fifo"]
    assert table.get_column("seeds").to_list() == [3, 3]
    worst = sorted(
        cast("float", comparison.results["fifo", seed].summary()["rho_max"]) for seed in range(3)
    )
    row = table.row(1, named=True)
    assert [row["rho_max_low"], row["rho_max"], row["rho_max_high"]] == worst
    assert table.get_column("rho_bound_max").null_count() == 2
    assert set(comparison.table().columns) == {"policy", "seeds", *HEADLINES}


@pytest.mark.usefixtures("engine")
def test_apps_are_paired_one_row_an_app_and_run() -> None:
    comparison = run_two(seeds=(0, 7))
    assert comparison.apps.height == 40 * 4
    assert comparison.apps.select("app_id", "policy", "seed").is_duplicated().sum() == 0
    mine = comparison.apps.filter((pl.col("policy") == "fifo") & (pl.col("seed") == 7))
    assert_frame_equal(mine, app_rows(comparison.results["fifo", 7], "fifo"))


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"policies": []}, PolicyError, "no policy to compare"),
        ({"policies": "themis"}, PolicyError, "is the text 'themis'"),
        ({"policies": ["fifo", "fifo"]}, PolicyError, "policy 'fifo' is given twice"),
        ({"policies": ["../up"]}, PolicyError, r"policy '\.\./up'"),
        ({"policies": ["fifo"], "seeds": []}, ScenarioError, "no seed to run"),
        ({"policies": ["fifo"], "seeds": [1, 1]}, ScenarioError, "seed 1 is given twice"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_run(
    engine: Engine, more: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compare(WORKLOAD, CLUSTER, **more)  # type: ignore[arg-type]
    assert engine == []


@pytest.mark.usefixtures("engine")
def test_streaming_to_disk_gives_the_bytes_of_writing_from_memory(tmp_path: Path) -> None:
    streamed = run_two(out=tmp_path / "streamed")
    run_two().write(tmp_path / "written")
    files = files_of(tmp_path / "written")
    assert files == files_of(tmp_path / "streamed")
    top = ["apps.parquet", "comparison.parquet", "manifest.json", "report.html", "summary.json"]
    assert [name for name in files if "/" not in name] == top
    assert {name.split("/")[0] for name in files if "/" in name} == {"fifo", "themis"}
    assert streamed.results["fifo", 0].policy == "fifo"


@pytest.mark.usefixtures("engine")
def test_a_comparison_loads_as_it_was_written(tmp_path: Path) -> None:
    written = run_two(seeds=range(2), out=tmp_path / "c")
    assert (tmp_path / "c" / "themis-seed1" / "manifest.json").is_file()
    loaded = load_comparison(tmp_path / "c")
    assert_frame_equal(loaded.table(), written.table())
    assert_frame_equal(loaded.apps, written.apps)
    assert loaded.summary() == written.summary()
    loaded.write(tmp_path / "copy")
    assert files_of(tmp_path / "copy") == files_of(tmp_path / "c")
    summary = json.loads((tmp_path / "c" / "summary.json").read_text())
    assert summary["schema_version"] == RESULT_SCHEMA_VERSION
    assert len(summary["runs"]) == 4


@pytest.mark.usefixtures("engine")
def test_an_interrupted_comparison_keeps_the_runs_that_finished(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        compare(WORKLOAD, CLUSTER, policies=["fifo", "slow"], out=tmp_path / "c")
    kept = load_comparison(tmp_path / "c")
    assert not kept.complete
    assert list(kept.results) == [("fifo", 0)]
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


@pytest.mark.usefixtures("engine")
def test_an_interrupted_run_never_replaces_an_earlier_comparison(tmp_path: Path) -> None:
    run_two(out=tmp_path / "c")
    before = files_of(tmp_path / "c")
    with pytest.raises(PolicyError, match="busy"):
        compare(WORKLOAD, CLUSTER, policies=["fifo", "broken"], out=tmp_path / "c")
    assert files_of(tmp_path / "c") == before


@pytest.mark.usefixtures("engine")
def test_a_failing_first_run_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="busy"):
        compare(WORKLOAD, CLUSTER, policies=["broken", "fifo"], out=tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_foreign_directories_are_refused_before_any_run(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ThemisError, match=r"holds 'thesis\.tex'"):
        run_two(out=tmp_path)
    assert engine == []


@pytest.mark.usefixtures("engine")
def test_damage_is_named_when_loading(tmp_path: Path) -> None:
    with pytest.raises(ThemisError, match="no such directory"):
        load_comparison(tmp_path / "nowhere")
    run_two(out=tmp_path / "c")
    path = tmp_path / "c" / "manifest.json"
    manifest = json.loads(path.read_text())
    for change, message in (
        ({"kind": "result"}, "kind is 'result': expected 'comparison'"),
        ({"schema_version": 9}, f"schema version 9: expected {RESULT_SCHEMA_VERSION}"),
        ({"runs": []}, r"field 'runs' is \[\]"),
        ({"runs": [{"policy": "fifo"}]}, "field 'runs' is"),
        ({"runs": [{"policy": "fifo", "seed": 0, "directory": "gone"}]}, "gone: no such"),
    ):
        path.write_text(json.dumps({**manifest, **change}))
        with pytest.raises(ThemisError, match=message):
            load_comparison(tmp_path / "c")


def pairs_frame() -> pl.DataFrame:
    rows = [
        ("a", "ann", "fifo", 100.0),
        ("b", "ann", "fifo", 100.0),
        ("c", "bob", "fifo", 100.0),
        ("d", None, "fifo", 100.0),
        ("e", "bob", "fifo", None),
        ("a", "ann", "themis", 50.0),
        ("b", "ann", "themis", 100.5),
        ("c", "bob", "themis", 300.0),
        ("d", None, "themis", 90.0),
        ("e", "bob", "themis", 10.0),
    ]
    return pl.DataFrame(
        [
            {
                "app_id": app,
                "user": user,
                "tenant": "x",
                "policy": policy,
                "seed": 0,
                "completion_s": completion,
                "rho": 1.0,
            }
            for app, user, policy, completion in rows
        ]
    )


def test_winners_by_hand() -> None:
    apps = pairs_frame()
    (row,) = winners(apps, "fifo").to_dicts()
    assert row == {
        "policy": "themis",
        "apps": 4,
        "better": 2,
        "same": 1,
        "worse": 1,
        "ratio_median": pytest.approx((0.9 + 1.005) / 2),
        "ratio_low": None,
        "ratio_high": None,
        "users_better": 1,
        "users_same": 0,
        "users_worse": 1,
    }
    by_user = winners(apps, "fifo", by="user")
    assert by_user.get_column("user").to_list() == ["ann", "bob", None]
    assert by_user.get_column("ratio_median").to_list() == pytest.approx([0.7525, 3.0, 0.9])
    assert winners(apps, "fifo", by="tenant").get_column("apps").to_list() == [4]
    pairs = winners(apps, "fifo", by="app")
    assert pairs.get_column("outcome").to_list() == ["better", "same", "worse", "better"]


def test_wrong_baselines_and_groupings_are_named() -> None:
    with pytest.raises(ThemisError, match="baseline 'gandiva' was not run: expected fifo, themis"):
        winners(pairs_frame(), "gandiva")
    with pytest.raises(ThemisError, match="by is 'day'"):
        winners(pairs_frame(), "fifo", by="day")  # type: ignore[arg-type]


def test_the_default_baseline_is_what_users_have_today() -> None:
    assert default_baseline(["themis", "tiresias", "fifo"]) == "fifo"
    assert default_baseline(["themis", "tiresias"]) == "tiresias"
    assert default_baseline(["themis"]) == "themis"


def test_the_baseline_of_a_comparison_is_kept(engine: Engine, tmp_path: Path) -> None:
    both = compare(
        WORKLOAD, CLUSTER, policies=["themis", "fifo"], baseline="themis", out=tmp_path / "c"
    )
    assert both.baseline == "themis"
    assert load_comparison(tmp_path / "c").baseline == "themis"
    assert both.summary()["baseline"] == "themis"
    assert both.winners().equals(winners(both.apps, "themis"))
    assert run_two().baseline == "fifo"
    engine.clear()
    with pytest.raises(PolicyError, match="baseline 'las' is not compared: expected themis, fifo"):
        compare(WORKLOAD, CLUSTER, policies=["themis", "fifo"], baseline="las")
    assert engine == []


def test_html_for_notebooks_is_escaped(make_result: MakeResult) -> None:
    result = make_result(5)
    comparison = Comparison([digest(result, "<b>")], app_rows(result, "<b>"), {})
    assert '<th scope="col">&lt;b&gt;</th>' in comparison._repr_html_()


def test_unknown_and_doubly_named_policies_are_refused_before_any_run() -> None:
    with pytest.raises(PolicyError, match="themsi"):
        compare(WORKLOAD, CLUSTER, policies=["fifo", "themsi"])
    with pytest.raises(PolicyError, match="'tiresias' is given twice"):
        compare(WORKLOAD, CLUSTER, policies=["las", "tiresias"])
