"""An auction in a JSON file: the offer, the bids, the rules (docs/auction.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from themis.auction.bids import AppState, Bid, check_bids, number_slots
from themis.auction.offer import Counts, Offer, check_gpu_types
from themis.auction.rules import CHOICES, check_label, check_rules
from themis.auction.slots import SlotKey
from themis.errors import ScenarioError
from themis.files.documents import read_json
from themis.nearest import nearest

if TYPE_CHECKING:
    from themis.auction.outcome import AuctionOutcome

__all__ = ["AuctionRequest", "read_auction"]

_Made = TypeVar("_Made", Bid, AppState)

_RULES = (*CHOICES, "seed", "fairness_knob", "lease_s", "cluster_gpus", "gpu_types")
_SLOT_KEYS = ("rack", "machine", "slot", "gpus")
_TABLE_KEYS = ("app_id", "rho_empty", "rows")
_STATE_NEEDS = ("app_id", "elapsed_s", "work_left_s", "gang_size", "max_gpus", "t_id_s")
_STATE_MAY = ("held", "profile", "n_avg", "jobs", "gpu_types", "speeds", "mixes_types", "scaling")


@dataclass(frozen=True)
class AuctionRequest:
    """An auction to clear.

    Parameters
    ----------
    offer
        Free GPUs a slot.
    bids
        One an app.
    rules
        Keyword arguments of :func:`themis.clear_auction`.
    """

    offer: Offer
    bids: tuple[Bid | AppState, ...]
    rules: Mapping[str, Any]

    def clear(self) -> AuctionOutcome:
        """Clear the auction.

        Raises
        ------
        ScenarioError
            As :func:`themis.clear_auction`.
        """
        from themis.auction.clearing import clear_auction  # noqa: PLC0415 - loads the extension

        return clear_auction(self.offer, self.bids, **self.rules)


def read_auction(path: str | PathLike[str]) -> AuctionRequest:
    """Return the auction that a JSON file describes.

    Parameters
    ----------
    path
        A file with ``offer`` (a list of slots), ``bids`` (a list of tables and app states), and
        optionally the rules payment, seed, solver, fairness_knob, outside_option, leftover,
        lease_s, cluster_gpus; and gpu_types: the type of each machine, for machines named by text.

    Raises
    ------
    ScenarioError
        The file can't be read, is not JSON, or breaks a rule; the message names the file and the
        place in it.
    """
    file = Path(path)
    document = read_json(file, ScenarioError, pairs=_once)
    try:
        return _request(document)
    except ScenarioError as error:
        raise ScenarioError(f"{file}: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a table whose keys stand once each."""
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise ScenarioError(f"key {twice!r} stands twice in one table: expected each once")
    return table


def _request(document: object) -> AuctionRequest:
    table = _table(document, "the file", needs=("offer", "bids"), may=_RULES)
    slots = [_slot(row, f"offer[{at}]") for at, row in enumerate(_list(table["offer"], "offer"))]
    offer = Offer.of([(*key, gpus) for key, gpus in slots])
    bids = tuple(
        _bid(row, offer, f"bids[{at}]") for at, row in enumerate(_list(table["bids"], "bids"))
    )
    rules = {name: value for name, value in table.items() if name not in ("offer", "bids")}
    check_rules(rules)
    check_gpu_types(rules.get("gpu_types"))
    check_bids(bids)
    for at, bid in enumerate(bids):
        for row, (counts, _) in enumerate(bid.rows if isinstance(bid, Bid) else ()):
            offer.wanted(counts, f"bids[{at}]: app {bid.app_id!r}: rows[{row}]")
    number_slots(offer, bids)
    return AuctionRequest(offer, bids, rules)


