"""What holds in every auction, whatever is on offer and whoever bids."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, get_args

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from themis import AppState, AuctionOutcome, Bid, clear_auction
from themis.auction.clearing import Payment
from themis.auction.slots import SlotKey

Counted = dict[SlotKey, int]
Bids = list[Bid | AppState]

REASONS = {"won", "paid_all", "leftover", "not_visible", "no_useful_bundle", "outbid"}
CLOSE = 1e-9
many = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.data_too_large])


@st.composite
def offers(draw: st.DrawFn) -> Counted:
    """Up to 6 slots of up to 6 GPUs (some have none), anywhere over machines and racks."""
    offer: Counted = {}
    rack = machine = slot = 0
    for _ in range(draw(st.integers(1, 6))):
        offer[rack, machine, slot] = draw(st.integers(0, 6))
        step = draw(st.sampled_from(["slot", "machine", "rack"]))
        slot = slot + 1 if step == "slot" else 0
        machine += step != "slot"
        rack += step == "rack"
    return offer


@st.composite
def states(draw: st.DrawFn, name: str, offer: Counted) -> AppState:
    """An app state; it may hold GPUs of the slots on offer and of others."""
    gang, jobs = draw(st.integers(1, 5)), draw(st.sampled_from([1, 1, 1, 2, 3]))
    max_gpus = gang * jobs + draw(st.integers(0, 6))
    steps = st.sampled_from([1.0, 1.0, 0.9, 0.5, 0.2])
    scores = [1.0]
    for _ in range(3):
        scores.append(scores[-1] * draw(steps))
    held: Counted = {}
    if draw(st.booleans()):
        places = st.sampled_from([*offer, (0, 900, 0), (9, 909, 0), (9, 909, 1)])
        for key in draw(st.lists(places, max_size=max_gpus)):
            held[key] = held.get(key, 0) + 1
    return AppState(
        name,
        elapsed_s=draw(st.sampled_from([0, 10, 600, 9_000])),
        work_left_s=draw(st.floats(1, 1e5)),
        gang_size=gang,
        max_gpus=max_gpus,
        t_id_s=draw(st.floats(10, 1e4)),
        held=held,
        profile=scores,
        n_avg=draw(st.sampled_from([1.0, 3.5])),
        jobs=jobs,
    )


@st.composite
def tables(draw: st.DrawFn, name: str, offer: Counted) -> Bid:
    """An explicit bid; some rows ask for more than there is, or for nothing."""
    row = st.tuples(*(st.integers(0, n + (n > 0)) for n in offer.values()))
    rows = draw(st.lists(st.tuples(row, st.floats(0.01, 100)), max_size=4))
    return Bid(name, draw(st.none() | st.floats(0.01, 1_000)), rows)


@st.composite
def auctions(draw: st.DrawFn, *, only_tables: bool = False) -> tuple[Counted, Bids]:
    offer = draw(offers())
    bids: Bids = []
    for at in range(draw(st.integers(0, 5))):
        is_table = only_tables or draw(st.integers(0, 2)) == 0
        name = f"app{at}"
        bid: Bid | AppState = draw(tables(name, offer)) if is_table else draw(states(name, offer))
        bids.append(bid)
    return offer, bids


rules = st.fixed_dictionaries(
    {
        "payment": st.sampled_from(get_args(Payment)),
        "seed": st.integers(0, 2**64 - 1),
        "fairness_knob": st.sampled_from([0.0, 0.0, 0.5, 0.8, 1.0]),
        "outside_option": st.sampled_from(["min_bundle", "fair_share", "cached", "unbounded"]),
        "leftover": st.sampled_from(["random", "holders_first", "worst_first"]),
        "lease_s": st.sampled_from([1.0, 600.0]),
    }
)


def granted(outcome: AuctionOutcome, app_id: str) -> Counted:
    return {key: gpus for key, gpus in outcome.counts(app_id).items() if gpus}


def total(held: Mapping[SlotKey, int], more: Mapping[SlotKey, int]) -> Counted:
    return {key: held.get(key, 0) + more.get(key, 0) for key in (*held, *more)}


@many
@given(auctions(), rules)
def test_every_gpu_ends_in_one_place(auction: tuple[Counted, Bids], rule: dict[str, Any]) -> None:
    offer, bids = auction
    outcome = clear_auction(offer, bids, **rule)
    ends = dict.fromkeys(offer, 0)
    for *key, gpus in outcome.leftovers.select("rack", "machine", "slot", "gpus").iter_rows():
        ends[tuple(key)] += gpus  # a KeyError: outside the offer
    for bid in bids:
        for slot, gpus in granted(outcome, bid.app_id).items():
            ends[slot] += gpus
    assert ends == offer
    for bid in bids:
        if isinstance(bid, AppState):
            more = sum(granted(outcome, bid.app_id).values())
            has = sum(bid.held.values()) + more
            assert has <= bid.max_gpus
            assert not more or has >= bid.gang_size


@many
@given(auctions(), rules)
@example(
    ({(0, 0, 0): 1}, [AppState("app0", 0, 1, 1, 1, 10), Bid("app1", None, [((0,), 1), ((1,), 1)])]),
    {"payment": "gpus", "fairness_knob": 0.0},  # once kept a row of no GPU and called it won
)
def test_figures_and_reasons(auction: tuple[Counted, Bids], rule: dict[str, Any]) -> None:
    offer, bids = auction
    outcome = clear_auction(offer, bids, **rule)
    document = outcome.to_dict()
    json.dumps(document, allow_nan=False)
    assert outcome.objective <= outcome.upper_bound
    assert outcome.gap >= 0
    names = [bid.app_id for bid in bids]
    assert sorted(row["app_id"] for row in document["reasons"]) == names
    assert sorted(row["app_id"] for row in document["payments"]) == names
    for row in document["reasons"]:
        assert row["reason"] in REASONS
        assert len(row["explanation"]) > 10
        has = bool(granted(outcome, row["app_id"]))
        assert has == (row["reason"] in {"won", "leftover"})
    for row in document["payments"]:
        assert 0 < row["c"] <= 1
        assert row["lease_fraction"] == (row["c"] if rule["payment"] == "lease" else 1)
        assert row["gpus_kept"] <= row["gpus_won"]
        if rule["payment"] in ("none", "lease"):
            assert row["gpus_kept"] == row["gpus_won"]
        elif rule["payment"] == "lottery":
            assert row["gpus_kept"] in (0, row["gpus_won"])
        if row["c"] == 1:
            assert row["gpus_kept"] == row["gpus_won"]
    for row in document["winners"]:
        assert row["rho_empty"] is None or row["rho"] < row["rho_empty"] * (1 + CLOSE)
    visible = {row["app_id"] for row in document["bids"]}
    most = max(1, math.ceil((1 - rule["fairness_knob"]) * len(bids) - CLOSE))
    assert len(visible | {row["app_id"] for row in document["winners"]}) <= most


def could_be_faster(app: AppState, has: Counted, free: Counted) -> bool:
    """Would a job on `has` run faster with some of the free GPUs as well?"""

    def rate(gpus: int, level: int) -> float:
        return min(gpus, app.max_gpus) / app.slowdowns()[level] if gpus >= app.gang_size else 0

    used = [key for key, gpus in has.items() if gpus]
    parts = [{key[: 3 - level] for key in used} for level in range(4)]
    now = next(level for level in range(4) if len(parts[level]) <= 1)
    gpus = sum(has.values())
    for level in range(now, 4):
        for part in parts[level] or {key[: 3 - level] for key in free}:
            more = sum(n for key, n in free.items() if key[: 3 - level] == part)
            if more and rate(gpus + more, level) > rate(gpus, now) * (1 + CLOSE):
                return gpus < app.max_gpus
    return False


@many
@given(auctions(), rules)
def test_nothing_is_left_that_somebody_could_use(
    auction: tuple[Counted, Bids], rule: dict[str, Any]
) -> None:
    offer, bids = auction
    outcome = clear_auction(offer, bids, **rule)
    rows = outcome.leftovers.select("rack", "machine", "slot", "gpus").iter_rows()
    free: Counted = {row[:3]: row[3] for row in rows}
    for bid in bids:
        has = granted(outcome, bid.app_id)
        if isinstance(bid, Bid):
            slots = list(offer)
            wishes = [
                (dict(zip(slots, counts, strict=True)), rho)
                for counts, rho in bid.rows
                if isinstance(counts, tuple) and any(counts)
            ]
            rho_now = min(
                (rho for wish, rho in wishes if all(has.get(s, 0) >= n for s, n in wish.items())),
                default=math.inf,
            )
            rho_now = min(rho_now, bid.rho_empty or math.inf)
            for wish, rho in wishes:
                if all(has.get(s, 0) + free.get(s, 0) >= n for s, n in wish.items()):
                    assert rho >= rho_now * (1 - CLOSE)
        elif bid.jobs == 1:
            assert not could_be_faster(bid, total(bid.held, has), free)
        elif not bid.held and not has:
            assert sum(free.values()) < bid.gang_size


@many
@given(auctions(), rules, st.randoms(use_true_random=False))
def test_the_order_of_bids_and_slots_changes_nothing(
    auction: tuple[Counted, Bids], rule: dict[str, Any], chance: Random
) -> None:
    offer, bids = auction
    before = json.dumps(clear_auction(offer, bids, **rule).to_dict())
    assert json.dumps(clear_auction(offer, bids, **rule).to_dict()) == before
    slots = list(offer.items())
    chance.shuffle(slots)
    keys = list(offer)
    shuffled: Bids = [
        replace(
            bid,
            rows=[
                ({k: n for k, n in zip(keys, counts, strict=True) if n}, rho)
                for counts, rho in bid.rows
                if isinstance(counts, tuple)
            ],
        )
        if isinstance(bid, Bid)
        else bid
        for bid in bids
    ]
    chance.shuffle(shuffled)
    assert json.dumps(clear_auction(dict(slots), shuffled, **rule).to_dict()) == before


@many
@given(auctions(), rules)
def test_other_labels_in_the_same_order_change_only_names(
    auction: tuple[Counted, Bids], rule: dict[str, Any]
) -> None:
    offer, bids = auction

    def rename(key: SlotKey) -> SlotKey:
        return (f"r{key[0]:04}", f"m{key[1]:04}", f"s{key[2]:04}")

    renamed: Bids = [
        replace(bid, held={rename(key): n for key, n in bid.held.items()})
        if isinstance(bid, AppState)
        else bid
        for bid in bids
    ]
    before = clear_auction(offer, bids, **rule)
    after = clear_auction({rename(key): n for key, n in offer.items()}, renamed, **rule)
    for name in ("payments", "bids", "winners", "reasons"):
        assert getattr(before, name).equals(getattr(after, name))
    for bid in bids:
        was = {rename(key): n for key, n in granted(before, bid.app_id).items()}
        assert granted(after, bid.app_id) == was


@many
@given(auctions(only_tables=True), st.randoms(use_true_random=False))
def test_names_do_not_matter_to_the_optimum_of_tables(
    auction: tuple[Counted, Bids], chance: Random
) -> None:
    offer, bids = auction
    names = [bid.app_id for bid in bids]
    chance.shuffle(names)
    machines = [key[1] for key in offer]
    numbers = sorted(set(machines), key=str)
    chance.shuffle(numbers)
    other = dict(zip(dict.fromkeys(machines), numbers, strict=True))
    moved = {(key[0], other[key[1]], key[2]): n for key, n in offer.items()}
    called: Bids = [replace(bid, app_id=name) for bid, name in zip(bids, names, strict=True)]
    before, after = (clear_auction(o, b, "none") for o, b in ((offer, bids), (moved, called)))
    assert before.gap == after.gap == 0
    assert math.isclose(before.objective, after.objective, rel_tol=1e-9, abs_tol=CLOSE)
