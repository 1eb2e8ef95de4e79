"""Auctions of explicit tables against plain enumeration and an integer program."""
# ruff: noqa: S311 - draws of instances, not of secrets

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np
import pytest

from themis import AuctionOutcome, Bid, clear_auction

if TYPE_CHECKING:
    from tests.differential.conftest import Key, Reference

    Rows = list[tuple[tuple[int, ...], float]]

CLOSE = 1e-9


def random_tables(
    rng: random.Random, *, bidders: int, rows: int, slots: int
) -> tuple[dict[Key, int], list[Bid]]:
    """An offer of a few slots, and bids on random parts of it (some on more than there is)."""
    offer: dict[Key, int] = {(k % 2, k, 0): rng.randint(1, 4) for k in range(slots)}
    bids = []
    for name in range(bidders):
        table: Rows = [
            (
                tuple(rng.choice([0, 0, 1, n, n + 1]) for n in offer.values()),
                rng.choice([0.25, 0.5, 1.0, 2.0]) * rng.choice([1.0, rng.uniform(0.5, 2.0)]),
            )
            for _ in range(rng.randint(1, rows))
        ]
        bids.append(Bid(f"app{name}", rng.choice([None, 3.0, 8.0, 1.0]), table))
    return offer, bids


def best_by_enumeration(
    reference: Reference, offer: dict[Key, int], bids: Sequence[Bid], skip: str | None = None
) -> float:
    """The largest sum of log V over every disjoint choice of rows (those that ask for GPUs)."""
    options = []
    for bid in bids:
        nothing = ((0,) * len(offer), reference.log_v(bid.rho_empty))
        rows = [(tuple(counts), reference.log_v(rho)) for counts, rho in bid.rows if any(counts)]
        options.append([nothing, *rows] if bid.app_id != skip else [(nothing[0], 0.0)])
    best = -math.inf
    for choice in product(*options):
        used = [sum(column) for column in zip(*(counts for counts, _ in choice), strict=True)]
        if all(a <= b for a, b in zip(used, offer.values(), strict=True)):
            best = max(best, sum(log_v for _, log_v in choice))
    return best


@pytest.mark.parametrize("seed", range(150))
def test_small_tables_are_solved_exactly(seed: int, reference: Reference) -> None:
    rng = random.Random(seed)
    offer, bids = random_tables(rng, bidders=rng.randint(1, 4), rows=4, slots=rng.randint(1, 4))
    outcome = clear_auction(offer, bids, "none")
    best = best_by_enumeration(reference, offer, bids)
    assert outcome.objective == pytest.approx(best, abs=CLOSE, rel=1e-12)
    assert outcome.upper_bound == outcome.objective
    assert outcome.gap == 0


@pytest.mark.parametrize("seed", range(150))
def test_payments_are_those_of_exact_solutions_without_each_app(
    seed: int, reference: Reference
) -> None:
    rng = random.Random(1_000 + seed)
    offer, bids = random_tables(rng, bidders=rng.randint(1, 4), rows=3, slots=rng.randint(1, 3))
    bids = [Bid(bid.app_id, bid.rho_empty or 20.0, bid.rows) for bid in bids]
    outcome = clear_auction(offer, bids, "none")
    won = {row["app_id"]: row for row in outcome.winners.to_dicts()}
    for row in outcome.payments.to_dicts():
        assert 0 < row["c"] <= 1
        if row["app_id"] not in won:
            assert (row["c"], row["gpus_won"]) == (1, 0)
            continue
        others = outcome.objective - reference.log_v(won[row["app_id"]]["rho"])
        alone = best_by_enumeration(reference, offer, bids, skip=row["app_id"])
        assert row["c"] == pytest.approx(math.exp(others - alone), rel=1e-9)
        if len(bids) == 1:
            assert row["c"] == 1


@pytest.mark.parametrize("seed", range(60))
def test_nobody_gains_without_another_losing(seed: int, reference: Reference) -> None:
    rng = random.Random(2_000 + seed)
    offer, bids = random_tables(rng, bidders=3, rows=3, slots=rng.randint(1, 3))
    outcome = clear_auction(offer, bids, "none")
    rho = {row["app_id"]: row["rho"] for row in outcome.winners.to_dicts()}
    mine = [reference.log_v(rho.get(bid.app_id, bid.rho_empty)) for bid in bids]
    options = [
        [((0,) * len(offer), bid.rho_empty), *(row for row in bid.rows if any(row[0]))]
        for bid in bids
    ]
    for choice in product(*options):
        counts = zip(*(tuple(counts) for counts, _ in choice), strict=True)
        if any(sum(c) > n for c, n in zip(counts, offer.values(), strict=True)):
            continue
        other = [reference.log_v(rho) for _, rho in choice]
        assert not (
            all(b >= a for a, b in zip(mine, other, strict=True)) and sum(other) > sum(mine) + CLOSE
        )


def solve_program(reference: Reference, offer: dict[Key, int], bids: Sequence[Bid]) -> float:
    """The largest sum of log V by an open integer-programming solver."""
    solver: Any = highspy
    model = solver.Highs()
    model.setOptionValue("output_flag", False)  # noqa: FBT003 - its option
    gains: list[float] = []
    uses: list[list[int]] = []  # a unit a bidder (one row each), and GPUs a slot
    for at, bid in enumerate(bids):
        for counts, rho in bid.rows:
            assert isinstance(counts, tuple)
            gains.append(reference.log_v(rho) - reference.log_v(bid.rho_empty))
            uses.append([*(int(at == other) for other in range(len(bids))), *counts])
    for gain in gains:
        model.addCol(gain, 0, 1, 0, np.array([], dtype=np.int32), np.array([]))
        model.changeColIntegrality(model.getNumCol() - 1, solver.HighsVarType.kInteger)
    columns = np.arange(len(gains), dtype=np.int32)
    for at, most in enumerate([1] * len(bids) + list(offer.values())):
        row = np.array([float(use[at]) for use in uses])
        model.addRow(-solver.kHighsInf, most, len(columns), columns, row)
    model.changeObjectiveSense(solver.ObjSense.kMaximize)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_abs_gap", 1e-9)
    model.run()
    assert model.getModelStatus() == solver.HighsModelStatus.kOptimal
    nothing = sum(reference.log_v(bid.rho_empty) for bid in bids)
    gained: float = model.getInfo().objective_function_value
    return gained + nothing


