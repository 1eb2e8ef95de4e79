"""What is on offer in an auction: free GPUs a slot, and how places are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from themis.auction.rules import MOST_GPUS, check_label, check_whole
from themis.errors import ScenarioError

__all__ = [
    "Counts",
    "Label",
    "Offer",
    "SlotKey",
    "check_gpu_types",
    "check_racks",
    "check_slot",
    "is_list",
]

Label = int | str
SlotKey = tuple[Label, Label, Label]
"""(rack, machine, slot): whole numbers or text."""

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
        machines: dict[Label, int] = {}
        for at, (key, gpus) in enumerate(zip(self.slots, self.gpus, strict=True)):
            check_slot(f"offer[{at}]", key)
            check_whole(f"offer: slot {key}: gpus", gpus, least=0, most=_MOST_MACHINE_GPUS)
            if self.positions[key] != at:
                raise ScenarioError(f"offer: slot {key} stands twice: expected each once")
            machines[key[1]] = machines.get(key[1], 0) + gpus
            if machines[key[1]] > _MOST_MACHINE_GPUS:
                raise ScenarioError(
                    f"offer: machine {key[1]!r} has {machines[key[1]]} GPUs: "
                    f"expected at most {_MOST_MACHINE_GPUS}"
                )
        if sum(self.gpus) > MOST_GPUS:
            raise ScenarioError(f"offer: {sum(self.gpus)} GPUs: expected at most {MOST_GPUS}")
        check_racks((key, "offer") for key in self.slots)

    @cached_property
    def positions(self) -> Mapping[SlotKey, int]:
        """The number of each slot (of the first, where one stands twice)."""
        return {key: at for at, key in reversed(list(enumerate(self.slots)))}

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
        keys = tuple((row[0], row[1], row[2]) for row in rows)
        return cls(keys, tuple(row[3] for row in rows))

    def wanted(self, counts: Counts, where: str) -> list[tuple[SlotKey, int]]:
        """Return the slots that a row of a bid asks for, and how many GPUs of each.

        More GPUs than are on offer stay a row: it loses, and the outcome says so.

        Raises
        ------
        ScenarioError
            The offer has no such slot, there are too many or too few counts, or one is no whole
            number from 0; `where` says whose they are.
        """
        if isinstance(counts, Mapping):
            rows = list(counts.items())
        elif not is_list(counts):
            raise ScenarioError(f"{where}: counts are {counts!r}: expected one a slot of the offer")
        elif len(counts) != len(self.slots):
            raise ScenarioError(
                f"{where}: {len(counts)} counts: expected one a slot of the offer, "
                f"{len(self.slots)}"
            )
        else:
            rows = list(zip(self.slots, counts, strict=True))
        for key, gpus in rows:
            if key not in self.positions:
                raise ScenarioError(f"{where}: slot {key} is not in the offer")
            check_whole(f"{where}: count at slot {key}", gpus, least=0)
        return [(key, gpus) for key, gpus in rows if gpus]


Counts = Sequence[int] | Mapping[SlotKey, int]


def check_slot(where: str, key: object) -> None:
    """Refuse what is no (rack, machine, slot).

    Raises
    ------
    ScenarioError
        It has another shape, or a label is neither a whole number nor text.
    """
    if not isinstance(key, tuple) or len(key) != 3:  # noqa: PLR2004 - rack, machine, slot
        raise ScenarioError(f"{where}: slot is {key!r}: expected (rack, machine, slot)")
    for name, label in zip(("rack", "machine", "slot"), key, strict=True):
        check_label(f"{where}: {name}", label)


def check_racks(places: Iterable[tuple[SlotKey, str]]) -> None:
    """Refuse machines in two racks, and labels that differ but read the same (1 and "1").

    Parameters
    ----------
    places
        Slots, and for messages where each was named.

    Raises
    ------
    ScenarioError
        The first such machine or label.
    """
    racks: dict[Label, Label] = {}
    names: tuple[dict[str, Label], ...] = ({}, {}, {})
    seen: tuple[set[Label], ...] = (set(), set(), set())
    for key, where in places:
        rack, machine, _ = key
        if racks.setdefault(machine, rack) != rack:
            raise ScenarioError(
                f"{where}: machine {machine!r} is in rack {rack!r}, and in rack "
                f"{racks[machine]!r} elsewhere: expected one"
            )
        for label, of, known in zip(key, names, seen, strict=True):
            if label in known:
                continue
            known.add(label)
            other = of.setdefault(str(label), label)
            if other != label:
                raise ScenarioError(f"{where}: labels {other!r} and {label!r} read the same")


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
