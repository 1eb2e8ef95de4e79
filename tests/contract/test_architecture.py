"""The folders of the package depend on each other one way only, and so do its modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import themis

ROOT = Path(themis.__file__).parent


def modules() -> dict[str, Path]:
    """Every module by name; a package by its own."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield what a module imports of the package, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and (module := node.module or "") in known:
            full = (f"{module}.{name.name}" for name in node.names)
            yield from (name if name in known else module for name in full)


def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: set(imported(path, known)) - {name} for name, path in known.items()}


def folder(module: str) -> str:
    """The part of the package that a module belongs to."""
    return ".".join(module.split(".")[:2])


def check_one_way(edges: Mapping[str, set[str]]) -> None:
    try:
        tuple(TopologicalSorter(edges).static_order())
    except CycleError as error:
        pytest.fail(f"imports go round: {' -> '.join(error.args[1])}")


FACADE = {"themis", "themis.__main__"}


def test_modules_import_one_way() -> None:
    edges = {name: to - FACADE for name, to in graph().items() if name not in FACADE}
    assert len(edges) > 100
    check_one_way(edges)


def test_folders_import_one_way() -> None:
    edges: dict[str, set[str]] = {}
    for name, to in graph().items():
        if name not in FACADE:
            places = {folder(other) for other in to - FACADE} - {folder(name)}
            edges.setdefault(folder(name), set()).update(places)
    check_one_way(edges)
    assert "themis.traces" in edges["themis.scenario"]
