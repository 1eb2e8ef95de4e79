"""What became of an app in an auction, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from themis.auction.bids import AppState, Bid

__all__ = ["Entrant", "explain_all"]


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
    def of(cls, bid: Bid | AppState | Entrant) -> Entrant:
        """Return that of a bid."""
        if isinstance(bid, Entrant):
            return bid
        if isinstance(bid, Bid):
            return cls(bid.app_id, explicit=True)
        return cls(bid.app_id, held=bid.held_gpus, gang_size=bid.gang_size, max_gpus=bid.max_gpus)


class _Fate(NamedTuple):
    """What became of an app, for words: `best_gain` is that of its best bid in log V a GPU."""

    reason: str
    won: int
    kept: int
    leftover: int
    c: float
    best_gain: float


def explain_all(
    entrants: Sequence[Bid | AppState | Entrant], entries: Mapping[str, Any], payment: str
) -> list[str]:
    """Return why each app got what it got, or nothing; `entries` is the core's table of them."""
    won = entries["won"] > 0
    cheapest = min((entries["gain"][won] / entries["won"][won]).tolist(), default=None)
    columns = [entries[name] for name in _Fate._fields[1:]]
    fates = map(_Fate, entries["reason"], *(column.tolist() for column in columns))
    return [
        _explain(app, fate, payment, cheapest)
        for app, fate in zip(map(Entrant.of, entrants), fates, strict=True)
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
