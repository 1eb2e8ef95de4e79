"""The documentation has every public name and every page; what is cited is this version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import themis

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = (DOCS / "api.md").read_text(encoding="utf-8")


def test_every_public_name_is_in_the_reference() -> None:
    documented = re.findall(r"^\.\. auto\w+:: themis\.(\w+)$", API, re.MULTILINE)
    assert sorted(documented) == sorted(set(documented))
    told = set(documented) | set(re.findall(r"`themis\.(\w+)`", API))
    assert told - {"__version__"} == set(themis.__all__) - {"__version__"}


def test_every_page_is_in_the_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^([a-z-]+)$", index, re.MULTILINE)
    assert sorted(listed) == sorted({page.stem for page in DOCS.glob("*.md")} - {"index"})


def test_the_citation_is_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {themis.__version__}\n" in citation


def test_licences_are_those_of_the_lock_file() -> None:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    locked = {(package["name"], package["version"]) for package in lock["package"]}
    text = (ROOT / "THIRD-PARTY.txt").read_text(encoding="utf-8")
    listed = set(re.findall(r"^  ([\w-]+) (\d[\w.+-]*): ", text, re.MULTILINE))
    assert {name for name, _ in listed} >= {"pyo3", "numpy", "rand_pcg", "smallvec", "thiserror"}
    assert listed <= locked
    assert "proptest" not in text


@pytest.mark.parametrize(
    "place", re.findall(r"`(tests/[\w/.]+)`", (ROOT / "SECURITY.md").read_text())
)
def test_a_promise_of_security_has_its_tests(place: str) -> None:
    assert (ROOT / place).is_file()
