"""Bids on an offer: explicit tables, and states of apps that the core values itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from themis.auction.offer import Counts, Offer, is_list
from themis.auction.rules import MOST_GPUS, check_label, check_number, check_whole, is_whole
from themis.auction.slots import Numbering, SlotKey, check_slot
from themis.boundary.job_speeds import allowed_types
from themis.errors import ScenarioError
from themis.nearest import nearest
from themis.profiles import (
    COLD_START,
    PROFILES,
    SCALING,
    SPEEDS,
    Profile,
    check_scaling,
    check_speeds,
)

__all__ = ["AppState", "Bid", "check_bids"]

_MOST_JOBS = 2**16
_Key = TypeVar("_Key")


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
        rho with them. The app gets one row whole, or nothing. A row of no GPU counts for nothing:
        that is `rho_empty`.

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
            check_number(f"{where}: rho_empty", self.rho_empty, "above 0", above=0, infinite=True)
        if not is_list(self.rows):
            raise ScenarioError(f"{where}: rows is {self.rows!r}: expected a list")
        for at, row in enumerate(self.rows):
            if isinstance(row, str) or not (isinstance(row, Sequence) and len(row) == 2):  # noqa: PLR2004 - counts, rho
                raise ScenarioError(f"{where}: rows[{at}] is {row!r}: expected (counts, rho)")
            check_number(f"{where}: rows[{at}]: rho", row[1], "above 0", above=0, infinite=True)


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
    gpu_types
        GPU types that it may use, ``"A|B"``; None: any.
    speeds
        Work that a GPU does, by its type, while one of speed 1 does 1; 1 on types that it does not
        name; empty: those of its profile. `work_left_s` is at speed 1.
    mixes_types
        Whether a job may run on GPUs of several types at once, at the speed of the slowest.
    scaling
        Efficiencies by GPUs beyond its gang (:func:`themis.profiles.check_scaling`); empty:
        those of its profile, 1 where it says none.

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
    gpu_types: str | None = None
    speeds: Mapping[str, float] = field(default_factory=dict)
    mixes_types: bool = True
    scaling: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _app_id(self.app_id)
        where = f"app {self.app_id!r}"
        check_number(f"{where}: elapsed_s", self.elapsed_s, "at least 0", least=0)
        check_number(f"{where}: work_left_s", self.work_left_s, "above 0", above=0)
        check_number(f"{where}: t_id_s", self.t_id_s, "above 0", above=0)
        check_number(f"{where}: n_avg", self.n_avg, "at least 1", least=1)
        check_whole(f"{where}: jobs", self.jobs, least=1, most=_MOST_JOBS)
        check_whole(f"{where}: gang_size", self.gang_size, least=1)
        check_whole(f"{where}: max_gpus", self.max_gpus, least=1)
        if self.max_gpus < self.gang_size * self.jobs:
            raise ScenarioError(
                f"{where}: max_gpus is {self.max_gpus}: expected at least gang_size x jobs "
                f"({self.gang_size * self.jobs})"
            )
        if not isinstance(self.held, Mapping):
            raise ScenarioError(f"{where}: held is {self.held!r}: expected {{slot: GPUs}}")
        for key, gpus in self.held.items():
            check_slot(f"{where}: held", key)
            if not is_whole(gpus, 0, MOST_GPUS):
                check_whole(f"{where}: held at {key}", gpus, least=0)
        if self.held_gpus > self.max_gpus:
            raise ScenarioError(
                f"{where}: held is {self.held_gpus} GPUs: "
                f"expected at most max_gpus ({self.max_gpus})"
            )
        self.slowdowns()
        if self.gpu_types is not None and not isinstance(self.gpu_types, str):
            raise ScenarioError(
                f"{where}: gpu_types is {self.gpu_types!r}: expected 'A|B', or None"
            )
        if self.speeds:
            check_speeds(where, self.speeds)
        if not isinstance(self.mixes_types, bool):
            raise ScenarioError(
                f"{where}: mixes_types is {self.mixes_types!r}: expected true or false"
            )
        self.efficiencies()

    @cached_property
    def held_gpus(self) -> int:
        """GPUs that it holds, when it was made."""
        return sum(self.held.values())

    def speeds_on(self, types: Sequence[str]) -> list[float]:
        """Return its speed on each of these GPU types; 0 where it may not run."""
        speeds = self.speeds or self._of_profile(SPEEDS)
        if self.gpu_types is None and not speeds:
            return [1.0] * len(types)
        allowed = allowed_types(self.gpu_types, types)
        return [speeds.get(name, 1.0) if name in allowed else 0.0 for name in types]

    def efficiencies(self) -> list[tuple[int, float]]:
        """Return its (GPUs, efficiency), by GPUs.

        Raises
        ------
        ScenarioError
            As :func:`themis.profiles.check_scaling`.
        """
        return list(self._efficiencies)

    @cached_property
    def _efficiencies(self) -> list[tuple[int, float]]:
        scaling = self.scaling or self._of_profile(SCALING)
        if not scaling:
            return []
        return list(check_scaling(f"app {self.app_id!r}", scaling).items())

    def _of_profile(self, known: Mapping[str, Mapping[_Key, float]]) -> Mapping[_Key, float]:
        """Return what is known of its profile, if that has a name."""
        return known.get(self.profile, {}) if isinstance(self.profile, str) else {}

    def slowdowns(self) -> Profile:
        """Return S at slot, machine, rack and cluster.

        Raises
        ------
        ScenarioError
            The profile is unknown, or its scores are out of range.
        """
        return self._slowdowns

    @cached_property
    def _slowdowns(self) -> Profile:
        if not isinstance(self.profile, str):
            where = f"app {self.app_id!r}: profile"
            if not is_list(self.profile):
                raise ScenarioError(f"{where} is {self.profile!r}: expected a name or 4 scores")
            for at, score in enumerate(self.profile):
                check_number(f"{where}[{at}]", score, "in (0, 1]", above=0, most=1)
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
    check_label("app_id", value)


def check_bids(bids: object) -> None:
    """Refuse what is no list of bids, and apps that bid twice.

    Raises
    ------
    ScenarioError
        The first of these.
    """
    if not isinstance(bids, Sequence) or isinstance(bids, str):
        raise ScenarioError(f"bids is {bids!r}: expected a list of Bid and AppState")
    seen: dict[str, int] = {}
    for at, bid in enumerate(bids):
        if not isinstance(bid, (Bid, AppState)):
            raise ScenarioError(f"bids[{at}] is {bid!r}: expected a Bid or an AppState")
        if seen.setdefault(bid.app_id, at) != at:
            raise ScenarioError(
                f"bids[{at}]: app {bid.app_id!r} bids twice: "
                f"expected once, and bids[{seen[bid.app_id]}] is its"
            )


def number_slots(offer: Offer, bids: Sequence[Bid | AppState]) -> Numbering:
    """Return the numbers of the slots on offer, and then of those held, bid by bid.

    Raises
    ------
    ScenarioError
        A machine with held GPUs is in another rack than elsewhere, or labels read the same.
    """
    states = [bid for bid in bids if isinstance(bid, AppState) and bid.held]
    if not states:
        return offer.numbering

    def where(at: int) -> str:
        of_held = [bid.app_id for bid in states for _ in bid.held]
        offered = len(offer.slots)
        return "offer" if at < offered else f"app {of_held[at - offered]!r}: held"

    return Numbering.of([*offer.slots, *(key for bid in states for key in bid.held)], where)
