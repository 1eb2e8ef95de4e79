"""Does a lie pay? Under each payment, on auctions that are solved exactly."""
# ruff: noqa: S311 - draws of instances, not of secrets

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from themis import AuctionOutcome, Bid, clear_auction
from themis.auction.clearing import Payment
from themis.auction.file import read_auction
from themis.auction.slots import SlotKey

LIES = json.loads((Path(__file__).parents[1] / "data" / "auction_lies.json").read_bytes())
OFFER: dict[SlotKey, int] = {(0, 0, 0): 6}
RHO_EMPTY = 1_000.0  # V of winning nothing: 0.001
APPS = 400
LIES_EACH = 10


def random_tables(rng: random.Random) -> list[Bid]:
    """Two or three apps with rising values of 1, 2, ... GPUs of one slot."""
    bids = []
    for name in range(rng.randint(2, 3)):
        value, rows = 0.0, []
        for gpus in range(rng.randint(1, 3), OFFER[0, 0, 0] + 1):
            value += rng.uniform(0.05, 1)
            rows.append(((gpus,), 1 / value))
        bids.append(Bid(f"app{name}", RHO_EMPTY, rows))
    return bids


def random_lie(rng: random.Random, bid: Bid) -> Bid:
    """The same app with other values, missing rows, or another worth of nothing."""
    rows = [
        (counts, rho * rng.choice([0.25, 0.5, 0.8, 1, 1.25, 2, 4]))
        for counts, rho in bid.rows
        if rng.random() < 0.85
    ]
    return Bid(bid.app_id, RHO_EMPTY * rng.choice([0.5, 1, 2]), rows or bid.rows)


def true_value(bid: Bid, gpus: int) -> float:
    """V of so many GPUs of the slot to the app as it really is."""
    counted = [(counts[0], rho) for counts, rho in bid.rows if isinstance(counts, Sequence)]
    return 1 / min([rho for count, rho in counted if count <= gpus], default=RHO_EMPTY)


def figures(outcome: AuctionOutcome, bid: Bid) -> dict[str, Any]:
    return outcome.payments.filter(app_id=bid.app_id).to_dicts()[0]


def utility(bids: list[Bid], truth: Bid, payment: Payment) -> float:
    """V of what it keeps; under a lottery or a shorter lease c V, the paper's reading."""
    mine = figures(clear_auction(OFFER, bids, payment), truth)
    if payment in ("lottery", "lease"):
        return float(mine["c"]) * true_value(truth, mine["gpus_won"])
    return true_value(truth, mine["gpus_kept"])


def share_of_liars_that_gain(payment: Payment) -> float:
    gained = 0
    for seed in range(APPS):
        rng = random.Random(seed)
        bids = random_tables(rng)
        at = rng.randrange(len(bids))
        honest = utility(bids, bids[at], payment)
        told = ([*bids[:at], random_lie(rng, bids[at]), *bids[at + 1 :]] for _ in range(LIES_EACH))
        gained += any(utility(lie, bids[at], payment) > honest * (1 + 1e-9) for lie in told)
    return gained / APPS


@pytest.mark.parametrize("payment", ["lottery", "lease"])
def test_no_lie_pays_when_the_payment_is_a_share_of_the_value(payment: Payment) -> None:
    assert share_of_liars_that_gain(payment) == 0


# docs/auction.md states these shares.
@pytest.mark.parametrize(
    ("payment", "share"), [("none", 0.73), ("gpus", 0.03), ("gpus_random", 0.03)]
)
def test_some_lies_pay_without_a_payment_or_in_whole_gpus(payment: Payment, share: float) -> None:
    assert share_of_liars_that_gain(payment) == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("kept", LIES, ids=[lie["payment"] for lie in LIES])
def test_kept_instances_where_a_lie_pays(kept: dict[str, Any], tmp_path: Path) -> None:
    at = kept["liar"]

    def cleared(bid: dict[str, Any], payment: str) -> dict[str, Any]:
        bids = [*kept["auction"]["bids"]]
        bids[at] = bid
        file = tmp_path / "auction.json"
        file.write_text(json.dumps({**kept["auction"], "bids": bids, "payment": payment}))
        request = read_auction(file)
        bid_made = request.bids[at]
        assert isinstance(bid_made, Bid)
        return figures(request.clear(), bid_made)

    honest = kept["auction"]["bids"][at]
    mine = {"truth": cleared(honest, kept["payment"]), "lie": cleared(kept["lie"], kept["payment"])}
    assert {name: row["gpus_kept"] for name, row in mine.items()} == kept["gpus_kept"]
    # The same lie does not pay when the payment is c V.
    truth = Bid("liar", honest["rho_empty"], [(tuple(c), rho) for c, rho in honest["rows"]])
    shares = {
        name: cleared(bid, "lease") for name, bid in (("truth", honest), ("lie", kept["lie"]))
    }
    worth = {name: row["c"] * true_value(truth, row["gpus_won"]) for name, row in shares.items()}
    assert worth["lie"] <= worth["truth"] * (1 + 1e-9)


def test_the_lottery_is_won_as_often_as_c_says() -> None:
    bids = [Bid(f"app{k}", RHO_EMPTY, [((n,), (k + 1) / n) for n in range(1, 7)]) for k in range(2)]
    kept = [
        figures(clear_auction(OFFER, bids, "lottery", seed), bids[0])["gpus_kept"] == 3
        for seed in range(2_000)
    ]
    assert figures(clear_auction(OFFER, bids, "none"), bids[0])["c"] == pytest.approx(0.5)
    assert fmean(kept) == pytest.approx(0.5, abs=0.04)


def test_random_rounding_keeps_c_of_the_gpus_on_average() -> None:
    bids = [Bid(f"app{k}", RHO_EMPTY, [((n,), (k + 1) / n) for n in range(1, 7)]) for k in range(2)]
    kept = [
        figures(clear_auction(OFFER, bids, "gpus_random", seed), bids[0])["gpus_kept"]
        for seed in range(2_000)
    ]
    assert set(kept) == {1, 2}
    assert fmean(kept) == pytest.approx(1.5, abs=0.04)
