"""Auctions of app states against every bundle vector of tiny clusters."""
# ruff: noqa: S311 - draws of instances, not of secrets

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest

from themis import AppState, AuctionOutcome, Bid, clear_auction

if TYPE_CHECKING:
    from tests.differential.conftest import Key, Reference

CLOSE = 1e-9
BATCHES = 12
EACH = 50


def random_offer(rng: random.Random) -> dict[Key, int]:
    """One to four slots of up to three GPUs, unevenly over machines and racks."""
    offer: dict[Key, int] = {}
    rack = machine = slot = 0
    for at in range(rng.randint(1, 4)):
        offer[rack, machine, slot] = rng.randint(0 if at else 1, 3)
        step = rng.random()
        slot = slot + 1 if step < 0.35 else 0
        machine += step >= 0.35
        rack += step >= 0.75
    return offer


def random_state(rng: random.Random, name: str, offer: dict[Key, int]) -> AppState:
    gang, jobs = rng.choice([1, 1, 2, 2, 3, 4]), rng.choice([1, 1, 2])
    max_gpus = gang * jobs * rng.choice([1, 1, 2, 3])
    scores = [1.0]
    while len(scores) < 4:
        scores.append(scores[-1] * rng.choice([1, 1, 0.9, 0.6, 0.3]))
    held: dict[Key, int] = {}
    if jobs == 1 and rng.random() < 0.3:
        for _ in range(rng.randint(1, max_gpus)):
            key = rng.choice([*offer, (0, 100, 0), (7, 107, 0)])
            held[key] = held.get(key, 0) + 1
    return AppState(
        name,
        elapsed_s=rng.choice([0, 50, 600, 3_000]),
        work_left_s=rng.choice([100, 1_000, 5_000]),
        gang_size=gang,
        max_gpus=max_gpus,
        t_id_s=rng.choice([50, 300, 1_000]),
        held=held,
        profile=scores,
        jobs=jobs,
    )


def random_auction(rng: random.Random) -> tuple[dict[Key, int], list[Bid | AppState]]:
    """An offer with one to four bidders: app states, and now and then an explicit table."""
    offer = random_offer(rng)
    bids: list[Bid | AppState] = []
    for name in range(rng.randint(1, 4)):
        if rng.random() < 0.15:
            rows = [
                (tuple(rng.randint(0, n) for n in offer.values()), rng.uniform(0.5, 9))
                for _ in range(3)
            ]
            bids.append(Bid(f"app{name}", rng.uniform(5, 15), rows))
        else:
            bids.append(random_state(rng, f"app{name}", offer))
    return offer, bids


def ratio(log_gap: float, bidders: int) -> float:
    """A gap in the sum of log V as a ratio of geometric means."""
    return math.expm1(log_gap / bidders)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_allocation_beats_the_bound(batch: int, reference: Reference) -> None:
    for seed in range(batch * EACH, (batch + 1) * EACH):
        offer, bids = random_auction(random.Random(seed))
        outcome = clear_auction(offer, bids, "none")
        best = reference.optimum(bids, offer)
        assert outcome.objective <= best + CLOSE, seed
        assert outcome.upper_bound >= best - CLOSE, seed
        assert outcome.gap == pytest.approx(ratio(outcome.gap_log, len(bids)), abs=1e-12)


def test_how_far_the_solver_is_from_the_best(reference: Reference) -> None:
    """Optimal in nineteen of twenty tiny auctions, below 1 % off on average; a few are far off."""
    found, certified = [], []
    for seed in range(BATCHES * EACH):
        offer, bids = random_auction(random.Random(seed))
        outcome = clear_auction(offer, bids, "none")
        best = reference.optimum(bids, offer)
        found.append(ratio(best - outcome.objective, len(bids)))
        certified.append(outcome.gap)
    optimal = sum(gap < CLOSE for gap in found) / len(found)
    assert optimal >= 0.94
    assert sum(found) / len(found) <= 0.01
    assert sum(certified) / len(certified) <= 0.08


def won_rho(outcome: AuctionOutcome) -> dict[str, float]:
    return {row["app_id"]: row["rho"] for row in outcome.winners.to_dicts()}


@pytest.mark.parametrize("batch", range(4))
def test_the_objective_is_what_the_allocation_is_worth(batch: int, reference: Reference) -> None:
    for seed in range(batch * EACH, (batch + 1) * EACH):
        offer, bids = random_auction(random.Random(seed))
        outcome = clear_auction(offer, bids, "none")
        won = outcome.allocation.filter(cause="auction")
        total = 0.0
        for bid in bids:
            rows = won.filter(app_id=bid.app_id).select("rack", "machine", "slot", "gpus")
            got = {row[:3]: row[3] for row in rows.iter_rows()}
            counts = tuple(got.get(key, 0) for key in offer)
            worth = reference.value(bid, list(offer))(counts)
            if bid.app_id in won_rho(outcome):
                said = -math.log(won_rho(outcome)[bid.app_id])
                # An app of many jobs may divide its bundle less well than it could.
                many = isinstance(bid, AppState) and bid.jobs > 1
                assert said <= worth + CLOSE if many else said == pytest.approx(worth, abs=CLOSE)
                worth = said
            total += worth
        assert outcome.objective == pytest.approx(total, abs=1e-8), seed


@pytest.mark.parametrize("seed", range(100))
def test_alone_or_without_a_win_nobody_pays(seed: int) -> None:
    offer, bids = random_auction(random.Random(seed))
    for bid in bids:
        alone = clear_auction(offer, [bid], "lottery", seed)
        assert alone.payments.get_column("c").to_list() == [1.0]
        gpus = alone.payments.get_column("gpus_won")
        assert gpus.equals(alone.payments.get_column("gpus_kept").alias("gpus_won"))
    outcome = clear_auction(offer, bids, "none")
    for row in outcome.payments.to_dicts():
        assert 0 < row["c"] <= 1
        assert row["gpus_won"] or row["c"] == 1
