"""Auctions of thirty hard-to-place apps against the integer program, payments included."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from themis import AuctionOutcome, clear_auction

CLOSE = 1e-6


def won_c(outcome: AuctionOutcome) -> dict[str, float]:
    return dict(outcome.winners.select("app_id", "c").iter_rows())


# Prices, the knapsack and exchanges alone miss the best of these by 0.02 to 0.13 in log V: packings
# that best fit does not find (8, 11), jobs of one app at two localities (2), and selections that
# give up more (17). In 23, searches one bidder after the other leave c of one winner 0.12 off.
@pytest.mark.parametrize("seed", [2, 8, 11, 17, 23])
def test_auctions_that_best_fit_misses_are_solved_to_the_optimum(
    seed: int,
    instances: Any,  # noqa: ANN401
) -> None:
    drawn = instances.draw_auction(256, 30, 10, "hard", seed)
    usual = clear_auction(drawn.offer, drawn.apps, cluster_gpus=256)
    exact = clear_auction(drawn.offer, drawn.apps, cluster_gpus=256, solver="milp")
    assert usual.objective == pytest.approx(exact.objective, abs=CLOSE)
    mine, best = won_c(usual), won_c(exact)
    errors = [abs(mine[app] - best[app]) for app in mine.keys() & best.keys()]
    assert fmean(errors) <= 0.01
    assert max(errors) <= 0.05
