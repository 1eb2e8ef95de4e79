"""Random auctions so small that every allocation can be tried."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from themis import AppState, Bid

if TYPE_CHECKING:
    from tests.differential.conftest import Key

__all__ = ["random_auction", "random_mid_auction", "random_offer", "random_state"]


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


def random_mid_auction(rng: random.Random) -> tuple[dict[Key, int], list[Bid | AppState]]:
    """Three to seven apps on two to six machines of one or two slots: for an integer program."""
    offer: dict[Key, int] = {}
    rack = 0
    for machine in range(rng.randint(2, 6)):
        for slot in range(rng.choice([1, 1, 2])):
            offer[rack, machine, slot] = rng.randint(1, 5)
        rack += rng.random() < 0.35
    return offer, [random_state(rng, f"app{at}", offer) for at in range(rng.randint(3, 7))]
