"""What is on offer in an auction: free GPUs a slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from themis.auction.rules import MOST_GPUS, check_label, check_whole, is_whole
from themis.auction.slots import Label, Numbering, SlotKey, check_slots
from themis.errors import ScenarioError

__all__ = ["Counts", "Offer", "check_gpu_types", "is_list"]

_MOST_MACHINE_GPUS = 2**16


@dataclass(frozen=True)
class Offer:
    """Free GPUs a slot.

    Parameters
    ----------
    slots
        (rack, machine, slot), each once. A machine has one rack.
    gpus
        Free GPUs of each slot, at least 0.

    Raises
    ------
    ScenarioError
        There is no slot, one stands twice, a count is out of range, or a machine is in two racks.
    """

    slots: tuple[SlotKey, ...]
    gpus: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.slots:
            raise ScenarioError("offer: no slot: expected one or more (rack, machine, slot)")
        if len(self.slots) != len(self.gpus):
            raise ScenarioError(f"offer: {len(self.slots)} slots, but {len(self.gpus)} counts")
        check_slots(self.slots, "offer[{}]".format)
        for key, gpus in zip(self.slots, self.gpus, strict=True):
            if not is_whole(gpus, 0, _MOST_MACHINE_GPUS):
                where = f"offer: slot {key}: gpus"
                check_whole(where, gpus, least=0, most=_MOST_MACHINE_GPUS)
        self._check_machines()

    def _check_machines(self) -> None:
        """Refuse slots that stand twice, and more GPUs than the core can count."""
        keys, number = self.numbering.keys, self.numbering.number
        if len(keys) < len(self.slots):
            twice = keys[int(np.bincount(number).argmax())]
            raise ScenarioError(f"offer: slot {twice} stands twice: expected each once")
        machine = self.numbering.machine[number]
        gpus = np.bincount(machine, weights=self.gpus)
        if gpus.max() > _MOST_MACHINE_GPUS:
            at = int((machine == gpus.argmax()).argmax())
            raise ScenarioError(
                f"offer: machine {self.slots[at][1]!r} has {gpus.max():.0f} GPUs: "
                f"expected at most {_MOST_MACHINE_GPUS}"
            )
        if sum(self.gpus) > MOST_GPUS:
            raise ScenarioError(f"offer: {sum(self.gpus)} GPUs: expected at most {MOST_GPUS}")

    @cached_property
    def numbering(self) -> Numbering:
        """The numbers of its slots."""
        return Numbering.of(self.slots, lambda _: "offer")

    @cached_property
    def positions(self) -> Mapping[SlotKey, int]:
        """Where each slot stands."""
        return {key: at for at, key in enumerate(self.slots)}

    @classmethod
    def of(cls, slots: Mapping[SlotKey, int] | Sequence[tuple[Label, Label, Label, int]]) -> Offer:
        """Return the offer of a mapping {(rack, machine, slot): GPUs}, or of rows with 4 values.

        Raises
        ------
        ScenarioError
            A key or row has another shape.
        """
        rows: list[tuple[Any, ...]]
        if isinstance(slots, Mapping):
            rows = [(*key, n) if isinstance(key, tuple) else (key, n) for key, n in slots.items()]
        else:
            if not is_list(slots):
                raise ScenarioError(f"offer is {slots!r}: expected slots and their free GPUs")
            rows = [tuple(row) if isinstance(row, Sequence) else (row,) for row in slots]
        for at, row in enumerate(rows):
            if len(row) != 4:  # noqa: PLR2004 - rack, machine, slot, GPUs
                raise ScenarioError(f"offer[{at}] is {row!r}: expected rack, machine, slot, GPUs")
        racks, machines, numbers, gpus = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(tuple(zip(racks, machines, numbers, strict=True)), gpus)

    def wanted(self, counts: Counts, where: str) -> list[tuple[SlotKey, int]]:
        """Return the slots that a row of a bid asks for, and how many GPUs of each.

        More GPUs than are on offer stay a row: it loses, and the outcome says so.

        Raises
        ------
        ScenarioError
            The offer has no such slot, there are too many or too few counts, or one is no whole
            number from 0; `where` says whose they are.
        """
        return [(self.slots[at], gpus) for at, gpus in self.places_wanted(counts, where)]

    def places_wanted(self, counts: Counts, where: str) -> list[tuple[int, int]]:
        """Return the same with where the slots stand.

        Raises
        ------
        ScenarioError
            As :meth:`wanted`.
        """
        if isinstance(counts, Mapping):
            for key in counts:
                if key not in self.positions:
                    raise ScenarioError(f"{where}: slot {key} is not in the offer")
            rows = [(self.positions[key], gpus) for key, gpus in counts.items()]
        elif not is_list(counts):
            raise ScenarioError(f"{where}: counts are {counts!r}: expected one a slot of the offer")
        elif len(counts) != len(self.slots):
            raise ScenarioError(
                f"{where}: {len(counts)} counts: expected one a slot of the offer, "
                f"{len(self.slots)}"
            )
        else:
            plain = set(map(type, counts)) == {int}  # then what is 0 needs no look
            rows = [(at, gpus) for at, gpus in enumerate(counts) if gpus or not plain]
        for at, gpus in rows:
            if not is_whole(gpus, 0, MOST_GPUS):
                check_whole(f"{where}: count at slot {self.slots[at]}", gpus, least=0)
        return [(at, gpus) for at, gpus in rows if gpus]


Counts = Sequence[int] | Mapping[SlotKey, int]


def check_gpu_types(gpu_types: object) -> None:
    """Refuse what is no table of GPU types by machine.

    Raises
    ------
    ScenarioError
        It is something else, or a type is no text.
    """
    if gpu_types is None:
        return
    if not isinstance(gpu_types, Mapping):
        raise ScenarioError(f"gpu_types is {gpu_types!r}: expected {{machine: type}}")
    for machine, kind in gpu_types.items():
        check_label("gpu_types: machine", machine)
        if not isinstance(kind, str) or not kind:
            raise ScenarioError(
                f"gpu_types: machine {machine!r} is {kind!r}: expected a type's name"
            )


def is_list(value: object) -> bool:
    """Whether it is a sequence, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str)
