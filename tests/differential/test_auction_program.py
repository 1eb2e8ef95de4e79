"""The usual solver against the integer program, on auctions too large to try every allocation."""
# ruff: noqa: S311 - draws of instances, not of secrets

from __future__ import annotations

import math
import random
from statistics import fmean
from typing import NamedTuple

from tests.differential.small_auctions import random_mid_auction

from themis import AuctionOutcome, clear_auction

AUCTIONS = 240
CLOSE = 1e-7


class Pair(NamedTuple):
    """One auction, by both solvers."""

    bidders: int
    usual: AuctionOutcome
    exact: AuctionOutcome

    @property
    def short(self) -> float:
        """How much larger the geometric mean of V could be."""
        return math.expm1((self.exact.objective - self.usual.objective) / self.bidders)

    @property
    def errors(self) -> list[float]:
        """|c - c exact| of the winners."""
        both = self.usual.winners.join(self.exact.payments, on="app_id")
        return [abs(c - exact) for c, exact in both.select("c", "c_right").iter_rows()]


def pair(seed: int) -> Pair:
    offer, bids = random_mid_auction(random.Random(seed))
    usual = clear_auction(offer, bids, "none")
    return Pair(len(bids), usual, clear_auction(offer, bids, "none", solver="milp"))


# docs/auction.md states these figures.
def test_the_optimum_lies_between_the_objective_and_the_bound_and_payments_are_near() -> None:
    pairs = [pair(seed) for seed in range(AUCTIONS)]
    for seed, one in enumerate(pairs):
        assert one.usual.objective <= one.exact.objective + CLOSE, seed
        assert one.usual.upper_bound >= one.exact.objective - CLOSE, seed
        assert all(0 < c <= 1 for c in one.usual.payments.get_column("c"))
    optimal = [one for one in pairs if one.short < CLOSE]
    assert len(optimal) >= 0.75 * AUCTIONS
    assert fmean(one.short for one in pairs) <= 0.012
    assert fmean(error for one in optimal for error in one.errors) <= 0.02
