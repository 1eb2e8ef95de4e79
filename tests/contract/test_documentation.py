"""docs/cli.md says what the command line does: its settings, its example, its exit codes."""

from __future__ import annotations

import re
from pathlib import Path

from themis.cli.exits import ExitCode
from themis.cli.root import COMMANDS
from themis.scenario.scenario import Scenario
from themis.settings.settings import Settings

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_every_setting_is_listed_with_its_default_and_choices() -> None:
    listed = {row[0]: row for row in rows("Settings") if row[0] != "name"}
    assert set(listed) == set(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        default = "unset" if field.default is None else str(field.default)
        assert listed[name][1] == default.removesuffix(".0")
        choices = getattr(field.annotation, "__args__", ())
        if choices and all(isinstance(choice, str) for choice in choices):
            assert listed[name][2] == ", ".join(choices)


def test_the_example_is_a_valid_scenario(tmp_path: Path) -> None:
    match = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert match is not None
    path = tmp_path / "scenario.toml"
    path.write_text(match[1], encoding="utf-8")
    scenario = Scenario.load(path)
    assert scenario.workload.trace == str(tmp_path / "philly.csv.gz")
    assert scenario.workload.group_into_apps is not None


def test_every_exit_code_and_command_is_explained() -> None:
    codes = {row[0] for row in rows("What goes where")} - {"exit code"}
    assert codes == {str(int(code)) for code in ExitCode}
    assert re.findall(r"^## ([a-z]+)$", TEXT, re.MULTILINE) == list(COMMANDS)
