"""Every dependency has its line in docs/dependencies.md, and no line is left over."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")


def listed(heading: str) -> set[str]:
    section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    names = ", ".join(re.sub(r" \(.*\)", "", cell) for cell in cells).split(", ")
    return {name.strip() for name in names} - {"package", "crate", "---"}


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=~!\[; ]", requirement, maxsplit=1)[0] for requirement in requirements}


def test_python_dependencies_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [names(extra) for extra in project["project"]["optional-dependencies"].values()]
    run_time = names(project["project"]["dependencies"]).union(*extras)
    assert listed("Python, at run time") == run_time
    groups = [names(group) for group in project["dependency-groups"].values()]
    assert listed("Development") == set().union(*groups) - run_time


def test_crates_are_listed() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    ours = {member.rsplit("/", 1)[-1] for member in workspace["members"]}
    assert listed("Rust") == set(workspace["dependencies"]) - ours
