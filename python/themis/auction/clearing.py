"""Clear one auction: who wins which GPUs, what they pay, and what is left over."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import polars as pl

from themis import _core
from themis.auction.bids import AppState, Bid, check_bids
from themis.auction.offer import Counts, Label, Offer, SlotKey, check_gpu_types
from themis.auction.outcome import AuctionOutcome
from themis.auction.rules import check_rules
from themis.cluster.spec import UNTYPED
from themis.errors import ScenarioError

__all__ = ["Payment", "Solver", "clear_auction"]

Solver = Literal["prices", "greedy", "milp"]
Payment = Literal["lottery", "lease", "gpus", "gpus_random", "none"]


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
    check_bids(slots, bids)
    ordered = sorted(bids, key=_tie_order)
    held = [bid.held for bid in ordered if isinstance(bid, AppState)]
    numbering = _Numbering(slots, [key for where in held for key in where], gpu_types or {})
    in_use = sum(slots.gpus) + sum(sum(where.values()) for where in held)
    rules = {
        **given,
        "fairness_knob": float(fairness_knob),
        "lease_s": float(lease_s),
        "cluster_gpus": in_use if cluster_gpus is None else cluster_gpus,
    }
    core_bids = [_core_bid(bid, slots, numbering) for bid in ordered]
    if solver == "milp":
        core = _clear_exactly(numbering, ordered, core_bids, rules)
    else:
        core = _core.clear_auction(numbering.slots, core_bids, rules)
    return AuctionOutcome.from_core(core, ordered, numbering.keys, payment, solver)


def _clear_exactly(
    numbering: _Numbering,
    bids: Sequence[Bid | AppState],
    core_bids: Sequence[Mapping[str, Any]],
    rules: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what the core makes of the allocation and the payments of an integer program."""
    from themis.auction.milp import solve_program  # noqa: PLC0415 - an optional extra
    from themis.auction.program import build_program  # noqa: PLC0415 - with it

    core_rules = {**rules, "solver": "prices"}  # it has no say
    opened = _core.open_auction(numbering.slots, core_bids, core_rules)
    facts = [
        {
            **fact,
            **(core_bid["state"] or {}),
            "held": fact["held"],
        }  # job by job, as the core has it
        for fact, core_bid in zip(opened, core_bids, strict=True)
    ]
    program = build_program(
        numbering.slots,
        [
            replace(bid, work_left_s=core_bid["state"]["work_left_s"])
            if isinstance(bid, AppState)
            else core_bid["rows"]
            for bid, core_bid in zip(bids, core_bids, strict=True)
        ],
        facts,
    )
    solved = solve_program(program)
    nothing: tuple[list[Any], float] = ([], 1.0)
    wins, payments = zip(*(solved.get(at, nothing) for at in range(len(bids))), strict=True)
    given = {"wins": wins, "c": payments, "upper_bound": -math.inf}
    return _core.clear_auction(numbering.slots, core_bids, core_rules, given)


_CoreSlot = tuple[int, int, int, int]  # rack, machine, free GPUs, GPU type


class _Numbering:
    """Slots in the core's order: by rack, machine and slot, whatever the order of the offer."""

    def __init__(
        self, offer: Offer, held: Sequence[SlotKey], gpu_types: Mapping[Label, str]
    ) -> None:
        gpus = dict.fromkeys(held, 0) | dict(zip(offer.slots, offer.gpus, strict=True))
        self.keys = _in_order(gpus)
        self.number = {key: at for at, key in enumerate(self.keys)}
        racks = {key[0]: at for at, key in enumerate(self.keys)}
        machines = {key[1]: at for at, key in enumerate(self.keys)}
        by_name = {str(machine): kind for machine, kind in gpu_types.items()}
        unknown = by_name.keys() - {str(key[1]) for key in self.keys}
        if unknown:
            raise ScenarioError(f"gpu_types: machine {min(unknown)!r} is neither on offer nor held")
        type_of = {key[1]: by_name.get(str(key[1]), UNTYPED) for key in self.keys}
        self.gpu_types = sorted(set(type_of.values()))
        self.slots: list[_CoreSlot] = [
            (
                racks[key[0]],
                machines[key[1]],
                gpus[key],
                self.gpu_types.index(type_of[key[1]]),
            )
            for key in self.keys
        ]


def _in_order(keys: Collection[SlotKey]) -> list[SlotKey]:
    """Return slots by rack, machine and slot, numbers before text."""
    kinds = ({isinstance(key[at], str) for key in keys} for at in range(3))
    if all(len(kind) == 1 for kind in kinds):
        return sorted(keys)  # the order of tuples is that one
    return sorted(keys, key=_label_order)


def _label_order(key: SlotKey) -> tuple[tuple[bool, int, str], ...]:
    return tuple(
        (isinstance(label, str), 0, label) if isinstance(label, str) else (False, label, "")
        for label in key
    )


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


def _core_bid(bid: Bid | AppState, offer: Offer, numbering: _Numbering) -> dict[str, Any]:
    if isinstance(bid, Bid):
        where = f"bid of app {bid.app_id!r}"
        rows = [
            (_counts(counts, offer, numbering, f"{where}: rows[{at}]"), float(rho))
            for at, (counts, rho) in enumerate(bid.rows)
        ]
        return {"rho_empty": bid.rho_empty, "rows": rows, "state": None}
    held = [(numbering.number[key], gpus) for key, gpus in bid.held.items() if gpus]
    speeds = bid.speeds_on(numbering.gpu_types)
    state = {
        "elapsed_s": float(bid.elapsed_s),
        "work_left_s": bid.work_left_s / (max(speeds) or 1.0),
        "t_id_s": float(bid.t_id_s),
        "gang_size": bid.gang_size,
        "max_gpus": bid.max_gpus,
        "jobs": bid.jobs,
        "held": sorted(held),
        "slowdowns": list(bid.slowdowns()),
        "scaling": bid.efficiencies(),
        "speeds": speeds,
        "mixes": bid.mixes_types,
        "n_avg": float(bid.n_avg),
    }
    return {"rho_empty": None, "rows": None, "state": state}


def _counts(
    counts: Counts, offer: Offer, numbering: _Numbering, where: str
) -> list[tuple[int, int]]:
    """Return the (slot number, GPUs) of a row of a bid."""
    return [(numbering.number[key], gpus) for key, gpus in offer.wanted(counts, where)]
