"""What one auction costs by size, and how good it is: certified gap, and the MIP where small."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bench.auction_instances import (
    LARGER,
    SIZES,
    Auction,
    Style,
    assert_plausible,
    draw_auction,
)
from bench.core_calls import clear, least_cpu_s
from click.testing import CliRunner

import themis
from themis import AppState, AuctionOutcome, Bid, Offer
from themis.cli.root import cli

if TYPE_CHECKING:
    from bench.conftest import Meter

STYLES: tuple[Style, ...] = ("base", "hard")
PERCENT = (10, 50, 100)
ALL_SIZES = [*SIZES, *(pytest.param(size, marks=pytest.mark.larger) for size in LARGER)]
ROWS_A_BID = 24


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("percent", PERCENT)
@pytest.mark.parametrize("size", ALL_SIZES, ids=lambda size: f"{size[0]}/{size[1]}")
def test_round(meter: Meter, style: Style, percent: int, size: tuple[int, int]) -> None:
    """A whole round through Python, every frame read; beside it without, and the core alone."""
    gpus, apps = size
    auction = draw_auction(gpus, apps, percent, style)
    assert_plausible(auction)
    family = f"clear {style}, {percent} % on offer"
    outcome, call = clear(auction)
    meter.time(family, "GPUs", gpus, lambda: read(clear(auction)[0]), rounds=rounds(gpus))
    granted = int(outcome.allocation.get_column("gpus").sum())
    unused = int(outcome.leftovers.get_column("gpus").sum())
    assert granted + unused == sum(auction.offer.gpus)
    assert outcome.gap >= 0
    unread_s = least_cpu_s(lambda: clear(auction), rounds(gpus))
    meter.growth.add(f"{family}, no frame read", "GPUs", gpus, unread_s)
    core_s = least_cpu_s(call, rounds(gpus))
    meter.growth.add(f"{family}, core alone", "GPUs", gpus, core_s)
    meter.note(
        bidders=apps,
        offered=sum(auction.offer.gpus),
        winners=outcome.winners.height,
        gap_percent=100 * outcome.gap,
        gap_log=outcome.gap_log,
        unread_ms=1e3 * unread_s,
        core_ms=1e3 * core_s,
    )


def read(outcome: AuctionOutcome) -> None:
    """Have every frame made."""
    for name in ("allocation", "payments", "leftovers", "bids", "winners", "reasons"):
        assert getattr(outcome, name).width


@pytest.mark.parametrize("size", ALL_SIZES, ids=lambda size: f"{size[0]}/{size[1]}")
def test_command(meter: Meter, tmp_path: Path, size: tuple[int, int]) -> None:
    """`themis auction FILE.json`: read, cleared, and shown bid by bid and app by app."""
    gpus, apps = size
    file = tmp_path / "auction.json"
    file.write_text(json.dumps(document(draw_auction(gpus, apps, 50, "base"))))
    shown: list[str] = []

    def show() -> None:
        result = CliRunner().invoke(cli, ["auction", str(file)])
        shown.append(result.output)

    meter.time("themis auction FILE, base, 50 % on offer", "GPUs", gpus, show, rounds=rounds(gpus))
    assert sum("app-" in line for line in shown[0].splitlines()) > apps


def document(auction: Auction) -> dict[str, Any]:
    """What a file says of an auction."""
    keys = ("rack", "machine", "slot", "gpus")
    bids = [
        {
            **{field.name: getattr(app, field.name) for field in dataclasses.fields(app)},
            "held": [dict(zip(keys, (*key, n), strict=True)) for key, n in app.held.items()],
            "profile": app.profile if isinstance(app.profile, str) else list(app.profile),
        }
        for app in auction.apps
    ]
    offer = [[*key, n] for key, n in zip(auction.offer.slots, auction.offer.gpus, strict=True)]
    return {"offer": offer, "bids": bids, "cluster_gpus": auction.gpus}


def rounds(gpus: int) -> int:
    return 10 if gpus <= 256 else 3 if gpus <= 4096 else 1


@dataclass
class Optimum:
    """What the MIP found: the largest sum of log V, and the CPU seconds it took."""

    objective: float
    cpu_s: float


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("percent", PERCENT)
@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: f"{size[0]}/{size[1]}")
def test_tables_against_mip(
    meter: Meter, style: Style, percent: int, size: tuple[int, int]
) -> None:
    """Explicit bids, solved here and as a mixed-integer programme in the same run."""
    pytest.importorskip("highspy")
    auctions = [draw_auction(*size, percent, style, seed) for seed in range(5)]
    tables = [(auction.offer, explicit_bids(auction)) for auction in auctions]
    outcomes = meter.time(
        f"clear 5 tables, {style}, {percent} % on offer",
        "GPUs",
        size[0],
        lambda: [themis.clear_auction(offer, bids) for offer, bids in tables],
    )
    optima = [solve_mip(offer, bids) for offer, bids in tables]
    short = [
        optimum.objective - outcome.objective
        for optimum, outcome in zip(optima, outcomes, strict=True)
    ]
    for outcome, optimum in zip(outcomes, optima, strict=True):
        assert outcome.objective <= optimum.objective + 1e-6
        assert outcome.upper_bound >= optimum.objective - 1e-6
    mip_ms = 1e3 * sum(optimum.cpu_s for optimum in optima)
    meter.note(
        mip_ms=mip_ms,
        mip_over_here=mip_ms / meter.benchmark.extra_info.get("cpu_ms", math.inf),
        equal_to_mip=sum(gap <= 1e-6 for gap in short) / len(short),
        worst_short_of_mip_percent=100 * math.expm1(max(short) / size[1]),
        mean_short_of_mip_percent=100 * math.expm1(sum(short) / len(short) / size[1]),
        worst_certified_gap_percent=100 * max(outcome.gap for outcome in outcomes),
    )


def explicit_bids(auction: Auction) -> list[Bid]:
    """Tables of up to `ROWS_A_BID` concrete bundles, valued by rho = T_sh / T_ID."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(auction.percent)))
    bids = []
    for app in auction.apps:
        rows = [
            (bundle, rho)
            for gpus in range(app.gang_size, app.max_gpus + 1, app.gang_size)
            for bundle, level in bundles(auction.offer, gpus)
            if (rho := rho_with(app, gpus, level)) < rho_without(app)
        ]
        kept = sorted(rng.permutation(len(rows))[:ROWS_A_BID].tolist())
        bids.append(Bid(app.app_id, rho_without(app), [rows[at] for at in kept]))
    return bids


