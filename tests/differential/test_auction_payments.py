"""What each payment keeps and costs, measured on contended clusters of 16 GPUs."""
# ruff: noqa: S311 - draws of instances, not of secrets

from __future__ import annotations

import random
from functools import cache
from typing import get_args

import pytest

from themis import AppState, clear_auction
from themis.auction.clearing import Payment
from themis.auction.slots import SlotKey

AUCTIONS = 150
OFFER: dict[SlotKey, int] = {(m // 2, m, 0): 4 for m in range(4)}  # 2 racks of 2 machines of 4 GPUs
GPUS = sum(OFFER.values())


def contenders(seed: int) -> list[AppState]:
    """Six apps that want 8 to 48 GPUs together."""
    rng = random.Random(seed)
    apps = []
    for name in "abcdef":
        gang = rng.choice([1, 1, 2, 4])
        apps.append(
            AppState(
                name,
                elapsed_s=rng.uniform(0, 3_600),
                work_left_s=rng.uniform(1_000, 40_000),
                gang_size=gang,
                max_gpus=gang * rng.choice([1, 2]),
                t_id_s=rng.uniform(600, 6_000),
                profile=rng.choice(["vgg16", "resnet50", "network"]),
            )
        )
    return apps


@cache
def measured(payment: Payment) -> dict[str, float]:
    """Shares of the offer: won, kept after charging (GPU-time), granted in the end; and of c."""
    won = kept = granted = 0.0
    factors: list[float] = []
    for seed in range(AUCTIONS):
        outcome = clear_auction(OFFER, contenders(seed), payment, seed)
        for row in outcome.payments.to_dicts():
            won += row["gpus_won"]
            kept += row["gpus_kept"] * row["lease_fraction"]
            if row["gpus_won"]:
                factors.append(row["c"])
        granted += int(outcome.allocation.get_column("gpus").sum())
    total = AUCTIONS * GPUS
    return {
        "won": won / total,
        "kept": kept / won,
        "granted": granted / total,
        "charged": sum(c < 1 for c in factors) / len(factors),
        "c": sum(factors) / len(factors),
    }


def test_the_auction_is_the_same_whatever_the_payment() -> None:
    same = {(row["won"], row["charged"], row["c"]) for row in map(measured, get_args(Payment))}
    assert len(same) == 1


# docs/auction.md states these figures.
@pytest.mark.parametrize(
    ("payment", "kept"),
    [("none", 1.0), ("lottery", 0.91), ("lease", 0.91), ("gpus", 0.62), ("gpus_random", 0.91)],
)
def test_what_winners_keep(payment: Payment, kept: float) -> None:
    assert measured(payment)["kept"] == pytest.approx(kept, abs=0.015)


def test_payments_waste_no_gpu() -> None:
    granted = [measured(payment)["granted"] for payment in get_args(Payment)]
    assert min(granted) >= max(granted) - 0.01
