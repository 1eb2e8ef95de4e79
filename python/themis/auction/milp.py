"""``solver = "milp"``: one auction, and every payment, solved exactly by HiGHS.

A checker for auctions of moderate size: every payment is a program of its own. What an app of many
jobs gains is concave in its rate, so that tangents bound it from above: a program is solved again,
with tangents where its last answer was, until they meet the curve.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from themis.auction.program import Curve, Program
from themis.errors import ScenarioError

__all__ = ["MOST_CHOICES", "solve_program"]

MOST_CHOICES = 5_000
"""Bundles that the bidders may choose from, together: some 30 apps on 256 GPUs."""

_MOST_NODES = 200_000
_CLOSE = 1e-9

Parts = list[tuple[int, list[tuple[int, int]]]]
"""What a bidder wins: (job, GPUs a slot)."""


def solve_program(program: Program) -> dict[int, tuple[Parts, float]]:
    """Return what each bidder wins, and its hidden payment c.

    Raises
    ------
    ScenarioError
        highspy is not installed, or the program is too large or too hard.
    """
    if len(program.choices) > MOST_CHOICES:
        raise ScenarioError(
            f"solver is 'milp', but there are {len(program.choices)} bundles to choose from: "
            f"expected at most {MOST_CHOICES}; solver 'prices' takes auctions of any size"
        )
    if not program.choices:
        return {}
    model = _Model(program)
    best = model.solve()
    wins = place(program, best.chosen)
    return {bidder: (wins[bidder], _payment(model, best, bidder, wins)) for bidder in wins}


@dataclass(frozen=True)
class _Answer:
    """How often each choice is made, and what each bidder gains."""

    chosen: list[int]
    gains: Mapping[int, float]


def _payment(model: _Model, best: _Answer, bidder: int, wins: Mapping[int, Parts]) -> float:
    if not wins[bidder] or len(wins) == 1:
        return 1.0
    others = math.fsum(gain for other, gain in best.gains.items() if other != bidder)
    log_c = others - math.fsum(model.solve(without=bidder).gains.values())
    return max(math.exp(min(log_c, 0.0)), sys.float_info.min)


def place(program: Program, chosen: Sequence[int]) -> dict[int, Parts]:
    """Return the GPUs of the choices made: small places first, so that none lacks room."""
    free = {slot: place.free for slot, place in enumerate(program.places) if place.level == 0}
    jobs = {
        (bidder, group): list(numbers)
        for bidder, part in program.bidders.items()
        for group, numbers in enumerate(part.groups)
    }
    wins: dict[int, Parts] = {bidder: [] for bidder in program.bidders}
    made = [choice for choice, times in zip(program.choices, chosen, strict=True) if times
            for _ in range(times)]  # fmt: skip
    for choice in sorted(made, key=lambda choice: choice.gpus[0][0]):
        part: list[tuple[int, int]] = []
        for number, gpus in choice.gpus:
            missing = gpus
            for slot in sorted(program.places[number].slots):
                taken = min(missing, free[slot])
                if taken:
                    part.append((slot, taken))
                    free[slot] -= taken
                    missing -= taken
        wins[choice.bidder].append((jobs[choice.bidder, choice.group].pop(0), part))
    return wins


class _Model:
    """The program in HiGHS; tangents found for one question serve the next."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.solver, self.integer = _new_solver()
        self.columns: dict[int, list[int]] = {bidder: [] for bidder in program.bidders}
        for number, choice in enumerate(program.choices):
            self.columns[choice.bidder].append(number)
        self.most = [len(program.bidders[c.bidder].groups[c.group]) for c in program.choices]
        for choice, most in zip(program.choices, self.most, strict=True):
            self.column(choice.gain, most, whole=True)
        self.tangents = {
            bidder: _Tangents(self, part.curve, self.columns[bidder])
            for bidder, part in program.bidders.items()
            if part.curve is not None and self.columns[bidder]
        }
        self._add_jobs()
        self._add_places()

    def solve(self, without: int | None = None) -> _Answer:
        """Return the best answer, of all bidders or without one."""
        banned = [] if without is None else self.columns[without]
        for column in banned:
            self.solver.changeColBounds(column, 0, 0)
        while True:
            values = self._run()
            chosen = [round(values[column]) for column in range(len(self.program.choices))]
            over = [at for at, tangents in self.tangents.items() if tangents.bend(values, chosen)]
            if not over:
                break
        for column in banned:
            self.solver.changeColBounds(column, 0, self.most[column])
        return _Answer(chosen, {bidder: self._gain(bidder, chosen) for bidder in self.columns})

    def column(self, gain: float, most: float, *, whole: bool) -> int:
        """Add a column from 0 to `most`; return its number."""
        number: int = self.solver.getNumCol()
        self.solver.addCol(gain, 0, most, 0, np.array([], dtype=np.int32), np.array([]))
        if whole:
            self.solver.changeColIntegrality(number, self.integer)
        return number

    def row(self, weights: Mapping[int, float], most: float) -> None:
        """Add a row: the weighted sum of these columns is at most `most`."""
        columns = np.array(list(weights), dtype=np.int32)
        values = np.array(list(weights.values()), dtype=np.float64)
        self.solver.addRow(-math.inf, most, len(columns), columns, values)

    def _run(self) -> list[float]:
        self.solver.run()
        status = self.solver.modelStatusToString(self.solver.getModelStatus())
        if status != "Optimal":
            raise ScenarioError(
                f"solver 'milp' gave up after {_MOST_NODES} nodes ({status}): expected a simpler "
                "auction; solver 'prices' takes auctions of any size"
            )
        return list(self.solver.getSolution().col_value)

    def _gain(self, bidder: int, chosen: Sequence[int]) -> float:
        if bidder in self.tangents:
            return self.tangents[bidder].gain(chosen)
        choices = self.program.choices
        return sum(chosen[column] * choices[column].gain for column in self.columns[bidder])

    def _add_jobs(self) -> None:
        """Each job makes one choice at most."""
        groups: dict[tuple[int, int], dict[int, float]] = {}
        for column, choice in enumerate(self.program.choices):
            groups.setdefault((choice.bidder, choice.group), {})[column] = 1.0
        for weights in groups.values():
            self.row(weights, self.most[next(iter(weights))])

    def _add_places(self) -> None:
        """No place is asked for more GPUs than it has, by jobs in it and in places inside it."""
        uses: list[dict[int, float]] = [{} for _ in self.program.places]
        for column, choice in enumerate(self.program.choices):
            for number, gpus in choice.gpus:
                for outer in self.program.places[number].around:
                    uses[outer][column] = uses[outer].get(column, 0.0) + gpus
        for place, weights in zip(self.program.places, uses, strict=True):
            if weights:
                self.row(weights, place.free)


