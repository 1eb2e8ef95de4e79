"""What an auction is asked: the GPUs on offer, and the bids on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from themis.errors import ScenarioError
from themis.nearest import nearest
from themis.profiles import COLD_START, PROFILES, Profile

__all__ = ["AppState", "Bid", "Label", "Offer", "SlotKey"]

Label = int | str
SlotKey = tuple[Label, Label, Label]
"""(rack, machine, slot): whole numbers or text."""

_MOST_GPUS = 2**24


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
        racks: dict[Label, Label] = {}
        for at, (key, gpus) in enumerate(zip(self.slots, self.gpus, strict=True)):
            if key in self.slots[:at]:
                raise ScenarioError(f"offer: slot {key} stands twice: expected each once")
            _whole(f"offer: slot {key}: gpus", gpus, least=0)
            rack, machine, _ = key
            if racks.setdefault(machine, rack) != rack:
                raise ScenarioError(
                    f"offer: machine {machine!r} is in racks {racks[machine]!r} and {rack!r}"
                )

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
            rows = [tuple(row) for row in slots]
        for at, row in enumerate(rows):
            labels_fine = all(isinstance(label, int | str) for label in row[:3])
            if len(row) != 4 or not labels_fine:  # noqa: PLR2004 - rack, machine, slot, GPUs
                raise ScenarioError(f"offer[{at}] is {row!r}: expected rack, machine, slot, GPUs")
        keys = tuple((row[0], row[1], row[2]) for row in rows)
        return cls(keys, tuple(row[3] for row in rows))

    def position(self, key: SlotKey, where: str) -> int:
        """Return the number of a slot.

        Raises
        ------
        ScenarioError
            The offer has no such slot; `where` says who asked.
        """
        if key not in self.slots:
            raise ScenarioError(f"{where}: slot {key} is not in the offer")
        return self.slots.index(key)


Counts = Sequence[int] | Mapping[SlotKey, int]


@dataclass(frozen=True)
class Bid:
    """An explicit bid: what some bundles are worth to an app.

    Parameters
    ----------
    app_id
        The app.
    rho_empty
        rho if it wins nothing; None or infinite: unbounded.
    rows
        (counts, rho): GPUs a slot in the order of the offer (or a mapping from slots to GPUs), and
        rho with them. The app gets one row whole, or nothing.

    Raises
    ------
    ScenarioError
        A rho is not above 0.
    """

    app_id: str
    rho_empty: float | None
    rows: Sequence[tuple[Counts, float]]

    def __post_init__(self) -> None:
        _app_id(self.app_id)
        where = f"bid of app {self.app_id!r}"
        if self.rho_empty is not None:
            _number(f"{where}: rho_empty", self.rho_empty, "above 0", above=0, infinite=True)
        for at, row in enumerate(self.rows):
            if not (isinstance(row, Sequence) and len(row) == 2):  # noqa: PLR2004 - counts, rho
                raise ScenarioError(f"{where}: rows[{at}] is {row!r}: expected (counts, rho)")
            _number(f"{where}: rows[{at}]: rho", row[1], "above 0", above=0, infinite=True)


@dataclass(frozen=True)
class AppState:
    """An app whose bid the core works out from its state (paper, Eq. 1).

    Parameters
    ----------
    app_id
        The app.
    elapsed_s
        Seconds since it arrived.
    work_left_s
        Work left, in seconds at one GPU and perfect placement.
    gang_size
        Fewest GPUs with which (each of) its jobs runs.
    max_gpus
        Most GPUs that it can use in all.
    t_id_s
        Its ideal finish time in seconds: time alone in its 1/N share, N_avg included.
    held
        GPUs that it keeps: {(rack, machine, slot): GPUs}; the slots need not be on offer.
    profile
        Name of a built-in profile, or placement scores 1/S at slot, machine, rack and cluster.
    n_avg
        Mean number of active apps over its life, at least 1.
    jobs
        Equal jobs that share the work and `max_gpus`; 1: a single job.

    Raises
    ------
    ScenarioError
        A value is out of range or the profile is unknown.
    """

    app_id: str
    elapsed_s: float
    work_left_s: float
    gang_size: int
    max_gpus: int
    t_id_s: float
    held: Mapping[SlotKey, int] = field(default_factory=dict)
    profile: str | Sequence[float] = COLD_START
    n_avg: float = 1.0
    jobs: int = 1

    def __post_init__(self) -> None:
        _app_id(self.app_id)
        where = f"app {self.app_id!r}"
        _number(f"{where}: elapsed_s", self.elapsed_s, "at least 0", least=0)
        _number(f"{where}: work_left_s", self.work_left_s, "above 0", above=0)
        _number(f"{where}: t_id_s", self.t_id_s, "above 0", above=0)
        _number(f"{where}: n_avg", self.n_avg, "at least 1", least=1)
        _whole(f"{where}: jobs", self.jobs, least=1)
        _whole(f"{where}: gang_size", self.gang_size, least=1)
        _whole(f"{where}: max_gpus", self.max_gpus, least=self.gang_size * self.jobs)
        for key, gpus in self.held.items():
            _whole(f"{where}: held at {key}", gpus, least=0)
        if sum(self.held.values()) > self.max_gpus:
            raise ScenarioError(
                f"{where}: held is {sum(self.held.values())} GPUs: "
                f"expected at most max_gpus ({self.max_gpus})"
            )
        self.slowdowns()

    def slowdowns(self) -> Profile:
        """Return S at slot, machine, rack and cluster.

        Raises
        ------
        ScenarioError
            The profile is unknown, or its scores are out of range.
        """
        if not isinstance(self.profile, str):
            return Profile.from_scores(self.profile, name=self.app_id)
        if self.profile not in PROFILES:
            hint = nearest(self.profile, PROFILES)
            raise ScenarioError(
                f"app {self.app_id!r}: profile is {self.profile!r}{hint}: "
                f"expected 4 scores or one of {', '.join(PROFILES)}"
            )
        return PROFILES[self.profile]


def _app_id(value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ScenarioError(f"app_id is {value!r}: expected text")


def _whole(where: str, value: object, *, least: int) -> None:
    fine = isinstance(value, int) and not isinstance(value, bool)
    if not fine or not least <= value <= _MOST_GPUS:  # type: ignore[operator]
        raise ScenarioError(f"{where} is {value!r}: expected a whole number from {least}")


def _number(  # noqa: PLR0913 - two kinds of bound
    where: str,
    value: object,
    expected: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    infinite: bool = False,
) -> None:
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    if fine and (math.isfinite(value) or (infinite and value == math.inf)):  # type: ignore[arg-type]
        fine = value > above and value >= least  # type: ignore[operator]
    else:
        fine = False
    if not fine:
        raise ScenarioError(f"{where} is {value!r}: expected a number {expected}")
