from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from themis.errors import ScenarioError
from themis.scenario.scenario import Scenario

SMALL = """
[cluster]
spec = "2x4"

[workload]
trace = "jobs.csv"
"""


def write(directory: Path, text: str) -> Path:
    path = directory / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(directory: Path, text: str) -> str:
    path = write(directory, text)
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_everything_but_cluster_and_workload_has_a_default(tmp_path: Path) -> None:
    scenario = Scenario.load(write(tmp_path, SMALL))
    assert (scenario.schema_version, scenario.seed) == (1, 0)
    assert scenario.policy.name == "themis"
    assert scenario.settings.lease_s == 600.0


def test_relative_paths_start_at_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner", SMALL.replace('spec = "2x4"', 'file = "../cluster.toml"'))
    monkeypatch.chdir(tmp_path)
    scenario = Scenario.load("inner/scenario.toml")
    assert scenario.workload.trace == str(tmp_path / "inner" / "jobs.csv")
    assert Path(scenario.cluster.file or "").resolve() == tmp_path / "cluster.toml"


@pytest.mark.parametrize(
    "text",
    [
        SMALL,
        SMALL + '[policy]\nname = "fifo"\nfairness_knob = 0\n[settings]\nhorizon_s = 7\n',
        SMALL + 'format = "native"\noptions = {unit = "h"}\nload = 2\n',
        SMALL + '[workload.group_into_apps]\nkeys = ["user"]\n',
        'preset = "nsdi20"\n' + SMALL + "[settings]\nlease_s = 7\n",
        'seed = 9\n[cluster]\nspec = "4"\n[workload]\ngenerate = "demo"\nparams = {apps = 3}\n',
        """
        cluster.machines = [
          {machine = "m0", rack = "r0", gpus = 4, gpu_type = "a100", slot_gpus = 2},
          {machine = "m1", rack = "r0", gpus = 8},
        ]
        workload.generate = "demo"
        """,
    ],
)
def test_what_is_written_reads_back_equal_and_in_full(tmp_path: Path, text: str) -> None:
    scenario = Scenario.load(write(tmp_path, text))
    written = scenario.to_toml()
    assert Scenario.load(write(tmp_path, written)) == scenario
    document = tomllib.loads(written)
    assert {"fairness_knob", "payment", "t_id", "min_lease_s"} < set(document["policy"])
    assert {"lease_s", "lease_mode", "restart_s", "checkpoint_s"} < set(document["settings"])


@pytest.mark.parametrize("overrides", [[("preset", "nsdi20"), ("lease_s", "9")],
                                       [("lease_s", "9"), ("preset", "nsdi20")]])  # fmt: skip
def test_a_preset_lies_under_the_settings_of_file_and_flags(
    tmp_path: Path, overrides: list[tuple[str, str]]
) -> None:
    path = write(tmp_path, SMALL + '[policy]\npayment = "lease"\n')
    scenario = Scenario.load(path, overrides=overrides)
    assert (scenario.policy.payment, scenario.policy.filter_key) == ("lease", "holdings")
    assert (scenario.settings.lease_s, scenario.settings.lease_mode) == (9.0, "rolling")
    document = tomllib.loads(scenario.to_toml())
    assert (document["preset"], document["policy"]["filter_key"]) == ("nsdi20", "holdings")