class _Tangents:
    """The gain of an app of many jobs: a column below every tangent of its curve."""

    def __init__(self, model: _Model, curve: Curve, columns: Sequence[int]) -> None:
        self.model, self.curve = model, curve
        self.rates = {column: model.program.choices[column].rate for column in columns}
        most = curve.gain(curve.enough)
        self.column = model.column(1.0, max(most, 0.0), whole=False)
        self.serves: int | None = None
        if curve.base == 0:  # gains nothing until a job runs, and the curve begins there
            self.serves = model.column(0.0, 1, whole=True)
            model.row({self.serves: 1.0, **dict.fromkeys(self.rates, -1.0)}, 0.0)
            model.row({self.column: 1.0, self.serves: -max(most, 0.0)}, 0.0)
        steps = {rate * times for rate in self.rates.values() for times in (1, 2, 4, 8, 16)}
        for rate in sorted(steps):
            self._touch(curve.base + rate)

    def gain(self, chosen: Sequence[int]) -> float:
        """Return what these choices gain."""
        added = math.fsum(rate * chosen[column] for column, rate in self.rates.items())
        return max(self.curve.gain(self.curve.base + added), 0.0) if added else 0.0

    def bend(self, values: Sequence[float], chosen: Sequence[int]) -> bool:
        """Add a tangent where the answer lies above the curve; return whether it did."""
        if values[self.column] <= self.gain(chosen) + _CLOSE:
            return False
        self._touch(
            self.curve.base + math.fsum(rate * chosen[at] for at, rate in self.rates.items())
        )
        return True

    def _touch(self, rate: float) -> None:
        slope = self.curve.slope(rate)
        if not slope:
            return  # the column's own limit
        most = self.curve.gain(rate) - slope * (rate - self.curve.base)
        weights = {self.column: 1.0, **{at: -slope * rate for at, rate in self.rates.items()}}
        if self.serves is not None and most < 0:
            weights[self.serves] = -most  # the tangent counts only where the app is served
            most = 0.0
        self.model.row(weights, most)


def _new_solver() -> tuple[Any, Any]:
    """Return a solver that maximises, and the mark of a whole column."""
    try:
        import highspy  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise ScenarioError(
            "solver is 'milp', but highspy is not installed: "
            "expected the extra milp (pip install 'themis-sched[milp]')"
        ) from error
    # The public class writes a banner to standard output before an option can stop it.
    solver: Any = vars(highspy)["_Highs"]()
    options = {
        "output_flag": False,
        # Not "threads": its first user in a process decides for all, and others then fail.
        "parallel": "off",
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-9,
        "mip_feasibility_tolerance": 1e-9,
        "primal_feasibility_tolerance": 1e-9,
        "mip_max_nodes": _MOST_NODES,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return solver, highspy.HighsVarType.kInteger
