"""Clear one auction: who wins which GPUs, what they pay, and what is left over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from themis import _core
from themis.auction.bids import AppState, Bid, check_bids, number_slots
from themis.auction.offer import Offer, check_gpu_types
from themis.auction.outcome import AuctionOutcome
from themis.auction.rules import check_rules
from themis.auction.slots import Label, Numbering, SlotKey
from themis.cluster.spec import UNTYPED
from themis.errors import ScenarioError

__all__ = ["Payment", "Solver", "clear_auction"]

Solver = Literal["prices", "greedy", "milp"]
Payment = Literal["lottery", "lease", "gpus", "gpus_random", "none"]
_CoreSlots = dict[str, npt.NDArray[np.uint32]]


def clear_auction(  # noqa: PLR0913 - the contract's signature, and the rules by name
    offer: Offer | Mapping[SlotKey, int] | Sequence[tuple[Label, Label, Label, int]] | pl.DataFrame,
    bids: Sequence[Bid | AppState],
    payment: Payment = "lottery",
    seed: int = 0,
    *,
    solver: Solver = "prices",
    fairness_knob: float = 0.0,
    outside_option: Literal["min_bundle", "fair_share", "cached", "unbounded"] = "min_bundle",
    leftover: Literal["random", "holders_first", "worst_first"] = "holders_first",
    lease_s: float = 600.0,
    cluster_gpus: int | None = None,
    gpu_types: Mapping[Label, str] | None = None,
) -> AuctionOutcome:
    """Return the outcome of one partial-allocation auction (paper, section 3.3).

    Parameters
    ----------
    offer
        Free GPUs a (rack, machine, slot): a mapping, rows of 4 values, or a frame with the columns
        rack, machine, slot and gpus.
    bids
        One a app. Ties: longer elapsed, then app id; the order of the list decides nothing.
    payment
        How the hidden payment is charged: docs/auction.md.
    seed
        Seeds the lottery, random rounding and leftovers.
    solver
        How the allocation and the payments are found: docs/auction.md.
    fairness_knob
        f: the worst max(1, ceil((1 - f) n)) of the apps bid, the others share what is left. 0, the
        default: all bid.
    outside_option
        What winning nothing is worth to an :class:`AppState` that holds nothing.
    leftover
        Who is served first from what nobody won, when not all bid.
    lease_s
        Length of a lease in seconds, for `outside_option`.
    cluster_gpus
        GPUs of the whole cluster, for ``outside_option="fair_share"``, each as the app's fastest
        type; None: those on offer and those held.
    gpu_types
        GPU type by machine; machines that are not named have a type of their own.

    Raises
    ------
    ScenarioError
        An app bids twice, a slot is unknown, or a value is out of range.
    """
    given = {
        "payment": payment,
        "seed": seed,
        "solver": solver,
        "fairness_knob": fairness_knob,
        "outside_option": outside_option,
        "leftover": leftover,
        "lease_s": lease_s,
        "cluster_gpus": cluster_gpus,
    }
    check_rules(given)
    check_gpu_types(gpu_types)
    slots = _offer(offer)
    check_bids(bids)
    ordered = sorted(bids, key=_tie_order)
    numbering = number_slots(slots, ordered)
    core_slots, types = _core_slots(slots, numbering, gpu_types or {})
    core_bids = _core_bids(ordered, slots, numbering, types)
    in_use = sum(slots.gpus) + int(core_bids["held_gpus"].sum())
    rules = {
        **given,
        "fairness_knob": float(fairness_knob),
        "lease_s": float(lease_s),
        "cluster_gpus": in_use if cluster_gpus is None else cluster_gpus,
    }
    if solver == "milp":
        core = _clear_exactly(core_slots, ordered, core_bids, rules)
    else:
        core = _core.clear_auction(core_slots, core_bids, rules)
    return AuctionOutcome.from_core(core, ordered, numbering.keys, payment, solver)


def _clear_exactly(
    core_slots: _CoreSlots,
    bids: Sequence[Bid | AppState],
    core_bids: Mapping[str, Any],
    rules: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what the core makes of the allocation and the payments of an integer program."""
    from themis.auction.milp import solve_program  # noqa: PLC0415 - an optional extra
    from themis.auction.program import build_program  # noqa: PLC0415 - with it

    core_rules = {**rules, "solver": "prices"}  # it has no say
    opened = _core.open_auction(core_slots, core_bids, core_rules)
    columns = (core_slots[name].tolist() for name in ("rack", "machine", "gpus", "gpu_type"))
    facts = [
        {**fact, "speeds": speeds} for fact, speeds in zip(opened, core_bids["speeds"], strict=True)
    ]
    told = [bid if isinstance(bid, AppState) else bid[1] for bid in core_bids["entrants"]]
    program = build_program(list(zip(*columns, strict=True)), told, facts)
    solved = solve_program(program)
    nothing: tuple[list[Any], float] = ([], 1.0)
    wins, payments = zip(*(solved.get(at, nothing) for at in range(len(bids))), strict=True)
    given = {"wins": wins, "c": payments, "upper_bound": -math.inf}
    return _core.clear_auction(core_slots, core_bids, core_rules, given)


