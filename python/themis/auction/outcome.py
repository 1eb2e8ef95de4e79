"""What an auction decided, as frames."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.auction.bids import AppState, Bid
from themis.auction.fates import Entrant, explain_all
from themis.auction.slots import Label, SlotKey
from themis.notebook import grid

__all__ = ["AuctionOutcome"]

_LOCALITIES = pl.Series(["slot", "machine", "rack", "cluster", None])
_NO_LOCALITY = 4
_CAUSES = pl.Series(["auction", "leftover"])


@dataclass(frozen=True, eq=False, repr=False)
class AuctionOutcome:
    """Who won which GPUs, at what payment, what is left, and why losers lost.

    Its frames are made when they are first read, so that a round costs no more than what of it is
    looked at.

    Parameters
    ----------
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

    objective: float
    upper_bound: float
    gap: float
    payment: str
    solver: str
    _core: Mapping[str, Any]
    _entrants: Sequence[Bid | AppState | Entrant]
    _keys: Sequence[SlotKey]

    @classmethod
    def from_core(
        cls,
        core: Mapping[str, Any],
        entrants: Sequence[Bid | AppState | Entrant],
        keys: Sequence[SlotKey],
        payment: str,
        solver: str,
    ) -> AuctionOutcome:
        """Return the outcome from what the compiled core answered; `keys` names its slots."""
        return cls(
            objective=core["objective"],
            upper_bound=core["upper_bound"],
            gap=core["gap"],
            payment=payment,
            solver=solver,
            _core=core,
            _entrants=entrants,
            _keys=keys,
        )

    @property
    def gap_log(self) -> float:
        """`upper_bound` - `objective`: the gap as a sum of log V."""
        return self.upper_bound - self.objective

    @cached_property
    def allocation(self) -> pl.DataFrame:
        """GPUs granted in the end: app_id, rack, machine, slot, gpus, cause.

        cause is auction or leftover.
        """
        granted = self._core["granted"]
        cause = _CAUSES[granted["leftover"].astype(np.uint32)]
        return pl.DataFrame(
            [self._app_ids[granted["entry"]], *self._where(granted), cause.alias("cause")]
        )

    @cached_property
    def payments(self) -> pl.DataFrame:
        """One row an app: app_id, c, gpus_won, gpus_kept, lease_fraction.

        c is the hidden payment, in (0, 1]; 1: pays nothing. lease_fraction is the share of a lease
        for which it keeps them.
        """
        names = ("app_id", "c", "gpus_won", "gpus_kept", "lease_fraction")
        return pl.DataFrame([self._entries[name] for name in names])

    @cached_property
    def leftovers(self) -> pl.DataFrame:
        """GPUs that nobody could use: rack, machine, slot, gpus."""
        return pl.DataFrame(self._where(self._core["unused"]))

    @cached_property
    def bids(self) -> pl.DataFrame:
        """One row a bundle bid for: app_id, gpus, locality, row, rho.

        locality is null for explicit bids, row (that of the table) for app states, and rho where it
        is unbounded.
        """
        bids = self._core["bids"]
        explicit = [isinstance(app, Bid) for app in self._entrants]
        app = np.repeat(np.arange(len(explicit), dtype=np.uint32), bids["of_entry"])
        is_explicit = np.array(explicit, dtype=bool)[app]
        level = np.where(is_explicit, _NO_LOCALITY, bids["level"]).astype(np.uint32)
        row = _whole("row", bids["row"])
        return pl.DataFrame(
            [
                self._app_ids[app],
                _whole("gpus", bids["gpus"]),
                _LOCALITIES[level].alias("locality"),
                row.set(pl.Series(~is_explicit), None),
                _real("rho", bids["rho"]),
            ]
        )

    @cached_property
    def winners(self) -> pl.DataFrame:
        """One row an app that won: app_id, gpus_won, rho_empty, rho, c, gpus_kept."""
        names = ("app_id", "gpus_won", "rho_empty", "rho", "c", "gpus_kept")
        won = self._entries["gpus_won"] > 0
        return pl.DataFrame([self._entries[name].filter(won) for name in names])

    @cached_property
    def reasons(self) -> pl.DataFrame:
        """One row an app: app_id, reason, explanation.

        reason is won, paid_all, leftover, not_visible, no_useful_bundle or outbid.
        """
        entries = self._core["entries"]
        words = explain_all(self._entrants, entries, self.payment)
        return pl.DataFrame(
            [
                self._app_ids,
                pl.Series("reason", entries["reason"], dtype=pl.String),
                pl.Series("explanation", words, dtype=pl.String),
            ]
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

    @cached_property
    def _app_ids(self) -> pl.Series:
        return pl.Series("app_id", [app.app_id for app in self._entrants], dtype=pl.String)

    @cached_property
    def _entries(self) -> Mapping[str, pl.Series]:
        """What every app won and kept, at what payment, and its rho."""
        entries = self._core["entries"]
        columns = (
            self._app_ids,
            pl.Series("c", entries["c"]),
            _whole("gpus_won", entries["won"]),
            _whole("gpus_kept", entries["kept"]),
            pl.Series("lease_fraction", entries["lease_fraction"]),
            _real("rho_empty", entries["rho_empty"]),
            _real("rho", entries["rho"]),
        )
        return {column.name: column for column in columns}

    def _where(self, table: Mapping[str, Any]) -> list[pl.Series]:
        """Return rack, machine, slot and gpus of a table of slot numbers and gpus."""
        labels = [column[table["slot"]] for column in self._labels]
        return [*labels, _whole("gpus", table["gpus"])]

    @cached_property
    def _labels(self) -> Sequence[pl.Series]:
        """Rack, machine and slot by number; as text where one of them is."""
        return [
            _label_column(name, [key[at] for key in self._keys])
            for at, name in enumerate(("rack", "machine", "slot"))
        ]


def _label_column(name: str, labels: Sequence[Label]) -> pl.Series:
    if all(isinstance(label, int) for label in labels):
        return pl.Series(name, labels, dtype=pl.Int64)
    return pl.Series(name, [str(label) for label in labels], dtype=pl.String)


def _whole(name: str, values: npt.NDArray[Any]) -> pl.Series:
    return pl.Series(name, values.astype(np.int64))


def _real(name: str, values: npt.NDArray[np.float64]) -> pl.Series:
    return pl.Series(name, values, nan_to_null=True)
