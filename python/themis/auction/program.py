"""An auction as an integer program: what may be won where, what it gains, what it uses.

A job that wins GPUs is given a *place*: a slot, machine, rack or the whole offer, at whose slowdown
it runs. Places nest, so that the jobs fit on the GPUs if and only if, for every place, those in it
and in the places inside it ask for no more GPUs than it has free: one row a place, and no variable
a GPU. What GPUs are worth is worked out here from the app's state (paper, Eq. 1) and not asked of
the core, since this program is there to check the core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from themis.auction.bids import AppState

__all__ = ["Bidder", "Choice", "Curve", "Place", "Places", "Program", "build_program"]

_WHOLE_OFFER = 3
_UNBOUNDED = 1e4  # log V of an unbounded rho is -10,000 in the core

Counts = Sequence[tuple[int, int]]
"""(number, GPUs) pairs."""


@dataclass(frozen=True)
class Place:
    """A slot, a machine, a rack or the whole offer.

    Parameters
    ----------
    level
        0 slot, 1 machine, 2 rack, 3 the whole offer.
    free
        GPUs on offer in it.
    slots
        Numbers of its slots.
    around
        Numbers of the places that it lies in, itself first.
    """

    level: int
    free: int
    slots: frozenset[int]
    around: tuple[int, ...]


class Places(tuple[Place, ...]):
    """The places of an offer; slots come first, in their order."""

    __slots__ = ()

    @classmethod
    def of(cls, slots: Sequence[tuple[int, int, int]]) -> Places:
        """Return the places of slots, given as (rack number, machine number, free GPUs).

        Numbers of racks and machines never fall from one slot to the next.
        """
        groups: dict[tuple[int, ...], set[int]] = {}
        for slot, (rack, machine, _) in enumerate(slots):
            for length in range(_WHOLE_OFFER + 1):
                groups.setdefault((rack, machine, slot)[:length], set()).add(slot)
        keys = sorted(groups, key=lambda key: (-len(key), key))
        number = {key: at for at, key in enumerate(keys)}
        return cls(
            Place(
                level=_WHOLE_OFFER - len(key),
                free=sum(slots[slot][2] for slot in groups[key]),
                slots=frozenset(groups[key]),
                around=tuple(number[key[:length]] for length in range(len(key), -1, -1)),
            )
            for key in keys
        )

    def locality(self, held: Mapping[int, int]) -> int:
        """Return the level of the smallest place with all these slots."""
        return min(place.level for place in self if held.keys() <= place.slots)

    def useful(self, held: Mapping[int, int], slowdowns: Sequence[float]) -> Iterator[int]:
        """Yield the places where a job that holds these GPUs may win more.

        Left out are places that lie in another one as fast, and those that have no GPU on offer
        beside those of a faster place inside.
        """
        fast = [
            at
            for at, place in enumerate(self)
            if place.free
            and held.keys() <= place.slots
            and (place.level == _WHOLE_OFFER or slowdowns[place.level] < slowdowns[place.level + 1])
        ]
        matched = {
            other
            for at in fast
            for other in self[at].around[1:]
            if self[other].free == self[at].free
        }
        return (at for at in fast if at not in matched)


@dataclass(frozen=True)
class Choice:
    """A column: GPUs for a job in a place, or a row of a table.

    Parameters
    ----------
    bidder, group
        Whose it is: one of the jobs of a group.
    gpus
        (place, GPUs): one place for a job, the slots for a row of a table.
    gain
        log V above that of winning nothing, for bidders without a curve.
    rate
        Work a second that it adds, for those with one.
    """

    bidder: int
    group: int
    gpus: tuple[tuple[int, int], ...]
    gain: float = 0.0
    rate: float = 0.0


@dataclass(frozen=True)
class Curve:
    """What an app of many jobs gains: concave in the rates of its jobs together.

    Parameters
    ----------
    app
        The app.
    base
        Work a second of its jobs on what they hold.
    log_v_empty
        log V of winning nothing.
    """

    app: AppState
    base: float
    log_v_empty: float

    @property
    def enough(self) -> float:
        """The rate from which on the longest job decides."""
        return float(self.app.jobs * (self.app.max_gpus // self.app.jobs))

    def gain(self, rate: float) -> float:
        """Return log V at a rate, above that of winning nothing."""
        return _log_v(_rho(self.app, min(rate, self.enough))) - self.log_v_empty

    def slope(self, rate: float) -> float:
        """Return the slope of the gain."""
        work = self.app.work_left_s
        return 0.0 if rate >= self.enough else work / (rate * (self.app.elapsed_s * rate + work))


@dataclass(frozen=True)
class Bidder:
    """A bidder's part of the program.

    Parameters
    ----------
    groups
        Numbers of the jobs that hold the same GPUs, a group each; a table has one job.
    curve
        Of an app of many jobs; None: its choices have gains.
    """

    groups: tuple[tuple[int, ...], ...]
    curve: Curve | None = None


@dataclass
class Program:
    """The bidders that see the offer, and their choices in the order of the bidders."""

    places: Places
    bidders: dict[int, Bidder] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)


def build_program(
    slots: Sequence[tuple[int, int, int]],
    bids: Sequence[AppState | Sequence[tuple[Counts, float]]],
    facts: Sequence[Mapping[str, Any]],
) -> Program:
    """Return the program of an auction.

    Parameters
    ----------
    slots
        (rack number, machine number, free GPUs), as the core takes them.
    bids
        App states, and the rows of tables: (slot number, GPUs) pairs and rho.
    facts
        What the core knows of each bidder: visible, log_v_empty, and held: GPUs job by job.
    """
    program = Program(Places.of(slots))
    for at, (bid, fact) in enumerate(zip(bids, facts, strict=True)):
        if not fact["visible"]:
            continue
        if isinstance(bid, AppState):
            _add_app(program, at, bid, fact)
        else:
            program.bidders[at] = Bidder(groups=((0,),))
            gains = [(tuple(gpus), _log_v(rho) - fact["log_v_empty"]) for gpus, rho in bid]
            program.choices += [
                Choice(at, 0, gpus, gain=gain) for gpus, gain in gains if gpus and gain > 0
            ]
    return program


def _add_app(program: Program, at: int, app: AppState, fact: Mapping[str, Any]) -> None:
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for job, held in enumerate(fact["held"]):
        groups.setdefault(tuple(held), []).append(job)
    rates = [_rate(app, dict(held), 0, program.places.locality(dict(held))) for held in groups]
    base = sum(rate * len(jobs) for rate, jobs in zip(rates, groups.values(), strict=True))
    curve = Curve(app, base, fact["log_v_empty"]) if app.jobs > 1 else None
    program.bidders[at] = Bidder(tuple(map(tuple, groups.values())), curve)
    for group, (held, now) in enumerate(zip(groups, rates, strict=True)):
        for place, gpus in _wins(program.places, app, dict(held)):
            rate = _rate(app, dict(held), gpus, program.places[place].level)
            if curve:
                useful, worth = rate > now, {"rate": rate - now}
            else:
                gain = _log_v(_rho(app, rate)) - fact["log_v_empty"]
                useful, worth = gain > 0, {"gain": gain}
            if useful:
                program.choices.append(Choice(at, group, ((place, gpus),), **worth))


def _wins(places: Places, app: AppState, held: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yield (place, GPUs): what completes the job's gang, and whole gangs more, up to its cap."""
    has, most = sum(held.values()), app.max_gpus // app.jobs
    counts, total = [], has
    while total < most:
        total = min(most, max(app.gang_size, total + app.gang_size * (total >= app.gang_size)))
        counts.append(total - has)
    for place in places.useful(held, app.slowdowns()):
        yield from ((place, gpus) for gpus in counts if gpus <= places[place].free)


def _rate(app: AppState, held: Mapping[int, int], won: int, level: int) -> float:
    gpus = sum(held.values()) + won
    return gpus / app.slowdowns()[level] if gpus >= app.gang_size else 0.0


def _rho(app: AppState, rate: float) -> float:
    time_s = app.work_left_s / rate if rate > 0 else math.inf
    return (app.elapsed_s + time_s) / app.t_id_s


def _log_v(rho: float) -> float:
    return -math.log(rho) if math.isfinite(rho) else -_UNBOUNDED
