"""Capacity timelines: files, frames, scenarios and flags, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

from themis.cli.root import cli
from themis.cluster.capacity import CAUSES
from themis.cluster.cluster import Cluster
from themis.errors import ClusterError, ScenarioError, TraceError
from themis.scenario.scenario import Scenario
from themis.traces.capacity_tables import read_capacity

TWO = Cluster.parse("2x4")
ROWS = "machine,at_s,gpus,cause\nr0-m1,60,0,failure\nr0-m0,60,2,\nr0-m1,90.5,4,repair\n"


def frame(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"machine": ["r0-m0"], "at_s": [5], "gpus": [1], **columns})


def test_a_table_is_read_in_any_form_and_order(tmp_path: Path) -> None:
    path = tmp_path / "capacity.csv"
    path.write_text(ROWS)
    found = read_capacity(path)
    assert found.rows() == [
        ("r0-m0", 60.0, 2, "planned"),
        ("r0-m1", 60.0, 0, "failure"),
        ("r0-m1", 90.5, 4, "repair"),
    ]
    found.write_parquet(tmp_path / "capacity.parquet")
    assert_frame_equal(read_capacity(tmp_path / "capacity.parquet"), found)
    assert_frame_equal(TWO.with_capacity(found.reverse()).capacity, found)
    assert TWO.with_capacity(found.drop("cause")).capacity["cause"].unique().to_list() == [
        "planned"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("machine,at_s\nm,1\n", "column 'gpus' is missing: expected machine, at_s, gpus"),
        ("machine,at_s,gpus\nm,1,1\nm,x,1\n", "line 3: not a number in column 'at_s': 'x'"),
        ("machine,at_s,gpus\nm,1,-1\n", "line 2: negative number of GPUs in column 'gpus'"),
        ("machine,at_s,gpus\nm,,1\n", "line 2: missing value in column 'at_s'"),
        ("machine,at_s,gpus\nm,1,0.5\n", "line 2: fraction of a GPU in column 'gpus': '0.5'"),
        ("machine,at_s,gpus,cause\nm,1,1,fire\n", "none of planned, evicted, failure, repair"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "capacity.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=message) as caught:
        read_capacity(path)
    assert str(path) in str(caught.value)


def test_options_of_another_format_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "capacity.csv"
    path.write_text(ROWS)
    with pytest.raises(TraceError, match="tenant and origin are for capacities by day"):
        read_capacity(path, tenant="vc1")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"machine": ["r0-m7"]}, "machine 'r0-m7' is unknown"),
        ({"gpus": [5]}, "machine 'r0-m0': gpus is 5: expected 0 to its 4 GPUs"),
        ({"gpus": [0.5]}, "gpus is no whole number"),
        ({"gpus": [True]}, "gpus is no whole number"),
        ({"gpus": [None]}, "row 0: gpus is missing"),
        ({"at_s": [float("nan")]}, "row 0: at_s is nan"),
        ({"at_s": ["soon"]}, "capacity: "),
        ({"cause": ["fire"]}, "cause is 'fire': expected one of planned, evicted, failure"),
        ({"when": [5]}, "column 'when' is unknown: expected machine, at_s, gpus, cause"),
    ],
)
def test_a_frame_that_tells_nothing_is_refused(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        TWO.with_capacity(frame(**columns))


def test_two_rows_for_one_instant_are_refused() -> None:
    with pytest.raises(ClusterError, match="machine 'r0-m0' stands twice at 5 s"):
        TWO.with_capacity(pl.concat([frame(), frame(gpus=[2])]))


def test_a_cluster_file_may_have_changes(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text('spec = "2x4"\n[[capacity]]\nmachine = "r0-m1"\nat_s = 60\ngpus = 0\n')
    cluster = Cluster.from_toml(path)
    assert cluster.capacity.rows() == [("r0-m1", 60.0, 0, "planned")]
    assert cluster.describe()["capacity_changes"] == 1
    path.write_text('spec = "2x4"\ncapacity = 3\n')
    with pytest.raises(ClusterError, match="capacity: expected tables"):
        Cluster.from_toml(path)


def test_a_scenario_has_changes_as_rows_or_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "capacity.csv").write_text(ROWS)
    rows = [{"machine": "r0-m1", "at_s": 60, "gpus": 0, "cause": "failure"}]
    base = {"workload": {"generate": "demo"}}

    def scenario(**cluster: object) -> Scenario:
        document = {**base, "cluster": {"spec": "2x4", **cluster}}
        return Scenario.parse(document, directory=tmp_path)

    from_rows = scenario(capacity=rows)
    assert from_rows.build_cluster().capacity.rows() == [("r0-m1", 60.0, 0, "failure")]
    again = Scenario.parse(_parsed(from_rows.to_toml()), directory=tmp_path)
    assert again == from_rows
    assert scenario(capacity_file="capacity.csv").build_cluster().capacity.height == 3
    with pytest.raises(ScenarioError, match="either capacity or capacity_file"):
        scenario(capacity=rows, capacity_file="capacity.csv")
    with pytest.raises(ScenarioError, match=r"capacity\[0\].cause.*expected one of planned"):
        scenario(capacity=[{**rows[0], "cause": "fire"}])


def _parsed(text: str) -> dict[str, object]:
    import tomllib  # noqa: PLC0415 - for this test only

    return tomllib.loads(text)


def test_the_flag_reaches_the_run(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,gpus,duration_s\na,0,4,100\n")
    (tmp_path / "capacity.csv").write_text("machine,at_s,gpus\nr0-m0,0,0\nr0-m0,50,4\n")
    flags = ["run", "--trace", str(tmp_path / "jobs.csv"), "--cluster", "1x4"]
    flags += ["--capacity", str(tmp_path / "capacity.csv"), "--policy", "fifo", "--json"]
    done = CliRunner().invoke(cli, [*flags, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    usage = pl.read_parquet(tmp_path / "out" / "usage.parquet")
    assert usage.select("at_s", "gpus_total", "gpus_used").rows() == [
        (0, 0, 0),
        (50, 4, 4),
        (150, 4, 0),
    ]
    table = pl.read_parquet(tmp_path / "out" / "capacity.parquet")
    assert table["cause"].is_in(CAUSES).all()
    bad = CliRunner().invoke(cli, [*flags[:-3], "--capacity", str(tmp_path / "jobs.csv")])
    assert bad.exit_code == 3
