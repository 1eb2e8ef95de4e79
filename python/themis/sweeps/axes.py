"""The axes of a sweep, and the scenarios at the points of the grid that they span."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from themis.errors import ScenarioError
from themis.scenario.scenario import Scenario, cluster_table
from themis.scenario.tables import SweepTable
from themis.settings.overrides import apply_values, place_of

__all__ = ["Axis", "Point", "parse_axes", "points"]

_SHORT = {"policy": "policy.name", "load": "workload.load", "cluster": "cluster"}
"""Keys that only axes have, and their places; a cluster is given as to ``--cluster``."""

_MOST_VALUES = 10_000
_MOST_POINTS = 100_000
_FIXED = ("schema_version", "sweep")


class Axis(NamedTuple):
    """One thing that varies: its key as the user wrote it, its place, and its values in order."""

    key: str
    place: str
    values: tuple[object, ...]


class Point(NamedTuple):
    """One point of the grid: the value on each axis, typed as the scenario has it."""

    values: dict[str, object]
    scenario: Scenario


def parse_axes(
    table: SweepTable | None, given: Mapping[str, object] | None, *, seed: int
) -> list[Axis]:
    """Return the axes of a scenario's table with those that were `given` laid over them.

    Parameters
    ----------
    table
        The scenario's sweep table, if it has one.
    given
        Lists of values by key: a setting's bare name, a dotted place, ``seed``, ``policy``,
        ``load`` or ``cluster``.
    seed
        The scenario's seed, with which `seeds` of the table begins.

    Raises
    ------
    ScenarioError
        There is no axis, one has no values, one twice or too many, or its key is unknown or
        stands for the same as another's; or the grid is too large.
    """
    listed = {**dict(_flat(table.axes if table else {})), **dict(given or {})}
    if table is not None and table.seeds is not None:
        if "seed" in listed:
            raise ScenarioError("seeds is given and there is an axis seed: expected one of them")
        listed["seed"] = range(seed, seed + table.seeds)
    if not listed:
        raise ScenarioError("no axis to vary: expected one, such as lease_s = [300, 600]")
    axes = [_axis(key, values) for key, values in listed.items()]
    seen: dict[str, str] = {}
    for axis in axes:
        if axis.place in seen:
            raise ScenarioError(f"axes {seen[axis.place]} and {axis.key} are the same")
        seen[axis.place] = axis.key
    size = math.prod(len(axis.values) for axis in axes)
    if size > _MOST_POINTS:
        raise ScenarioError(f"the grid has {size} points: expected at most {_MOST_POINTS}")
    return axes


def points(scenario: Scenario, axes: Sequence[Axis], *, directory: Path) -> Iterator[Point]:
    """Give every point of the grid, checked; the values of the first axis change last.

    Parameters
    ----------
    scenario
        What all points share.
    axes
        What varies.
    directory
        Where relative paths on axes start.

    Raises
    ------
    ThemisError
        A point is no valid scenario; the message says which.
    """
    # Settings at their defaults are left out: a preset on an axis lies under those that were set.
    document = scenario.model_dump(exclude={"sweep"}, exclude_none=True, exclude_unset=True)
    if scenario.preset is not None and any(axis.place == "preset" for axis in axes):
        raise ScenarioError(f"axis preset: the scenario has the preset {scenario.preset} already")
    for values in itertools.product(*(axis.values for axis in axes)):
        given = {axis.key: value for axis, value in zip(axes, values, strict=True)}
        try:
            laid = _laid_over(document, axes, given, directory)
            point = Scenario.parse(laid, directory=directory)
        except ScenarioError as error:
            raise ScenarioError(f"axis value refused: {error}") from None
        typed = point.model_dump()
        yield Point({axis.key: _found(typed, axis, given[axis.key]) for axis in axes}, point)


def _flat(tables: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Give the axes of nested tables by their dotted keys: TOML reads ``policy.name`` so."""
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _axis(key: str, values: object) -> Axis:
    place = place_of(key, _SHORT)
    if place.split(".")[0] in _FIXED:
        raise ScenarioError(f"axis {key}: is the same in all runs of a sweep")
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ScenarioError(f"axis {key} is {values!r}: expected a list of values")
    found = tuple(itertools.islice(values, _MOST_VALUES + 1))
    if len(found) > _MOST_VALUES:
        raise ScenarioError(f"axis {key} has more than {_MOST_VALUES} values: expected fewer")
    if not found:
        raise ScenarioError(f"axis {key} has no value: expected one or more")
    for index, value in enumerate(found):
        if value in found[:index]:
            raise ScenarioError(f"axis {key}: value {value!r} is given twice")
    return Axis(key, place, found)


def _laid_over(
    document: Mapping[str, object],
    axes: Sequence[Axis],
    given: Mapping[str, object],
    directory: Path,
) -> dict[str, object]:
    changed = dict(document)
    for axis in axes:
        if axis.place == "cluster":  # a whole table: none of the old one's keys may stay
            changed["cluster"] = cluster_table(str(given[axis.key]), directory)
    others = ((axis.place, given[axis.key]) for axis in axes if axis.place != "cluster")
    return apply_values(changed, others)


def _found(document: Mapping[str, object], axis: Axis, given: object) -> object:
    """Return the value at a place of a checked scenario; a cluster as it was given."""
    if axis.place == "cluster":
        return str(given)
    value: object = document
    for name in axis.place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
