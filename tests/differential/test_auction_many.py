"""Auctions of more bidders than are searched: what finds room, and hidden payments from a table.

The exact c of a winner is the product of the others' values over that of the best auction without
it. Clearing the auction without it again gives what that best is at least (the objective) and at
most (the bound), and so what c is at most and at least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

import pytest

from themis import AppState, AuctionOutcome, Offer, clear_auction


class Case(NamedTuple):
    """A drawn auction, and by how much c may lie beyond its bracket, in the mean and at worst."""

    gpus: int
    bidders: int
    percent: int
    style: str
    mean: float
    worst: float
    seed: int = 5


# There are more bidders than the 64 whose payments are searched, than the 160 of the knapsack's
# core, and than the first sample of the prices. Where GPUs are scattered and gangs large the table,
# which knows places by their prices only, takes too little from some (docs/auction.md).
CASES = [
    Case(1024, 100, 50, "base", 1e-4, 1e-3),
    Case(4096, 400, 10, "base", 1e-4, 1e-3),
    Case(1024, 100, 50, "hard", 0.01, 0.05),
    # Searches give some far more than the knapsack selected for them, and they pay for that.
    Case(1024, 100, 50, "hard", 0.01, 0.05, seed=6),
    Case(1024, 100, 10, "hard", 0.01, 0.03),
]


def brackets(
    offer: Offer, apps: list[AppState], gpus: int, outcome: AuctionOutcome, step: int
) -> Iterator[tuple[str, float, float, float]]:
    """Yield (app, c, least, most) of every so many winners."""
    for app, rho, c in outcome.winners.select("app_id", "rho", "c").rows()[::step]:
        others = outcome.objective + math.log(rho)
        rest = [state for state in apps if state.app_id != app]
        without = clear_auction(offer, rest, cluster_gpus=gpus, payment="none")
        yield (
            app,
            c,
            math.exp(others - without.upper_bound),
            min(1.0, math.exp(others - without.objective)),
        )


@pytest.mark.parametrize("case", CASES)
def test_c_lies_between_what_auctions_without_the_winner_allow(
    case: Case,
    instances: Any,  # noqa: ANN401 - a module
) -> None:
    drawn = instances.draw_auction(case.gpus, case.bidders, case.percent, case.style, case.seed)
    outcome = clear_auction(drawn.offer, drawn.apps, cluster_gpus=case.gpus)
    step = max(1, outcome.winners.height // 25)
    found = list(brackets(drawn.offer, drawn.apps, case.gpus, outcome, step))
    assert len(found) >= 10
    beyond = [max(least - c, c - most, 0.0) for _, c, least, most in found]
    assert all(0 < c <= 1 for _, c, _, _ in found)
    assert fmean(beyond) <= case.mean
    assert max(beyond) <= case.worst


# Placed by size alone, and in the fullest machines of a rack first, these are 0.5 to 0.8 % below
# the bound.
@pytest.mark.parametrize(("percent", "seed"), [(10, 5), (50, 2), (50, 4)])
def test_what_is_chosen_finds_room_on_scattered_gpus(
    percent: int,
    seed: int,
    instances: Any,  # noqa: ANN401 - a module
) -> None:
    drawn = instances.draw_auction(4096, 400, percent, "hard", seed)
    outcome = clear_auction(drawn.offer, drawn.apps, cluster_gpus=4096)
    assert outcome.gap <= 0.002
