"""Slots of an auction: what may name one, and their numbers in the order of the core."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from themis import _core
from themis.auction.rules import check_label, is_label
from themis.errors import ScenarioError

__all__ = ["Label", "Numbering", "SlotKey", "check_slot", "check_slots"]

Label = int | str
SlotKey = tuple[Label, Label, Label]
"""(rack, machine, slot): whole numbers or text."""


def check_slot(where: str, key: object) -> None:
    """Refuse what is no (rack, machine, slot).

    Raises
    ------
    ScenarioError
        It has another shape, or a label is neither a whole number nor text.
    """
    if not isinstance(key, tuple) or len(key) != 3:  # noqa: PLR2004 - rack, machine, slot
        raise ScenarioError(f"{where}: slot is {key!r}: expected (rack, machine, slot)")
    if not all(map(is_label, key)):
        for name, label in zip(("rack", "machine", "slot"), key, strict=True):
            check_label(f"{where}: {name}", label)


def check_slots(keys: Sequence[object], where: Callable[[int], str]) -> None:
    """Refuse what is no (rack, machine, slot); `where` one stands, by its position.

    Raises
    ------
    ScenarioError
        As :func:`check_slot`, of the first.
    """
    if not _are_plain(keys):
        for at, key in enumerate(keys):
            check_slot(where(at), key)


def _are_plain(keys: Sequence[Any]) -> bool:
    """Whether all are slots with labels of no type but Python's own two, as most are: fast."""
    if set(map(type, keys)) - {tuple} or set(map(len, keys)) - {3}:
        return False
    labels = list(itertools.chain.from_iterable(keys))
    return not set(map(type, labels)) - {int, str} and all(map(is_label, set(labels)))


@dataclass(frozen=True)
class Numbering:
    """Numbers of slots, in the order of rack, machine and slot, whole numbers before text.

    Parameters
    ----------
    keys
        The slots, by number.
    number
        The number of each slot as it was named: uint32, shape (named,).
    rack, machine
        Numbers of the rack and the machine of each slot of `keys`: uint32, shape (slots,).
    """

    keys: Sequence[SlotKey]
    number: npt.NDArray[np.uint32]
    rack: npt.NDArray[np.uint32]
    machine: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, named: Sequence[SlotKey], where: Callable[[int], str]) -> Numbering:
        """Return the numbers of slots, of which some may be named more than once.

        Parameters
        ----------
        named
            The slots.
        where
            Where one of them was named, by its position, for messages.

        Raises
        ------
        ScenarioError
            A machine is in two racks, or labels that differ read the same (1 and "1").
        """
        found = _core.number_slots(named)
        if found["clash"] is not None:
            at, words = found["clash"]
            raise ScenarioError(f"{where(at)}: {words}")
        keys = [named[at] for at in found["first"].tolist()]
        return cls(keys, found["number"], found["rack"], found["machine"])
