"""Auctions of app states against every bundle vector of tiny clusters."""
# ruff: noqa: S311 - draws of instances, not of secrets

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.differential.small_auctions import random_auction

from themis import AppState, AuctionOutcome, Bid, clear_auction

if TYPE_CHECKING:
    from tests.differential.conftest import Key, Reference

CLOSE = 1e-9
BATCHES = 12
EACH = 50


def ratio(log_gap: float, bidders: int) -> float:
    """A gap in the sum of log V as a ratio of geometric means."""
    return math.expm1(log_gap / bidders)


def scaled(bids: list[Bid | AppState], rng: random.Random) -> list[Bid | AppState]:
    """Return the bids of apps whose GPUs do less the more they are."""
    curves: list[dict[int, float]] = [{2: 0.8, 4: 0.5}, {3: 0.9}, {2: 0.5}, {4: 0.7, 6: 0.5}, {}]
    return [
        replace(bid, scaling=rng.choice(curves)) if isinstance(bid, AppState) else bid
        for bid in bids
    ]


@pytest.mark.parametrize("batch", range(4))
def test_no_allocation_beats_the_bound_where_jobs_scale_badly(
    batch: int, reference: Reference
) -> None:
    for seed in range(batch * EACH, (batch + 1) * EACH):
        offer, bids = random_auction(random.Random(seed))
        bids = scaled(bids, random.Random(seed))
        outcome = clear_auction(offer, bids, "none")
        best = reference.optimum(bids, offer)
        assert outcome.objective <= best + CLOSE, seed
        assert outcome.upper_bound >= best - CLOSE, seed


def test_the_integer_program_finds_the_best_where_jobs_scale_badly(reference: Reference) -> None:
    for seed in range(2 * EACH):
        offer, bids = random_auction(random.Random(seed))
        bids = scaled(bids, random.Random(seed))
        exact = clear_auction(offer, bids, "none", solver="milp")
        assert exact.objective == pytest.approx(reference.optimum(bids, offer), abs=1e-7), seed


def test_the_solver_is_no_farther_from_the_best_where_jobs_scale_badly(
    reference: Reference,
) -> None:
    found = []
    for seed in range(4 * EACH):
        offer, bids = random_auction(random.Random(seed))
        bids = scaled(bids, random.Random(seed))
        outcome = clear_auction(offer, bids, "none")
        found.append(ratio(reference.optimum(bids, offer) - outcome.objective, len(bids)))
    assert sum(gap < CLOSE for gap in found) / len(found) >= 0.9
    assert sum(found) / len(found) <= 0.02


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


def test_no_allocation_helps_one_app_and_hurts_none(reference: Reference) -> None:
    """Pareto efficiency: the program always, the usual solver but for some that miss the best."""
    improvable = 0
    for seed in range(300):
        offer, bids = random_auction(random.Random(seed))
        for solver in ("milp", "prices"):
            outcome = clear_auction(offer, bids, "none", solver=solver)
            rho = won_rho(outcome)
            least = {
                bid.app_id: -math.log(rho[bid.app_id]) - CLOSE if bid.app_id in rho else -math.inf
                for bid in bids
            }
            best = reference.optimum(bids, offer, least=least)
            dominated = best > outcome.objective + 1e-7
            assert not (dominated and solver == "milp"), seed
            improvable += dominated
    assert improvable <= 12


@pytest.mark.parametrize("seed", range(200))
def test_names_of_apps_decide_nothing_but_ties_of_age(seed: int) -> None:
    rng = random.Random(seed)
    offer, bids = random_auction(rng)
    ages = rng.sample(range(3_000), len(bids))
    states = [
        replace(bid, elapsed_s=float(age))
        for bid, age in zip(bids, ages, strict=True)
        if isinstance(bid, AppState)
    ]
    names = [f"other{at}" for at in range(len(states))]
    rng.shuffle(names)
    renamed = [replace(bid, app_id=name) for bid, name in zip(states, names, strict=True)]
    before = clear_auction(offer, states, "lease", seed)
    after = clear_auction(offer, renamed, "lease", seed)
    assert after.objective == before.objective
    assert after.upper_bound == before.upper_bound
    for bid, name in zip(states, names, strict=True):
        assert after.counts(name) == before.counts(bid.app_id)


@pytest.mark.parametrize("seed", range(200))
def test_names_of_machines_do_not_matter_to_the_optimum_of_states(seed: int) -> None:
    rng = random.Random(seed)
    offer, bids = random_auction(rng)
    machines = sorted({key[1] for key in offer}, key=str)
    other = dict(zip(machines, rng.sample(machines, len(machines)), strict=True))

    def moved(key: Key) -> Key:
        return (key[0], other.get(key[1], key[1]), key[2])

    called = [
        replace(bid, held={moved(key): n for key, n in bid.held.items()})
        if isinstance(bid, AppState)
        else bid
        for bid in bids
    ]
    renamed = {moved(key): n for key, n in offer.items()}
    best = clear_auction(offer, bids, "none", solver="milp").objective
    after = clear_auction(renamed, called, "none", solver="milp").objective
    assert after == pytest.approx(best, abs=1e-7)
    assert clear_auction(renamed, called, "none").upper_bound >= best - 1e-7
