"""What an auction decided, as frames."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from themis.auction.bids import AppState, Bid
from themis.auction.offer import SlotKey
from themis.notebook import grid

__all__ = ["AuctionOutcome", "Entrant"]

_LOCALITIES = ("slot", "machine", "rack", "cluster")
_UNBOUNDED = -9_999.0  # log V of a rho that has no bound; see themis-core


class Entrant(NamedTuple):
    """What the words for an app's fate say of it beside the auction.

    Parameters
    ----------
    app_id
        The app.
    explicit
        It bid a table of its own.
    held
        GPUs that it held before.
    gang_size, max_gpus
        Fewest and most that it can use.
    """

    app_id: str
    explicit: bool = False
    held: int = 0
    gang_size: int = 1
    max_gpus: int = 2**32

    @classmethod
    def of(cls, bid: Bid | AppState) -> Entrant:
        """Return that of a bid."""
        if isinstance(bid, Bid):
            return cls(bid.app_id, explicit=True)
        held = sum(bid.held.values())
        return cls(bid.app_id, held=held, gang_size=bid.gang_size, max_gpus=bid.max_gpus)


@dataclass(frozen=True, eq=False, repr=False)
class AuctionOutcome:
    """Who won which GPUs, at what payment, what is left, and why losers lost.

    Parameters
    ----------
    allocation
        GPUs granted in the end: app_id, rack, machine, slot, gpus, cause (auction or leftover).
    payments
        One row an app: app_id, c (hidden payment, in (0, 1]; 1: pays nothing), gpus_won,
        gpus_kept, lease_fraction (share of a lease for which it keeps them).
    leftovers
        GPUs that nobody could use: rack, machine, slot, gpus.
    bids
        One row a bundle bid for: app_id, gpus, locality (null for explicit bids), row (null for
        app states), rho.
    winners
        One row an app that won: app_id, gpus_won, rho_empty, rho, c, gpus_kept.
    reasons
        One row an app: app_id, reason (won, paid_all, leftover, not_visible, no_useful_bundle,
        outbid), explanation.
    objective
        Sum over the bidders of log V, V = 1/rho, before charging.
    upper_bound
        No allocation has a larger sum.
    gap
        exp((upper_bound - objective) / bidders) - 1: how much larger the geometric mean of V could
        be at most. Infinite where more apps of unbounded rho might have been served.
    payment
        How payments were charged.
    solver
        How the allocation and the payments were found.
    """

    allocation: pl.DataFrame
    payments: pl.DataFrame
    leftovers: pl.DataFrame
    bids: pl.DataFrame
    winners: pl.DataFrame
    reasons: pl.DataFrame
    objective: float
    upper_bound: float
    gap: float
    payment: str
    solver: str

    @property
    def gap_log(self) -> float:
        """`upper_bound` - `objective`: the gap as a sum of log V."""
        return self.upper_bound - self.objective

    @classmethod
    def from_core(
        cls,
        core: Mapping[str, Any],
        entrants: Sequence[Entrant],
        keys: Sequence[SlotKey],
        payment: str,
        solver: str,
    ) -> AuctionOutcome:
        """Return the outcome from what the compiled core answered; `keys` names its slots."""
        entries = list(zip(entrants, core["entries"], strict=True))
        cheapest = _cheapest_win(core["entries"])
        granted = [
            (app.app_id, *keys[slot], gpus, cause)
            for app, entry in entries
            for part, cause in (("kept", "auction"), ("leftover", "leftover"))
            for slot, gpus in entry[part]
        ]
        unused = [(*keys[slot], gpus) for slot, gpus in core["unused"]]
        labels = {
            name: _label_type(keys, at) for at, name in enumerate(("rack", "machine", "slot"))
        }
        where = {**labels, "gpus": pl.Int64()}
        granted = [_as_text(row, labels, first=1) for row in granted]
        unused = [_as_text(row, labels, first=0) for row in unused]
        allocation = pl.DataFrame(
            granted, schema={"app_id": pl.String(), **where, "cause": pl.String()}, orient="row"
        )
        return cls(
            allocation=allocation,
            payments=_payments(entries),
            leftovers=pl.DataFrame(unused, schema=where, orient="row"),
            bids=_bids(entries),
            winners=_winners(entries),
            reasons=pl.DataFrame(
                [
                    (app.app_id, entry["reason"], _explain(app, entry, payment, cheapest))
                    for app, entry in entries
                ],
                schema={"app_id": pl.String, "reason": pl.String, "explanation": pl.String},
                orient="row",
            ),
            objective=core["objective"],
            upper_bound=core["upper_bound"],
            gap=core["gap"],
            payment=payment,
            solver=solver,
        )

    def counts(self, app_id: str) -> dict[SlotKey, int]:
        """GPUs a (rack, machine, slot) that an app was granted in the end."""
        mine = self.allocation.filter(pl.col("app_id") == app_id)
        total: dict[SlotKey, int] = {}
        for rack, machine, slot, gpus in mine.select("rack", "machine", "slot", "gpus").iter_rows():
            total[rack, machine, slot] = total.get((rack, machine, slot), 0) + gpus
        return total

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able: frames as lists of rows, null where a rho or gap is unbounded."""
        frames = ("allocation", "payments", "leftovers", "bids", "winners", "reasons")
        figures = ("payment", "solver", "objective", "upper_bound", "gap", "gap_log")
        return {
            **{name: getattr(self, name) for name in figures},
            "gap": self.gap if math.isfinite(self.gap) else None,
            **{name: getattr(self, name).to_dicts() for name in frames},
        }

    def __repr__(self) -> str:
        granted = int(self.allocation.get_column("gpus").sum())
        left = int(self.leftovers.get_column("gpus").sum())
        return (
            f"AuctionOutcome({self.reasons.height} apps, {self.winners.height} winners, "
            f"{granted} GPUs granted, {left} left over, objective={self.objective:.6g}, "
            f"gap={self.gap:.3%})"
        )

    def _repr_html_(self) -> str:
        fates = self.reasons.join(self.payments, on="app_id", how="left", maintain_order="left")
        columns = ["app_id", "reason", "gpus_won", "c", "gpus_kept", "explanation"]
        return grid(repr(self), columns, fates.select(columns).rows())


