"""A figure as a table: ours over the seeds, the paper's, and whether it shows what it must."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import median
from typing import Any

from themis.reproduction.experiments import Run
from themis.reproduction.panels import Panel
from themis.reproduction.rules import Grid, Verdict

__all__ = ["Cell", "PanelTable", "fill", "paper_grid"]

_ONE_PLACE = (None,)
Key = tuple[str, str, object]
"""Measure, series, place on the axis."""


@dataclass(frozen=True)
class Cell:
    """A value: ours, the median, lowest and highest over the seeds; and the paper's."""

    median: float | None
    low: float | None
    high: float | None
    seeds: int
    paper: float | None


@dataclass(frozen=True)
class PanelTable:
    """A panel with its values.

    Parameters
    ----------
    panel
        What it shows.
    series, x
        Its rows, and the places along its axis (one, None, where it has none).
    cells
        Values by measure, series and place.
    curves
        The values of all apps, over all seeds, by series, where a distribution is drawn.
    """

    panel: Panel
    series: Sequence[str]
    x: Sequence[object]
    cells: Mapping[Key, Cell]
    curves: Mapping[str, Sequence[float]]

    def grid(self, measure: str) -> Grid:
        """Return our medians of a measure."""
        return Grid(
            self.x,
            {one: [self.cells[measure, one, x].median for x in self.x] for one in self.series},
        )

    @property
    def verdicts(self) -> list[Verdict]:
        """Whether each rule of the panel holds of our medians."""
        titles = {measure.name: measure.title for measure in self.panel.measures}
        return [
            rule.judge(self.grid(rule.measure), titles[rule.measure]) for rule in self.panel.rules
        ]

    def summary(self) -> dict[str, object]:
        """Return all of it but the curves; JSON-able."""
        return {
            "figure": self.panel.figure,
            "part": self.panel.part,
            "title": self.panel.title,
            "note": self.panel.note,
            "cells": [
                {"measure": measure, "series": series, "x": x, **vars(cell)}
                for (measure, series, x), cell in self.cells.items()
            ],
            "claims": [
                {"claim": one.claim, "verdict": one.word, "because": one.because}
                for one in self.verdicts
            ],
        }


def fill(panel: Panel, runs: Iterable[Run]) -> PanelTable:
    """Read a panel's values from the runs of its experiment."""
    found: dict[Key, list[float]] = {}
    curves: dict[str, list[float]] = {}
    for run in runs:
        if any(run.values[key] != value for key, value in panel.where.items()):
            continue
        series = _named(run.values.get(panel.series, "themis"))
        x = None if panel.x is None else run.values[panel.x]
        for measure in panel.measures:
            value = measure.of_run(run)
            found.setdefault((measure.name, series, x), []).extend([] if value is None else [value])
        drawn = panel.measures[0].distribution
        if panel.chart == "cdf" and drawn is not None:
            curves.setdefault(series, []).extend(drawn(run))
    paper = {measure.name: paper_grid(panel.name, measure.name) for measure in panel.measures}
    return PanelTable(
        panel=panel,
        series=list(dict.fromkeys(series for _, series, _ in found)),
        x=list(dict.fromkeys(x for _, _, x in found)),
        cells={key: _cell(values, _paper(paper[key[0]], key)) for key, values in found.items()},
        curves=curves,
    )


def paper_grid(panel: str, measure: str) -> Grid:
    """Return the paper's values of a measure; no rows where it prints none."""
    rows = dict(_paper_values().get(panel, {}).get(measure, {}))
    x = rows.pop("x", _ONE_PLACE)
    return Grid(x, {one: y if isinstance(y, list) else [y] for one, y in rows.items()})


@cache
def _paper_values() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    text = (resources.files("themis.reproduction") / "paper.toml").read_text(encoding="utf-8")
    figures: dict[str, Mapping[str, Mapping[str, Any]]] = tomllib.loads(text)["figures"]
    return figures


def _paper(grid: Grid, key: Key) -> float | None:
    _, series, x = key
    return dict(grid.row(series)).get(x)


def _cell(values: Sequence[float], paper: float | None) -> Cell:
    if not values:
        return Cell(None, None, None, 0, paper)
    return Cell(median(values), min(values), max(values), len(values), paper)


def _named(value: object) -> str:
    """Return what a series is called: a list of one thing as that thing."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
