"""What a figure must show: rules about orderings, shapes and bounds, never about exact values.

The paper's lists of jobs are not public, so that its values cannot come out; who is ahead, which
way a curve runs, and bounds such as a liar's gain of 0 must. Every rule holds of the paper's own
values, wherever these are known.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "TIE",
    "Ahead",
    "Alike",
    "AtLeast",
    "AtMost",
    "Falling",
    "Grid",
    "Highest",
    "Knee",
    "Level",
    "Lowest",
    "Rising",
    "Rule",
    "Verdict",
]

TIE = 0.01
"""Values within this share of one another are tied."""

_HIGHER, _LOWER = 1, -1


@dataclass(frozen=True)
class Grid:
    """Values of one measure.

    Parameters
    ----------
    x
        Places along the figure's axis; one where it has none.
    rows
        By series, a value at each place; None where there is none.
    """

    x: Sequence[object]
    rows: Mapping[str, Sequence[float | None]]

    def row(self, series: str) -> list[tuple[object, float]]:
        """Return place and value wherever a series has one."""
        found = self.rows.get(series, [None] * len(self.x))
        return [(x, y) for x, y in zip(self.x, found, strict=True) if y is not None]

    def columns(self) -> list[tuple[object, dict[str, float]]]:
        """Return each place with the values there by series."""
        return [
            (x, {one: y for one, row in self.rows.items() if (y := row[k]) is not None})
            for k, x in enumerate(self.x)
        ]


@dataclass(frozen=True)
class Verdict:
    """Whether a rule holds (None: too little was run to say), and the values that decide it."""

    claim: str
    ok: bool | None
    because: str = ""

    @property
    def word(self) -> str:
        """How a table says it."""
        return {True: "ok", False: "differs", None: "not run"}[self.ok]


@dataclass(frozen=True)
class Rule(ABC):
    """A statement about one measure of a figure.

    Parameters
    ----------
    measure
        Name of the measure.
    who
        The series that it speaks of.
    """

    measure: str
    who: str = "themis"

    def judge(self, grid: Grid, title: str) -> Verdict:
        """Say whether it holds of the values in `grid`, whose measure is called `title`."""
        ok, because = self._holds(grid) or (None, "")
        return Verdict(self._claim(title), ok, because)

    @abstractmethod
    def _claim(self, title: str) -> str:
        """Return what is claimed of a measure."""

    @abstractmethod
    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        """Return whether it holds and the values that decide; None where these are missing."""


@dataclass(frozen=True)
class Lowest(Rule):
    """At each place no other series is lower by more than a tie."""

    _better: ClassVar[int] = _LOWER

    def _claim(self, title: str) -> str:
        return f"{self.who} has the {'lowest' if self._better == _LOWER else 'highest'} {title}"

    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        found, parts = [], []
        for x, others in grid.columns():
            mine = others.pop(self.who, None)
            if mine is None or not others:
                continue
            best = max(others, key=lambda one: self._better * others[one])
            found.append(self._better * (mine - others[best]) >= -TIE * abs(others[best]))
            parts.append(f"{_at(grid, x)}{mine:.4g}, next {best} {others[best]:.4g}")
        return (all(found), "; ".join(parts)) if found else None


@dataclass(frozen=True)
class Highest(Lowest):
    """At each place no other series is higher by more than a tie."""

    _better: ClassVar[int] = _HIGHER


@dataclass(frozen=True)
class Ahead(Rule):
    """At each place the series is lower than another by more than a tie."""

    over: str = "tiresias"

    def _claim(self, title: str) -> str:
        return f"{self.who} has a lower {title} than {self.over}"

    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        pairs = [
            (here[self.who], here[self.over])
            for _, here in grid.columns()
            if self.who in here and self.over in here
        ]
        text = "; ".join(f"{mine:.4g} to {other:.4g}" for mine, other in pairs)
        return (all(mine < (1 - TIE) * other for mine, other in pairs), text) if pairs else None


@dataclass(frozen=True)
class Alike(Rule):
    """At each place all series lie within a share of the lowest."""

    within: float = 0.05

    def _claim(self, title: str) -> str:
        return f"{title} is the same for all within {self.within:.0%}"

    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        found, parts = [], []
        for x, here in grid.columns():
            if len(here) > 1:
                low, high = min(here, key=here.__getitem__), max(here, key=here.__getitem__)
                found.append(here[high] <= (1 + self.within) * here[low])
                parts.append(f"{_at(grid, x)}{low} {here[low]:.4g}, {high} {here[high]:.4g}")
        return (all(found), "; ".join(parts)) if found else None


@dataclass(frozen=True)
class Rising(Rule):
    """Along the axis no step falls by more than a tie, and the last value is above the first.

    Judged at some `places`; at all if none are named.
    """

    places: tuple[float, ...] = ()

    _way: ClassVar[int] = _HIGHER

    def _claim(self, title: str) -> str:
        where = f" from {' to '.join(f'{x:g}' for x in self.places)}" if self.places else ""
        return f"{title} of {self.who} {'rises' if self._way == _HIGHER else 'falls'}{where}"

    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        row = [y for x, y in grid.row(self.who) if not self.places or x in self.places]
        if len(row) <= 1:
            return None
        steps = [self._way * (b - a) >= -TIE * abs(a) for a, b in itertools.pairwise(row)]
        moved = self._way * (row[-1] - row[0]) > TIE * abs(row[0])
        return moved and all(steps), _listed(row)


@dataclass(frozen=True)
class Falling(Rising):
    """Along the axis no step rises by more than a tie, and the last value is below the first."""

    _way: ClassVar[int] = _LOWER


@dataclass(frozen=True)
class Level(Rule):
    """The highest value along the axis is above the lowest by a share at most."""

    within: float = 0.15

    def _claim(self, title: str) -> str:
        return f"{title} of {self.who} varies by {self.within:.0%} at most"

    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        row = [y for _, y in grid.row(self.who)]
        if len(row) <= 1:
            return None
        return max(row) <= (1 + self.within) * min(row), _listed(row)


@dataclass(frozen=True)
class Knee(Rule):
    """The value at a place is tied with the lowest, and both ends are above it by a share."""

    at: float = 0.8
    above: float = 0.1

    def _claim(self, title: str) -> str:
        ends = f"both ends are {self.above:.0%} above"
        return f"{title} of {self.who} is lowest at {self.at:g}, {ends}"

    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        row = grid.row(self.who)
        here = next((y for x, y in row if x == self.at), None)
        if here is None or self.at in (row[0][0], row[-1][0]):
            return None
        lowest = here <= (1 + TIE) * min(y for _, y in row)
        ends = min(row[0][1], row[-1][1]) >= (1 + self.above) * here
        return lowest and ends, _listed([y for _, y in row])


@dataclass(frozen=True)
class AtLeast(Rule):
    """The series has a value or more at each place from a first one on."""

    bound: float = 0.0
    since: float | None = None

    _way: ClassVar[int] = _HIGHER

    def _claim(self, title: str) -> str:
        least = "least" if self._way == _HIGHER else "most"
        where = "" if self.since is None else f" from {self.since:g} on"
        return f"{title} of {self.who} is at {least} {self.bound:g}{where}"

    def _holds(self, grid: Grid) -> tuple[bool, str] | None:
        row = [
            y
            for x, y in grid.row(self.who)
            if self.since is None or (isinstance(x, float | int) and x >= self.since)
        ]
        met = all(self._way * y >= self._way * self.bound for y in row)
        return (met, _listed(row)) if row else None


@dataclass(frozen=True)
class AtMost(AtLeast):
    """The series has a value or less at each place from a first one on."""

    _way: ClassVar[int] = _LOWER


def _at(grid: Grid, x: object) -> str:
    return f"{x:g}: " if len(grid.x) > 1 and isinstance(x, float | int) else ""


def _listed(row: Sequence[float]) -> str:
    return ", ".join(f"{y:.4g}" for y in row)