def _label_type(keys: Sequence[SlotKey], at: int) -> pl.DataType:
    return pl.Int64() if all(isinstance(key[at], int) for key in keys) else pl.String()


def _as_text(
    row: tuple[Any, ...], labels: Mapping[str, pl.DataType], *, first: int
) -> tuple[Any, ...]:
    """Return the row with its labels as text where their column is text."""
    kinds = list(labels.values())
    return tuple(
        str(value)
        if first <= at < first + len(kinds) and kinds[at - first] == pl.String()
        else value
        for at, value in enumerate(row)
    )


def _rho(log_v: float) -> float | None:
    return None if log_v <= _UNBOUNDED else math.exp(-log_v)


def _gpus(counts: Sequence[tuple[int, int]]) -> int:
    return sum(gpus for _, gpus in counts)


Entries = Sequence[tuple[Entrant, Mapping[str, Any]]]


def _payments(entries: Entries) -> pl.DataFrame:
    rows = [
        (app.app_id, entry["c"], _gpus(entry["won"]), _gpus(entry["kept"]), entry["lease_fraction"])
        for app, entry in entries
    ]
    schema = {
        "app_id": pl.String,
        "c": pl.Float64,
        "gpus_won": pl.Int64,
        "gpus_kept": pl.Int64,
        "lease_fraction": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _bids(entries: Entries) -> pl.DataFrame:
    rows = [
        (
            app.app_id,
            gpus,
            None if app.explicit else _LOCALITIES[level],
            steps if app.explicit else None,
            _rho(log_v),
        )
        for app, entry in entries
        for gpus, steps, level, log_v in entry["patterns"]
    ]
    schema = {
        "app_id": pl.String,
        "gpus": pl.Int64,
        "locality": pl.String,
        "row": pl.Int64,
        "rho": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _winners(entries: Entries) -> pl.DataFrame:
    rows = [
        (
            app.app_id,
            _gpus(entry["won"]),
            _rho(entry["log_v_empty"]),
            _rho(entry["log_v"]),
            entry["c"],
            _gpus(entry["kept"]),
        )
        for app, entry in entries
        if entry["won"]
    ]
    schema = {
        "app_id": pl.String,
        "gpus_won": pl.Int64,
        "rho_empty": pl.Float64,
        "rho": pl.Float64,
        "c": pl.Float64,
        "gpus_kept": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _cheapest_win(entries: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the smallest gain in log V a GPU among the winners."""
    gains = [
        (entry["log_v"] - entry["log_v_empty"]) / _gpus(entry["won"])
        for entry in entries
        if entry["won"]
    ]
    return min(gains, default=None)


def _explain(app: Entrant, entry: Mapping[str, Any], payment: str, cheapest: float | None) -> str:
    left = _gpus(entry["leftover"])
    if entry["won"]:
        text = _explain_win(entry, payment)
    elif entry["reason"] == "leftover":
        text = "won nothing"
    elif app.held >= app.max_gpus:
        text = "holds all the GPUs that it can use"
    elif entry["reason"] == "not_visible":
        text = "not among the worst off, and nothing was left that it could use"
    elif entry["reason"] == "outbid":
        text = _outbid(entry, cheapest)
    elif not app.explicit:
        text = f"no part of the offer helps: {_needs(app)}"
    else:
        text = "no row of its bid is within the offer and worth more than winning nothing"
    left_over = "1 GPU was" if left == 1 else f"{left} GPUs were"
    return f"{text}; {left_over} left over for it" if left else text


def _explain_win(entry: Mapping[str, Any], payment: str) -> str:
    won, kept, paid = _gpus(entry["won"]), _gpus(entry["kept"]), f"c = {entry['c']:.4g}"
    if payment == "none":
        return f"won {won} GPUs; no payment is charged ({paid})"
    if payment == "lease":
        return f"won {won} GPUs, pays {paid}: keeps them for that share of a lease"
    if kept == won:
        return f"won {won} GPUs, pays {paid}"
    if kept:
        return f"won {won} GPUs, pays {paid}: keeps {kept}"
    if payment == "lottery":
        return f"won {won} GPUs, but lost the lottery, which it wins with {paid}"
    return f"won {won} GPUs, but {paid} leaves no whole gang"


def _needs(app: Entrant) -> str:
    if app.held >= app.gang_size:
        return "nothing on offer would speed up what it holds"
    return f"it needs {app.gang_size} GPUs or more at once"


def _outbid(entry: Mapping[str, Any], cheapest: float | None) -> str:
    empty = entry["log_v_empty"]
    best = max((log_v - empty) / gpus for gpus, _, _, log_v in entry["patterns"])
    price = "" if cheapest is None else f"; the winners gain {cheapest:.4g} or more"
    return f"outbid: its best bid gains {best:.4g} in log V a GPU{price}"
