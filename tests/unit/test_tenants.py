"""Tables of tenants: what is refused, and how scenarios carry them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.differential.small import Job, play

import themis
from themis.cli.exits import ExitCode, exit_code
from themis.cli.root import cli
from themis.errors import ScenarioError
from themis.scenario.scenario import Scenario
from themis.workload.tenants import Tenant

JOBS = [Job("a", 0, 1, 20), Job("b", 0, 1, 20)]
OWNERS = {"a": "x", "b": "y"}
SCENARIO = """
cluster.spec = "1x2"
workload.trace = "jobs.csv"
policy.name = "fifo"
[tenants.x]
weight = 3
guaranteed = 0.2
quota_gpus = [[0, 1], [86_400, 0]]
[tenants.'vc 2']
"""


def run(tenants: Any) -> themis.Result:  # noqa: ANN401 - also what is no table
    return play("1x2", JOBS, "fifo", owners=OWNERS, tenants=tenants)


@pytest.mark.parametrize(
    ("tenants", "message"),
    [
        *(
            ({"x": {"weight": bad}}, rf"tenants\.x\.weight = {bad}: {expected}")
            for bad, expected in (
                *(
                    (0, "must be >= 1e-09"),
                    (-2.0, "must be >= 1e-09"),
                    (1e10, r"must be <= 1e\+09"),
                ),
                *((math.nan, "expected a finite number"), (math.inf, "expected a finite number")),
                (True, "expected a number"),
            )
        ),
        *(
            ({"x": {"quota_gpus": bad}}, rf"tenants\.x\.quota_gpus{place}")
            for bad, place in (
                (-1, r"\[0\]\[1\] = -1: must be >= 0"),
                (1.5, r" = 1\.5: expected GPUs, or steps \[\[second, GPUs\], \.\.\.\]"),
                ("4", " = '4': expected GPUs"),
                (True, " = True: expected GPUs"),
                ([], r" = \[\]: expected GPUs"),
                ([[0]], r"\[0\]\[1\]: is missing"),
                ([["a", 1]], r"\[0\]\[0\] = 'a': expected a number"),
                ([[-5, 1]], r"\[0\]\[0\] = -5: must be >= 0"),
                ([[0, 10**9]], r"\[0\]\[1\] = 1000000000: must be <= 1e\+06"),
                ([[5, 1], [5, 2]], r".*step at 5 s after one at 5 s: expected by time"),
            )
        ),
        ({"x": {"guaranteed": -0.1}}, r"tenants\.x\.guaranteed = -0\.1: must be >= 0"),
        ({"x": {"guaranteed": 1.5}}, r"tenants\.x\.guaranteed = 1\.5: must be <= 1"),
        (
            {"x": {"guaranteed": 0.6}, "z": {"guaranteed": 0.6}},
            "tenants: guaranteed shares add up to 1.2: expected 1 at most",
        ),
        ({"x": {"guaranteed": 1.0}}, "add up to 1, and nothing is left for tenant 'y'"),
        ({"x": {"wieght": 1.0}}, r"tenants\.x\.wieght: unknown key \(did you mean 'weight'\?\)"),
        ({"x": 3}, r"tenants\.x = 3: expected a table"),
    ],
)
def test_what_divides_nothing_is_refused_by_name(tenants: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(ScenarioError, match=message):
        run(tenants)


def test_what_all_have_may_be_everything() -> None:
    assert run({"x": {"guaranteed": 0.9}, "y": {"guaranteed": 0.1}}).apps["n_avg"].to_list() == [
        pytest.approx(1 / 0.9),
        pytest.approx(10),
    ]


def test_tenants_without_apps_are_a_remark() -> None:
    notes = run({"xx": {}, "x": Tenant(weight=2)}).manifest["notes"]
    assert notes == ["tenants without apps in this workload: xx (did you mean 'x'?)"]


def test_no_tenants_are_no_table() -> None:
    assert run({}).manifest["tenants"] == run(None).manifest["tenants"] == {}


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(
        "job_id,submit_s,gang_size,duration_s,tenant,weight\n"
        "a,0,1,20,x,1\nb,0,1,20,vc 2,1\nc,0,1,20,vc 2,4\n"
    )
    path = tmp_path / "run.toml"
    path.write_text(SCENARIO)
    return path


def test_a_scenario_carries_its_tenants(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = Scenario.load(scenario)
    assert loaded.tenants == {
        "x": Tenant(weight=3, guaranteed=0.2, quota_gpus=[[0, 1], [86_400, 0]]),  # type: ignore[arg-type]
        "vc 2": Tenant(),
    }
    again = scenario.with_name("again.toml")
    again.write_text(loaded.to_toml())
    assert Scenario.load(again) == loaded
    flags = ["run", str(scenario), "--quiet", "--out", str(scenario.with_name("out"))]
    assert exit_code(lambda: cli.main(flags, standalone_mode=False)) == ExitCode.DONE
    capsys.readouterr()
    result = themis.load_result(scenario.with_name("out"))
    assert result.manifest["tenants"] == {
        "x": {"weight": 3.0, "guaranteed": 0.2, "quota_gpus": [[0.0, 1], [86_400.0, 0]]},
        "vc 2": {"weight": 1.0, "guaranteed": 0.0, "quota_gpus": None},
    }
    # x: 0.2 and three quarters of 0.8. The others have 0.2, in parts of 1 and 4.
    n_avg = result.apps["n_avg"].to_list()
    assert n_avg[:2] == pytest.approx([1 / 0.8, 1 / 0.04])


def test_tenants_are_axes_of_a_sweep(scenario: Path, tmp_path: Path) -> None:
    sweep = themis.sweep(
        Scenario.load(scenario), axes={"tenants.x.weight": [1, 9]}, out=tmp_path / "sweep"
    )
    tenants = [sweep.result(row).manifest["tenants"] for row in range(2)]
    assert [one["x"]["weight"] for one in tenants] == [1, 9]  # type: ignore[index]