def _bid(row: object, offer: Offer, where: str) -> Bid | AppState:
    if isinstance(row, dict) and "rows" in row:
        table = _table(row, where, needs=_TABLE_KEYS, may=())
        rows = [
            _priced(priced, offer, f"{where}.rows[{at}]")
            for at, priced in enumerate(_list(table["rows"], f"{where}.rows"))
        ]
        return _made(Bid, where, app_id=table["app_id"], rho_empty=table["rho_empty"], rows=rows)
    table = _table(row, where, needs=_STATE_NEEDS, may=_STATE_MAY)
    if "held" in table:
        table["held"] = _held(table["held"], offer, f"{where}.held")
    if isinstance(table.get("profile"), list):
        table["profile"] = _scores(table["profile"], f"{where}.profile")
    return _made(AppState, where, **table)


def _made(kind: type[_Made], where: str, **values: Any) -> _Made:  # noqa: ANN401 - checked by the class
    try:
        return kind(**values)
    except ScenarioError as error:
        raise ScenarioError(f"{where}: {error}") from error


def _priced(row: object, offer: Offer, where: str) -> tuple[Counts, float]:
    """Return a row of an explicit bid: counts and rho."""
    if isinstance(row, list):
        if len(row) != 2:  # noqa: PLR2004 - counts, rho
            raise ScenarioError(f"{where} has {len(row)} values: expected counts and rho")
        counts, rho = row
    else:
        table = _table(row, where, needs=("counts", "rho"), may=())
        counts, rho = table["counts"], table["rho"]
    if isinstance(counts, list) and all(isinstance(count, int) for count in counts):
        return counts, rho
    return _held(counts, offer, f"{where}.counts"), rho


def _held(value: object, offer: Offer, where: str) -> dict[SlotKey, int]:
    """Return GPUs a slot: a list of slots, or of counts in the order of the offer."""
    rows = _list(value, where)
    if rows and all(isinstance(row, int) for row in rows):
        if len(rows) != len(offer.slots):
            raise ScenarioError(
                f"{where} has {len(rows)} counts: expected one a slot, {len(offer.slots)}"
            )
        return {key: gpus for key, gpus in zip(offer.slots, rows, strict=True) if gpus}
    held: dict[SlotKey, int] = {}
    for at, row in enumerate(rows):
        key, gpus = _slot(row, f"{where}[{at}]")
        if key in held:
            raise ScenarioError(f"{where}[{at}]: slot {key} stands twice: expected each once")
        held[key] = gpus
    return held


def _slot(row: object, where: str) -> tuple[SlotKey, int]:
    """Return a slot and its GPUs from a table or from [rack, machine, slot, gpus]."""
    if isinstance(row, list):
        if len(row) != len(_SLOT_KEYS):
            raise ScenarioError(f"{where} is {row!r}: expected [rack, machine, slot, gpus]")
        row = dict(zip(_SLOT_KEYS, row, strict=True))
    table = _table(row, where, needs=("machine", "gpus"), may=("rack", "slot"))
    labels = table.get("rack", 0), table["machine"], table.get("slot", 0)
    for name, label in zip(_SLOT_KEYS, labels, strict=False):
        check_label(f"{where}.{name}", label)
    return labels, table["gpus"]


def _scores(value: list[object], where: str) -> list[float]:
    scores = [score for score in value if isinstance(score, int | float)]
    if len(scores) != len(value):
        raise ScenarioError(f"{where} is {value!r}: expected 4 numbers")
    return [float(score) for score in scores]


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ScenarioError(f"{where} is {_short(value)}: expected a list")
    return value


def _table(
    value: object, where: str, *, needs: tuple[str, ...], may: tuple[str, ...]
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScenarioError(f"{where} is {_short(value)}: expected a table")
    for key in value:
        if key not in needs and key not in may:
            hint = nearest(key, (*needs, *may))
            raise ScenarioError(f"{where}: key {key!r} is unknown{hint}")
    for key in needs:
        if key not in value:
            raise ScenarioError(f"{where}: {key} is missing")
    return dict(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - one line