def _core_slots(
    offer: Offer, numbering: Numbering, gpu_types: Mapping[Label, str]
) -> tuple[_CoreSlots, list[str]]:
    """Return what the core is told of the slots, by number, and the GPU types that there are."""
    gpus = np.zeros(len(numbering.keys), dtype=np.uint32)
    gpus[numbering.number[: len(offer.slots)]] = offer.gpus
    machines = [str(key[1]) for key in numbering.keys] if gpu_types else []
    by_name = {str(machine): kind for machine, kind in gpu_types.items()}
    unknown = by_name.keys() - set(machines)
    if unknown:
        raise ScenarioError(f"gpu_types: machine {min(unknown)!r} is neither on offer nor held")
    kinds = [by_name.get(machine, UNTYPED) for machine in machines]
    types = sorted(set(kinds)) or [UNTYPED]
    gpu_type = np.zeros(len(gpus), dtype=np.uint32)
    if kinds:
        gpu_type[:] = [types.index(kind) for kind in kinds]
    columns = {"rack": numbering.rack, "machine": numbering.machine}
    return {**columns, "gpus": gpus, "gpu_type": gpu_type}, types


def _tie_order(bid: Bid | AppState) -> tuple[float, str]:
    elapsed_s = bid.elapsed_s if isinstance(bid, AppState) else 0.0
    return (-elapsed_s, bid.app_id)


def _offer(
    offer: Offer | Mapping[SlotKey, int] | Sequence[tuple[Label, Label, Label, int]] | pl.DataFrame,
) -> Offer:
    if isinstance(offer, Offer):
        return offer
    if isinstance(offer, pl.DataFrame):
        columns = ["rack", "machine", "slot", "gpus"]
        missing = [column for column in columns if column not in offer.columns]
        if missing:
            raise ScenarioError(f"offer: column {missing[0]!r} is missing: expected {columns}")
        return Offer.of(offer.select(columns).rows())
    return Offer.of(offer)


def _core_bids(
    bids: Sequence[Bid | AppState], offer: Offer, numbering: Numbering, gpu_types: Sequence[str]
) -> dict[str, Any]:
    """Return what the core is told of the bids; `numbering` has what they hold after the offer."""
    number = numbering.number.tolist()
    held = [bid.held if isinstance(bid, AppState) else {} for bid in bids]
    return {
        "entrants": [
            bid if isinstance(bid, AppState) else (bid.rho_empty, _core_rows(bid, offer, number))
            for bid in bids
        ],
        "speeds": [bid.speeds_on(gpu_types) if isinstance(bid, AppState) else [] for bid in bids],
        "held": np.array([len(of) for of in held], dtype=np.uint32),
        "held_slots": numbering.number[len(offer.slots) :],
        "held_gpus": np.array([gpus for of in held for gpus in of.values()], dtype=np.uint32),
    }


def _core_rows(
    bid: Bid, offer: Offer, number: Sequence[int]
) -> list[tuple[list[tuple[int, int]], float]]:
    """Return the rows of a table: (slot number, GPUs) pairs, and rho."""
    rows = []
    for at, (counts, rho) in enumerate(bid.rows):
        wanted = offer.places_wanted(counts, f"app {bid.app_id!r}: rows[{at}]")
        rows.append(([(number[slot], gpus) for slot, gpus in wanted], float(rho)))
    return rows