def test_overrides_are_laid_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL + "[settings]\nlease_s = 5\nhorizon_s = 8\n")
    overrides = [("lease_s", "9"), ("payment", "none"), ("horizon_s", "none"), ("seed", "3")]
    scenario = Scenario.load(path, overrides=overrides)
    assert (scenario.seed, scenario.policy.payment) == (3, "none")
    assert (scenario.settings.lease_s, scenario.settings.horizon_s) == (9.0, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "not valid TOML: Invalid value (at end of document)"),
        ("seed = -1\n" + SMALL, "seed = -1: must be >= 0"),
        ("seed = true\n" + SMALL, "seed = True: expected a whole number"),
        ("seed = 1.5\n" + SMALL, "seed = 1.5: expected a whole number"),
        ("schema_version = 2\n" + SMALL, "schema_version = 2: expected one of 1"),
        ("sed = 1\n" + SMALL, "sed: unknown key (did you mean 'seed'?)"),
        (SMALL + "lod = 2", "workload.lod: unknown key (did you mean 'load'?)"),
        (SMALL + "load = 0", "workload.load = 0: must be > 0"),
        (
            SMALL + "[policy]\npreset = 'nsdi20'",
            "policy.preset: unknown key here; it belongs to preset",
        ),
        ("preset = 1\n" + SMALL, "preset = 1: expected text"),
        (
            "preset = 'nsdi-20'\n" + SMALL,
            "preset = 'nsdi-20': unknown preset (did you mean 'nsdi20'?): expected one of nsdi20",
        ),
        (
            SMALL + "[settings]\npayment = 'none'",
            "settings.payment: unknown key here; it belongs to policy.payment",
        ),
        (
            SMALL + "[policy]\nlease_s = 3",
            "policy.lease_s: unknown key here; it belongs to settings.lease_s",
        ),
        (SMALL + "[policy]\nname = 3", "policy.name = 3: expected text"),
        (SMALL + "[policy]\nfairness_knob = 2", "policy.fairness_knob = 2: must be <= 1"),
        (
            SMALL + "[workload.group_into_apps]\nmax_jobs = 0",
            "workload.group_into_apps.max_jobs = 0: must be >= 1",
        ),
        (
            SMALL + "[workload.group_into_apps]\ngap = 0",
            "workload.group_into_apps.gap: unknown key (did you mean 'gap_s'?)",
        ),
        (
            SMALL + "generate = 'demo'",
            "workload: expected exactly one of trace or generate, found both",
        ),
        (
            SMALL + "params = {apps = 3}",
            "workload: params has no meaning with trace: leave it out",
        ),
        ("cluster = {spec = '4'}", "workload: is missing and has no default"),
        (
            "cluster = {}\nworkload = {trace = 'a'}",
            "cluster: expected exactly one of spec, file or machines, found none of them",
        ),
        (
            "cluster = {spec = '4', file = 'a'}\nworkload = {trace = 'a'}",
            "cluster: expected exactly one of spec, file or machines, found spec and file",
        ),
        (
            "cluster = {machines = []}\nworkload = {trace = 'a'}",
            "cluster: machines is empty: expected one machine or more",
        ),
        (
            "workload.trace = 'a'\ncluster.machines = [{machine = 'a', rack = 'r', gpus = 0}]",
            "cluster.machines[0].gpus = 0: must be >= 1",
        ),
        ("cluster = 3\nworkload = {trace = 'a'}", "cluster = 3: expected a table"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text) == message


def test_every_mistake_is_listed(tmp_path: Path) -> None:
    message = refusal(tmp_path, "sed = 1\n" + SMALL + "lod = 2\n[policy]\nname = 3\n")
    assert message.splitlines()[0] == "3 errors"
    assert len(message.splitlines()) == 4


def test_a_missing_file_and_a_folder_and_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"absent\.toml: no such file"):
        Scenario.load(tmp_path / "absent.toml")
    with pytest.raises(ScenarioError, match="a directory: expected a file"):
        Scenario.load(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="not text in UTF-8"):
        Scenario.load(tmp_path / "bytes.toml")


def test_profiles_of_ones_own_reach_the_simulation_and_come_back() -> None:
    document = {
        "cluster": {"spec": "1x(1x1:a+1x1:b)"},
        "workload": {"generate": "demo"},
        "profiles": {"mine": {"scores": [1, 1, 0.5, 0.5], "speeds": {"a": 2.0}}},
    }
    scenario = Scenario.parse(document, directory=Path("/"))
    assert scenario.own_profiles() == document["profiles"]
    again = Scenario.parse(tomllib.loads(scenario.to_toml()), directory=Path("/"))
    assert again == scenario
    document["profiles"] = {"mine": {"speeds": {"a": -2.0}}}
    with pytest.raises(ScenarioError, match=r"profile 'mine': speed on 'a' is -2\.0"):
        Scenario.parse(document, directory=Path("/")).check()
