"""What an auction decided, as frames."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from themis.auction.bids import AppState, Bid
from themis.auction.offer import SlotKey
from themis.notebook import grid

__all__ = ["AuctionOutcome", "Entrant"]

_LOCALITIES = pl.Series(["slot", "machine", "rack", "cluster"])


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
        app_ids = pl.Series("app_id", [app.app_id for app in entrants], dtype=pl.String)
        slots, entries = _slots(keys), _entries(core, app_ids)
        return cls(
            allocation=_allocation(core["granted"], app_ids, slots),
            payments=entries.select(_PAYMENTS),
            leftovers=_where(slots, core["unused"]),
            bids=_bids(core["bids"], app_ids, [app.explicit for app in entrants]),
            winners=entries.filter(pl.col("gpus_won") > 0).select(_WINNERS),
            reasons=entries.select(
                "app_id",
                "reason",
                pl.Series("explanation", _explain_all(entrants, core, payment), dtype=pl.String),
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


def _slots(keys: Sequence[SlotKey]) -> pl.DataFrame:
    """Return rack, machine and slot by number; as text where one of them is."""
    labels: dict[str, pl.Series] = {}
    for at, name in enumerate(("rack", "machine", "slot")):
        values = [key[at] for key in keys]
        if all(isinstance(value, int) for value in values):
            labels[name] = pl.Series(values, dtype=pl.Int64)
        else:
            labels[name] = pl.Series([str(value) for value in values], dtype=pl.String)
    return pl.DataFrame(labels)


def _where(slots: pl.DataFrame, table: Mapping[str, Any]) -> pl.DataFrame:
    """Return rack, machine, slot and gpus of a table of slot numbers and gpus."""
    where: pl.DataFrame = slots[table["slot"]]
    return where.with_columns(gpus=pl.Series(table["gpus"]).cast(pl.Int64))


def _allocation(
    granted: Mapping[str, Any], app_ids: pl.Series, slots: pl.DataFrame
) -> pl.DataFrame:
    cause = pl.when(pl.Series(granted["leftover"])).then(pl.lit("leftover"))
    return _where(slots, granted).select(
        app_ids[granted["entry"]], pl.all(), cause=cause.otherwise(pl.lit("auction"))
    )


_PAYMENTS = ("app_id", "c", "gpus_won", "gpus_kept", "lease_fraction")
_WINNERS = ("app_id", "gpus_won", "rho_empty", "rho", "c", "gpus_kept")


def _entries(core: Mapping[str, Any], app_ids: pl.Series) -> pl.DataFrame:
    """Return one row an app: what it won and kept, at what payment, and its rho."""
    entries = core["entries"]
    counts = {"gpus_won": entries["won"], "gpus_kept": entries["kept"]}
    rhos = {name: pl.Series(entries[name]).fill_nan(None) for name in ("rho_empty", "rho")}
    return pl.DataFrame(
        {
            "app_id": app_ids,
            "c": entries["c"],
            **{name: pl.Series(gpus).cast(pl.Int64) for name, gpus in counts.items()},
            "lease_fraction": entries["lease_fraction"],
            **rhos,
            "reason": pl.Series(entries["reason"], dtype=pl.String),
        }
    )


def _bids(bids: Mapping[str, Any], app_ids: pl.Series, explicit: Sequence[bool]) -> pl.DataFrame:
    app = np.repeat(np.arange(len(explicit)), bids["of_entry"])
    is_explicit = pl.Series(explicit, dtype=pl.Boolean)[app]
    return pl.DataFrame(
        {
            "app_id": app_ids[app],
            "gpus": pl.Series(bids["gpus"]).cast(pl.Int64),
            "locality": _LOCALITIES[bids["level"]],
            "row": pl.Series(bids["row"]).cast(pl.Int64),
            "rho": pl.Series(bids["rho"]).fill_nan(None),
        }
    ).with_columns(
        locality=pl.when(~is_explicit).then("locality"), row=pl.when(is_explicit).then("row")
    )


class _Fate(NamedTuple):
    """What became of an app, for words: `best_gain` is that of its best bid in log V a GPU."""

    reason: str
    won: int
    kept: int
    leftover: int
    c: float
    best_gain: float


def _explain_all(entrants: Sequence[Entrant], core: Mapping[str, Any], payment: str) -> list[str]:
    entries = core["entries"]
    won = entries["won"] > 0
    cheapest = min((entries["gain"][won] / entries["won"][won]).tolist(), default=None)
    columns = [entries[name] for name in _Fate._fields[1:]]
    fates = map(_Fate, entries["reason"], *(column.tolist() for column in columns))
    return [
        _explain(app, fate, payment, cheapest) for app, fate in zip(entrants, fates, strict=True)
    ]


def _explain(app: Entrant, fate: _Fate, payment: str, cheapest: float | None) -> str:
    left = fate.leftover
    if fate.won:
        text = _explain_win(fate, payment)
    elif fate.reason == "leftover":
        text = "won nothing"
    elif app.held >= app.max_gpus:
        text = "holds all the GPUs that it can use"
    elif fate.reason == "not_visible":
        text = "not among the worst off, and nothing was left that it could use"
    elif fate.reason == "outbid":
        text = _outbid(fate, cheapest)
    elif not app.explicit:
        text = f"no part of the offer helps: {_needs(app)}"
    else:
        text = "no row of its bid is within the offer and worth more than winning nothing"
    left_over = "1 GPU was" if left == 1 else f"{left} GPUs were"
    return f"{text}; {left_over} left over for it" if left else text


def _explain_win(fate: _Fate, payment: str) -> str:
    won, kept, paid = fate.won, fate.kept, f"c = {fate.c:.4g}"
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


def _outbid(fate: _Fate, cheapest: float | None) -> str:
    price = "" if cheapest is None else f"; the winners gain {cheapest:.4g} or more"
    return f"outbid: its best bid gains {fate.best_gain:.4g} in log V a GPU{price}"
