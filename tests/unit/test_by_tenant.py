"""The table of tenants: by hand, and against the summary."""

from __future__ import annotations

import json

import pytest
from tests.differential.small import Job, play

import themis
from themis.cli.exits import ExitCode, exit_code
from themis.cli.root import cli
from themis.metrics.by_tenant import TENANTS
from themis.results.result import Result

JOBS = [Job("a", 0, 1, 20), Job("b", 0, 2, 80), Job("c", 30, 1, 10), Job("d", 0, 9, 10)]
OWNERS = {"a": "x", "b": "y", "c": "x"}


def test_the_rows_are_those_of_the_apps() -> None:
    # a: 20 s, N 2 of (2 x 20) / 20. b: 40 s; N = (20 x 2 + 10 + 10 x 2) / 40. c: 10 s beside b.
    result = play("1x4", JOBS, "fifo", owners=OWNERS)
    table = result.tenants()
    assert table.schema == TENANTS
    assert table.rows() == [
        ("x", 2, 2, 30.0, 30 / 110, 0.5, 0.5, 0.5, 15.0),
        ("y", 1, 1, 80.0, 80 / 110, pytest.approx(40 / 70), *[pytest.approx(40 / 70)] * 2, 40.0),
        (None, 1, 0, 0.0, 0.0, None, None, None, None),
    ]


def test_one_tenant_is_the_summary() -> None:
    result = themis.simulate(themis.generate("demo", apps=12), themis.Cluster.parse("2x4"))
    apps = result.apps.with_columns(tenant=result.apps["app_id"].str.slice(0, 0))
    [row] = Result({**result.frames, "apps": apps}, result.manifest).tenants().to_dicts()
    summary = result.summary()
    same = ("apps", "apps_done", "gpu_s", "rho_max", "rho_median", "rho_mean")
    assert {name: row[name] for name in same} == {name: summary[name] for name in same}
    assert row["app_completion_mean_s"] == summary["app_completion_mean_s"]
    assert row["gpu_share"] == 1


def test_bounds_of_unfinished_apps_are_no_rho() -> None:
    result = play("1x1", [Job("a", 0, 1, 90)], "fifo", owners={"a": "x"}, horizon_s=30.0)
    assert result.tenants().select("apps", "apps_done", "rho_max").rows() == [(1, 0, None)]


def test_a_run_of_several_tenants_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["run", "--generate", "demo", "--set", "workload.params.apps=9", "--cluster", "2x4"]

    def call(*more: str) -> str:
        code = exit_code(lambda: cli.main([*flags, "--quiet", *more], standalone_mode=False))
        assert code == ExitCode.DONE
        return capsys.readouterr().out

    tenants = json.loads(call("--json"))["tenants"]
    assert [list(row) for row in tenants] == [list(TENANTS)] * len(tenants)
    text = call()
    lines = text[text.index("\ntenants\n") :].splitlines()
    assert [line.split()[0] for line in lines[3 : 3 + len(tenants)]] == [
        row["tenant"] for row in tenants
    ]
    one = call("--set", "workload.params.tenants=1")
    assert "\ntenants\n" not in one