def rho_without(app: AppState) -> float:
    """As if it got one gang spread over the cluster, after as long again as it has waited."""
    return 2 * rho_with(app, app.gang_size, 3)


def rho_with(app: AppState, gpus: int, level: int) -> float:
    slowdown = app.slowdowns()[level]
    return (app.elapsed_s + app.work_left_s * slowdown / gpus) / app.t_id_s


def bundles(offer: Offer, gpus: int) -> list[tuple[list[int], int]]:
    """Counts a slot with so many GPUs: of each slot, machine, rack and the cluster that can."""
    parts: list[tuple[list[int], int]] = []
    for level, fields in enumerate((3, 2, 1, 0)):
        groups = sorted({key[:fields] for key in offer.slots})
        for group in groups:
            inside = [key[:fields] == group for key in offer.slots]
            counts = first_fit(offer, inside, gpus)
            if counts is not None:
                parts.append((counts, level))
    return parts


def first_fit(offer: Offer, inside: Sequence[bool], gpus: int) -> list[int] | None:
    counts, missing = [], gpus
    for free, wanted in zip(offer.gpus, inside, strict=True):
        part = min(free, missing) if wanted else 0
        counts.append(part)
        missing -= part
    return None if missing else counts


def solve_mip(offer: Offer, bids: Sequence[Bid]) -> Optimum:
    """The largest sum of log V: a row of a bid whole or not, one a bidder, slots not exceeded."""
    import highspy  # noqa: PLC0415 - only where it is installed

    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.silent()
    model.setOptionValue("threads", 1)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_abs_gap", 1e-9)
    nothing = [math.log(bid.rho_empty or math.inf) for bid in bids]
    terms: list[Any] = []
    uses: list[list[Any]] = [[] for _ in offer.slots]
    for bid, log_rho in zip(bids, nothing, strict=True):
        chosen = [model.addBinary() for _ in bid.rows]
        if chosen:
            model.addConstr(model.qsum(chosen) <= 1)
        for take, (counts, rho) in zip(chosen, bid.rows, strict=True):
            terms.append((log_rho - math.log(rho)) * take)
            for slot, gpus in enumerate(counts):
                if gpus:
                    uses[slot].append(gpus * take)
    for free, use in zip(offer.gpus, uses, strict=True):
        if use:
            model.addConstr(model.qsum(use) <= free)
    start = time.process_time()
    model.maximize(model.qsum(terms))
    cpu_s = time.process_time() - start
    return Optimum(model.getObjectiveValue() - sum(nothing), cpu_s)
