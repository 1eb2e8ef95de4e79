"""Policies of other packages, found by their entry points."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import themis
from themis.cli.exits import ExitCode, exit_code
from themis.cli.root import cli
from themis.errors import PolicyError
from themis.policies.catalogue import GROUP, POLICIES, known_policies, own_policies
from themis.scenario.scenario import Scenario

MODULE = '''
import themis

class LastCome(themis.Policy):
    """The app that came last goes first.

    Nobody wants this.
    """

    needs = "arrivals"
    optimises = "surprise"

    def decide(self, view):
        return [grant for app in view.apps.app[::-1] for grant in view.claim_app(app)]

class Picky(themis.Policy):
    def __init__(self, what):
        pass

class Wrong(themis.Policy):
    def decide(self, view):
        return [themis.Grant(0, {0: 99})]
'''
SCENARIO = """
[cluster]
spec = "1x4"
[workload]
generate = "demo"
params = {apps = 3}
[policy]
name = "last_come"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution that offers a policy; returns its entry points file."""
    (tmp_path / "lab_policies.py").write_text(MODULE)
    about = tmp_path / "lab_policies-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-policies\nVersion: 1.0\n")
    points = about / "entry_points.txt"
    points.write_text(
        f"[{GROUP}]\nlast_come = lab_policies:LastCome\npicky = lab_policies:Picky\n"
        "wrong = lab_policies:Wrong\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    own_policies.cache_clear()
    yield points
    own_policies.cache_clear()
    sys.modules.pop("lab_policies", None)


def call(*args: str) -> int:
    return exit_code(lambda: cli.main(args, standalone_mode=False))


@pytest.mark.usefixtures("package")
def test_a_policy_of_another_package_has_a_name_everywhere(tmp_path: Path) -> None:
    assert known_policies()[: len(POLICIES)] == POLICIES
    [info, _, _] = known_policies()[len(POLICIES) :]
    assert (info.name, info.description) == ("last_come", "The app that came last goes first.")
    assert (info.source, info.needs) == ("lab_policies:LastCome", "arrivals")
    workload = themis.generate("demo", seed=0, apps=3)
    cluster = themis.Cluster.parse("1x4")
    result = themis.simulate(workload, cluster, policy="last_come")
    assert (result.policy, result.manifest["app_states"]) == ("last_come", {"done": 3})
    comparison = themis.compare(workload, cluster, policies=["fifo", "last_come"])
    assert comparison.results["last_come", 0].apps.equals(result.apps)
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    again = Scenario.parse(tomllib.loads(SCENARIO), directory=tmp_path)
    again.check()
    assert again.build().policy == "last_come"


@pytest.mark.usefixtures("package")
def test_a_policy_that_cannot_be_made_says_why() -> None:
    with pytest.raises(PolicyError, match=r"policy 'picky': Picky\(\) raised TypeError"):
        themis.simulate(
            themis.generate("demo", seed=0), themis.Cluster.parse("1x4"), policy="picky"
        )
    with pytest.raises(PolicyError, match=r"'last_com' \(did you mean 'last_come'\?\)"):
        themis.simulate(
            themis.generate("demo", seed=0), themis.Cluster.parse("1x4"), policy="last_com"
        )


@pytest.mark.parametrize(
    ("name", "point", "message"),
    [
        ("lab", "lab_policies:NOTHING", "cannot be loaded: AttributeError"),
        ("lab", "no_such_module:P", "cannot be loaded: ModuleNotFoundError"),
        ("lab", "lab_policies:__name__", "is 'lab_policies': expected a subclass of themis.Policy"),
        ("easy", "lab_policies:LastCome", "has the name of another policy"),
    ],
)
def test_a_broken_policy_is_a_warning(package: Path, name: str, point: str, message: str) -> None:
    package.write_text(f"[{GROUP}]\n{name} = {point}\n")
    with pytest.warns(UserWarning, match=rf"policy '{name}' \({point}\) {message}"):
        assert own_policies() == {}


@pytest.mark.usefixtures("package")
def test_the_command_line_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    assert call("policies", "--json") == ExitCode.DONE
    listed = json.loads(capsys.readouterr().out)["policies"]
    assert "last_come" in [one["name"] for one in listed]
    assert call("run", str(path), "--json", "--quiet") == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["manifest"]["policy"] == "last_come"


@pytest.mark.usefixtures("package")
def test_a_wrong_answer_is_a_failed_run_and_an_unknown_policy_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    assert call("run", str(path), "--policy", "wrong", "--quiet") == ExitCode.RUN_FAILED
    told = (
        "policy wrong, at 0.0 s: app 'app-01', job 'app-01/01': 99 GPUs of slot 0: 4 are on offer"
    )
    assert told in capsys.readouterr().err
    assert call("run", str(path), "--policy", "picky", "--quiet") == ExitCode.BAD_INPUT
    assert call("run", str(path), "--policy", "none", "--quiet") == ExitCode.BAD_INPUT