def mid_size(
    seed: int, size: int, machines: int = 6, rows_each: int | None = None
) -> tuple[dict[Key, int], list[Bid]]:
    """Machines of 4 GPUs; rows of one or two machines, as many a bid as bidders unless given."""
    rng = random.Random(seed)
    offer: dict[Key, int] = {(0, k, 0): 4 for k in range(machines)}
    bids = []
    for name in range(size):
        rho_empty = rng.uniform(5, 20)
        rows: Rows = []
        for _ in range(rows_each or size):
            counts = [0] * len(offer)
            for slot in rng.sample(range(len(offer)), rng.randint(1, 2)):
                counts[slot] = rng.randint(1, 4)
            rows.append((tuple(counts), rho_empty / (1 + sum(counts) * rng.uniform(0.2, 1))))
        bids.append(Bid(f"app{name}", rho_empty, rows))
    return offer, bids


@pytest.mark.parametrize("size", [7, 10, 14])
@pytest.mark.parametrize("seed", range(3_000, 3_015))
def test_tables_of_moderate_size_equal_an_integer_program(
    seed: int, size: int, reference: Reference
) -> None:
    offer, bids = mid_size(seed, size)
    outcome = clear_auction(offer, bids, "none")
    best = solve_program(reference, offer, bids)
    assert outcome.gap == pytest.approx(0, abs=1e-12)
    assert outcome.objective == pytest.approx(best, abs=1e-6)


def errors_of_payments(
    reference: Reference, offer: dict[Key, int], bids: Sequence[Bid], outcome: AuctionOutcome
) -> list[float]:
    """By how much c of each winner is off the one of an integer program without it."""
    rho = dict(outcome.winners.select("app_id", "rho").iter_rows())
    errors = []
    for app_id, c in outcome.payments.select("app_id", "c").iter_rows():
        if app_id in rho:
            others = outcome.objective - reference.log_v(rho[app_id])
            rest = [bid for bid in bids if bid.app_id != app_id]
            exact = math.exp(min(0, others - solve_program(reference, offer, rest)))
            errors.append(abs(c - exact))
    return errors


def test_tables_of_twenty_and_thirty_apps_come_close_to_an_integer_program(
    reference: Reference,
) -> None:
    short, errors = [], []
    for size, machines, rows, seeds in ((20, 8, 12, 8), (30, 12, 16, 8)):
        for seed in range(3_000, 3_000 + seeds):
            offer, bids = mid_size(seed, size, machines, rows)
            outcome = clear_auction(offer, bids, "none")
            best = solve_program(reference, offer, bids)
            assert outcome.objective <= best + 1e-6
            assert outcome.upper_bound >= best - 1e-6
            short.append(best - outcome.objective)
            if seed < 3_003:
                errors += errors_of_payments(reference, offer, bids, outcome)
    assert sum(gap < 1e-6 for gap in short) >= 11
    assert sum(short) / len(short) < 0.02
    assert sum(errors) / len(errors) < 0.06
    assert max(errors) < 0.25


@pytest.mark.parametrize("bidders", [8, 20])
def test_tables_of_every_bundle_are_solved(bidders: int) -> None:
    """All 3,124 bundles of five machines of 4 GPUs, worth less where they are spread."""
    rng = random.Random(1)
    offer: dict[Key, int] = {(0, k, 0): 4 for k in range(5)}
    bids = []
    for name in range(bidders):
        speed = [rng.uniform(0.3, 1) for _ in offer]
        rho_empty, scale = rng.uniform(5, 20), rng.uniform(0.3, 1)
        rows: Rows = []
        for counts in product(range(5), repeat=len(offer)):
            if any(counts):
                near = 1 if sum(gpus > 0 for gpus in counts) == 1 else 0.7
                gain = scale * near * rng.uniform(0.8, 1.2)
                gain *= sum(gpus * each for gpus, each in zip(counts, speed, strict=True))
                rows.append((counts, rho_empty / (1 + gain)))
        bids.append(Bid(f"app{name}", rho_empty, rows))
    outcome = clear_auction(offer, bids, "none")
    greedy = clear_auction(offer, bids, "none", solver="greedy")
    assert outcome.objective > greedy.objective + 0.01
    assert 0 <= outcome.gap <= 1e-9


def test_nearly_divisible_goods_are_never_charged_more_than_one_in_e() -> None:
    """One slot of many GPUs and values linear in GPUs: as if the goods could be cut."""
    for bidders in (2, 3, 4):
        gpus = 12 * bidders
        bids = [
            Bid(f"app{k}", 1e6, [((n,), (k + 1) / n) for n in range(1, gpus + 1)])
            for k in range(bidders)
        ]
        outcome = clear_auction({(0, 0, 0): gpus}, bids, "none")
        shares = outcome.payments.get_column("gpus_won").to_list()
        assert shares == [12] * bidders  # equal shares, whatever the scale of V
        expected = (1 - 1 / bidders) ** (bidders - 1)
        for c in outcome.payments.get_column("c"):
            assert c == pytest.approx(expected, rel=1e-9)
            assert c >= 1 / math.e
