"""Does a lie about an app's state pay? Auctions small enough to solve exactly, single-job apps."""
# ruff: noqa: S311 - draws of instances, not of secrets

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.differential.small_auctions import random_offer, random_state

from themis import AppState, clear_auction
from themis.auction.clearing import Payment, Solver

if TYPE_CHECKING:
    from tests.differential.conftest import Key, Reference

APPS = 240
LIES = 8
KINDS = ("S", "work", "elapsed", "cap", "gang", "scale")


def random_bids(rng: random.Random, offer: dict[Key, int]) -> list[AppState]:
    """Two to four apps of one job; some hold GPUs."""
    drawn = (random_state(rng, f"app{at}", offer) for at in range(100))
    singles = [app for app in drawn if app.jobs == 1]
    return singles[: rng.randint(2, 4)]


def random_lie(rng: random.Random, app: AppState) -> tuple[str, AppState]:
    """A figure of the state, larger or smaller than it is."""
    kind, factor = rng.choice(KINDS), rng.choice([0.25, 0.5, 0.8, 1.25, 2, 4])
    step, held = rng.choice([-2, -1, 1, 2]), sum(app.held.values())
    if kind == "S":
        scores = [min(1.0, rng.uniform(0.3, 1.5) / s) for s in app.slowdowns()[1:]]
        return kind, replace(app, profile=[1.0, *sorted(scores, reverse=True)])
    if kind == "work":
        return kind, replace(app, work_left_s=app.work_left_s * factor)
    if kind == "elapsed":
        return kind, replace(app, elapsed_s=app.elapsed_s * factor + rng.choice([0, 300]))
    if kind == "scale":
        return kind, replace(app, t_id_s=app.t_id_s * factor)
    if kind == "cap":
        return kind, replace(app, max_gpus=max(app.gang_size, held, app.max_gpus + step))
    gang = max(1, app.gang_size + step)
    return kind, replace(app, gang_size=gang, max_gpus=max(gang, app.max_gpus))


def utility(
    reference: Reference,
    auction: tuple[dict[Key, int], list[AppState]],
    truth: AppState,
    *,
    payment: Payment,
    solver: Solver,
) -> float:
    """V of what it keeps; under a lottery or a shorter lease c V. Leftovers do not count."""
    offer, bids = auction
    shared = payment in ("lottery", "lease")
    outcome = clear_auction(offer, bids, "lease" if shared else payment, solver=solver)
    mine = outcome.allocation.filter(app_id=truth.app_id, cause="auction")
    rows = mine.select("rack", "machine", "slot", "gpus").iter_rows()
    got = {row[:3]: row[3] for row in rows}
    counts = tuple(got.get(key, 0) for key in offer)
    value = math.exp(reference.value(truth, list(offer))(counts))
    c = dict(outcome.payments.select("app_id", "c").iter_rows())[truth.app_id]
    return value * c if shared else value


def lies_that_pay(reference: Reference, payment: Payment, solver: Solver) -> Counter[str]:
    """Apps that gain from a lie, of `APPS`, by kind; under `any` each once."""
    gained: Counter[str] = Counter()
    worth = partial(utility, reference, payment=payment, solver=solver)
    for seed in range(APPS):
        rng = random.Random(seed)
        offer = random_offer(rng)
        bids = random_bids(rng, offer)
        at = rng.randrange(len(bids))
        honest = worth((offer, bids), bids[at])
        kinds = set()
        for _ in range(LIES):
            kind, told = random_lie(rng, bids[at])
            others = [*bids[:at], told, *bids[at + 1 :]]
            if worth((offer, others), bids[at]) > honest * (1 + 1e-6):
                kinds.add(kind)
        gained.update(kinds)
        gained["any"] += bool(kinds)
    return gained


def test_no_lie_pays_when_both_problems_are_solved_exactly(reference: Reference) -> None:
    """Under a lottery the allocation and c are the same as under shorter leases."""
    assert lies_that_pay(reference, "lease", "milp")["any"] == 0


# docs/auction.md states these shares.
@pytest.mark.parametrize(
    ("payment", "most", "least"),
    [
        ("lease", 0.05, 0.0),
        ("gpus", 0.08, 0.02),
        ("gpus_random", 0.1, 0.02),
        ("none", 0.1, 0.02),
    ],
)
def test_lies_that_pay_with_the_solver_of_every_day(
    payment: Payment, most: float, least: float, reference: Reference
) -> None:
    """Under a lease those that make it miss the best; under the others the rule itself."""
    assert least * APPS <= lies_that_pay(reference, payment, "prices")["any"] <= most * APPS
