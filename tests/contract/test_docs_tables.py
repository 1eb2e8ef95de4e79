"""The tables of docs list what the code has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from themis.auditing.rules import RULES
from themis.cli.generate import text_value
from themis.policies.catalogue import POLICIES
from themis.profiles import PROFILES, SCALING, SPEEDS, Profile
from themis.schema.page import schema_page
from themis.synthetic import SPECS
from themis.traces import csvtext, native
from themis.traces.machine_lists import MACHINE_FORMATS
from themis.traces.registry import READERS

DOCS = Path(__file__).parents[2] / "docs"
TRACES = (DOCS / "traces.md").read_text(encoding="utf-8")
WORKLOADS = (DOCS / "workloads.md").read_text(encoding="utf-8")
POLICY_PAGE = (DOCS / "policies.md").read_text(encoding="utf-8")
SIMULATION = (DOCS / "simulation.md").read_text(encoding="utf-8")


def table(text: str, first: str) -> list[list[str]]:
    """Rows of the table whose header begins with the cell `first`."""
    lines = text.split(f"\n| {first} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def score(text: str) -> float:
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def test_every_profile_is_listed_with_its_scores() -> None:
    listed = {
        name: Profile.from_scores([score(text) for text in scores])
        for names, *scores in table(SIMULATION, "profile")
        for name in words(names)
    }
    assert set(listed) == set(PROFILES)
    for name, profile in PROFILES.items():
        assert listed[name] == pytest.approx(profile)


def test_every_measured_profile_is_listed() -> None:
    for names, *figures in table(SIMULATION, "profile of"):
        speeds = dict(zip(("k80", "p100", "v100"), map(float, figures), strict=False))
        assert speeds == SPEEDS[words(names)[0]]
        scaling = dict(zip((2, 4, 8), map(float, figures[3:]), strict=True))
        assert scaling == SCALING.get(words(names)[0], dict.fromkeys((2, 4, 8), 1.0))
    assert len(table(SIMULATION, "profile of")) == len(SPEEDS)


def test_every_policy_is_listed() -> None:
    rows = table(POLICY_PAGE, "policy")
    assert [words(row[0]) for row in rows] == [[one.name, *one.aliases] for one in POLICIES]
    assert [row[3] for row in rows] == [one.needs for one in POLICIES]


def test_every_rule_of_the_audit_is_listed() -> None:
    rows = [[words(name)[0], says] for name, says in table(SIMULATION, "rule")]
    assert rows == [[rule.name, rule.says] for rule in RULES]


def test_every_format_is_listed_with_its_options() -> None:
    listed = {words(row[0])[0]: set(words(row[3])) for row in table(TRACES, "format")}
    assert listed == {name: set(reader.options) for name, reader in READERS.items()}
    options = {words(row[0])[0] for row in table(TRACES, "option")}
    assert options == {option for reader in READERS.values() for option in reader.options}


def test_every_machine_list_is_listed() -> None:
    assert {words(row[0])[0] for row in table(TRACES, "list")} == set(MACHINE_FORMATS)


def test_every_native_column_is_listed_with_its_other_names() -> None:
    listed: dict[str, set[str]] = {}
    for names, also, *_ in table(TRACES, "column"):
        both = words(names)
        for name in both:
            one = [other for other in words(also) if len(both) == 1 or name.startswith(other)]
            listed[name] = {name, *one}
    expected = {name: set(names) for name, names in native._JOB_NAMES.items()}
    assert listed == expected


def test_every_class_of_trouble_is_listed() -> None:
    folder = Path(inspect.getfile(native)).parent
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    classes = set(re.findall(r"\.reject\([^\"]*\"(\w+ [\w ]+)\"", code))
    classes |= set(csvtext.SHAPE[1:]) | {"repeated row", "conflicting id"}
    assert len(classes) > 15
    section = TRACES.split("## What is checked", 1)[1].split("\n## ", 1)[0]
    assert sorted(classes - set(words(section))) == []


def test_the_page_of_schemas_is_up_to_date() -> None:
    assert (DOCS / "schema.md").read_text(encoding="utf-8") == schema_page(), "run: make schema"


def default(value: object) -> str:
    if isinstance(value, tuple) and len(value) > 40:
        return f"{len(value)} numbers"
    return "empty" if value == () else text_value(value)


def test_every_workload_is_listed_with_its_parameters_and_their_sources() -> None:
    listed = [(words(names), summary) for names, summary in table(WORKLOADS, "name")]
    assert listed == [([one.name, *one.aliases], one.summary) for one in SPECS.values()]
    parameters = list(SPECS["search"].parameters())
    known = {one.name for one in parameters}
    assert table(WORKLOADS, "parameter") == [
        [f"`{one.name}`", default(one.default), one.meaning] for one in parameters
    ]
    two = [one for one in SPECS["nsdi20-two-jobs"].parameters() if one.name not in known]
    assert table(WORKLOADS, "of the two") == [
        [f"`{one.name}`", default(one.default), one.meaning] for one in two
    ]
    own = [
        [f"`{spec.name}`", f"`{name}`", default(value), source]
        for spec in SPECS.values()
        for name, (value, source) in spec.own.items()
    ]
    assert table(WORKLOADS, "workload") == own
