"""An auction as an integer program: what may be won where, what it gains, what it uses.

A job that wins GPUs is given a *place*: a slot, machine, rack or the whole offer, at whose slowdown
it runs. Places nest, so that the jobs fit on the GPUs if and only if, for every place, those in it
and in the places inside it ask for no more GPUs than it has free: one row a place, and no variable
a GPU. Every GPU type has places of its own: what a job wins in a rack, or anywhere, says how many
GPUs of each, and the slowest type sets the pace. What GPUs are worth is worked out here from the
app's state (paper, Eq. 1) and not asked of the core, since this program is there to check the core.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from themis.auction.bids import AppState

__all__ = ["Bidder", "Choice", "Curve", "Place", "Places", "Program", "build_program"]

_WHOLE_OFFER = 3
_UNBOUNDED = 1e4  # log V of an unbounded rho is -10,000 in the core

Counts = Sequence[tuple[int, int]]
"""(number, GPUs) pairs."""


@dataclass(frozen=True)
class Place:
    """The GPUs of one type in a slot, a machine, a rack or the whole offer.

    Parameters
    ----------
    level
        0 slot, 1 machine, 2 rack, 3 the whole offer.
    part
        Numbers of the rack, the machine and the slot, as far as it lies in one.
    gpu_type
        Number of the type.
    free
        GPUs on offer in it.
    slots
        Numbers of its slots.
    around
        Numbers of the places that it lies in, itself first.
    """

    level: int
    part: tuple[int, ...]
    gpu_type: int
    free: int
    slots: frozenset[int]
    around: tuple[int, ...]


class Places(tuple[Place, ...]):
    """The places of an offer; slots come first, in their order."""

    __slots__ = ()

    @classmethod
    def of(cls, slots: Sequence[tuple[int, int, int, int]]) -> Places:
        """Return the places of slots, given as (rack number, machine number, free GPUs, type).

        Numbers of racks and machines never fall from one slot to the next.
        """
        groups: dict[tuple[tuple[int, ...], int], set[int]] = {}
        for slot, (rack, machine, _, gpu_type) in enumerate(slots):
            for length in range(_WHOLE_OFFER + 1):
                groups.setdefault(((rack, machine, slot)[:length], gpu_type), set()).add(slot)
        keys = sorted(groups, key=lambda key: (-len(key[0]), key))
        number = {key: at for at, key in enumerate(keys)}
        return cls(
            Place(
                level=_WHOLE_OFFER - len(part),
                part=part,
                gpu_type=gpu_type,
                free=sum(slots[slot][2] for slot in groups[part, gpu_type]),
                slots=frozenset(groups[part, gpu_type]),
                around=tuple(number[part[:n], gpu_type] for n in range(len(part), -1, -1)),
            )
            for part, gpu_type in keys
        )

    def parts(self, held: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
        """Yield the parts with all these slots, smaller ones first: a place for every type."""
        for _, same in itertools.groupby(range(len(self)), key=lambda at: self[at].part):
            numbers = tuple(same)
            if held.keys() <= frozenset().union(*(self[at].slots for at in numbers)):
                yield numbers

    def locality(self, held: Mapping[int, int]) -> int:
        """Return the level of the smallest part with all these slots."""
        return min(self[numbers[0]].level for numbers in self.parts(held))

    def types(self, held: Mapping[int, int]) -> frozenset[int]:
        """Return the types of these slots."""
        return frozenset(self[slot].gpu_type for slot in held)

    def useful(
        self, held: Mapping[int, int], slowdowns: Sequence[float]
    ) -> Iterator[tuple[int, ...]]:
        """Yield the parts where a job that holds these GPUs may win more.

        Left out are parts that lie in another one as fast, and those that have no GPU on offer
        beside those of a faster part inside.
        """
        free: dict[tuple[int, ...], int] = {}
        for numbers in self.parts(held):
            level, part = self[numbers[0]].level, self[numbers[0]].part
            free[part] = sum(self[at].free for at in numbers)
            fast = level == _WHOLE_OFFER or slowdowns[level] < slowdowns[level + 1]
            inside = (
                gpus for other, gpus in free.items() if other[: len(part)] == part and other != part
            )
            if free[part] and fast and free[part] not in inside:
                yield numbers
            elif not fast:
                del free[part]


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
        return self.app.jobs * _pace(self.app, self.app.max_gpus // self.app.jobs)

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
    slots: Sequence[tuple[int, int, int, int]],
    bids: Sequence[AppState | Sequence[tuple[Counts, float]]],
    facts: Sequence[Mapping[str, Any]],
) -> Program:
    """Return the program of an auction.

    Parameters
    ----------
    slots
        (rack number, machine number, free GPUs, GPU type), as the core takes them.
    bids
        App states, and the rows of tables: (slot number, GPUs) pairs and rho.
    facts
        What the core knows of each bidder: visible, log_v_empty, and held: GPUs job by job; of an
        app, speeds by type (0: it may not run there).
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
    fastest = max(fact["speeds"]) or 1.0
    app = replace(app, work_left_s=app.work_left_s / fastest)  # rates are those of its fastest type
    fact = {**fact, "speeds": [speed / fastest for speed in fact["speeds"]]}
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for job, held in enumerate(fact["held"]):
        groups.setdefault(tuple(held), []).append(job)
    wins = [_Wins(program.places, app, dict(held), fact) for held in groups]
    base = sum(of.now * len(jobs) for of, jobs in zip(wins, groups.values(), strict=True))
    curve = Curve(app, base, fact["log_v_empty"]) if app.jobs > 1 else None
    program.bidders[at] = Bidder(tuple(map(tuple, groups.values())), curve)
    for group, of in enumerate(wins):
        for gpus, rate in of.all():
            if curve:
                useful, worth = rate > of.now, {"rate": rate - of.now}
            else:
                gain = _log_v(_rho(app, rate)) - fact["log_v_empty"]
                useful, worth = gain > 0, {"gain": gain}
            if useful:
                program.choices.append(Choice(at, group, gpus, **worth))


class _Wins:
    """What a job that holds these GPUs may win."""

    def __init__(
        self, places: Places, app: AppState, held: Mapping[int, int], fact: Mapping[str, Any]
    ) -> None:
        self.places, self.app, self.held = places, app, held
        self.speeds: list[float] = fact["speeds"]
        self.now = self.rate({}, places.locality(held))

    def rate(self, won: Mapping[int, int], level: int) -> float:
        """Return the work a second with GPUs won of some places, all within a level."""
        gpus = sum(self.held.values()) + sum(won.values())
        types = self.places.types(self.held) | {self.places[at].gpu_type for at in won}
        if not types or gpus < self.app.gang_size or (len(types) > 1 and not self.app.mixes_types):
            return 0.0
        speed: float = min(self.speeds[gpu_type] for gpu_type in types)
        return _pace(self.app, gpus) * speed / self.app.slowdowns()[level]

    def all(self) -> Iterator[tuple[tuple[tuple[int, int], ...], float]]:
        """Yield (place, GPUs) pairs and the rate with them.

        In all what completes the job's gang, and whole gangs more, up to its cap.
        """
        has, most = sum(self.held.values()), self.app.max_gpus // self.app.jobs
        counts, total = [], has
        while total < most:
            more = self.app.gang_size * (total >= self.app.gang_size)
            total = min(most, max(self.app.gang_size, total + more))
            counts.append(total - has)
        for numbers in self.places.useful(self.held, self.app.slowdowns()):
            open_to = [at for at in numbers if self.speeds[self.places[at].gpu_type] > 0]
            level = self.places[numbers[0]].level
            for gpus in counts:
                for won in self.divided(gpus, open_to):
                    rate = self.rate(dict(won), level)
                    if rate > 0:
                        yield won, rate

    def divided(self, gpus: int, numbers: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield all ways to take so many GPUs of some places."""
        if not gpus:
            yield ()
        elif numbers:
            first, *rest = numbers
            for taken in range(min(gpus, self.places[first].free), -1, -1):
                for others in self.divided(gpus - taken, rest):
                    yield (((first, taken), *others)) if taken else others


def _pace(app: AppState, gpus: int) -> float:
    """Return the work a second of GPUs of one job, well placed, where each of its gang does 1."""
    known = [(1, 1.0), *((at, at * each) for at, each in app.efficiencies())]
    if len(known) == 1:
        return float(gpus)

    def along(count: int) -> float:
        after = next((k for k in range(1, len(known)) if known[k][0] >= count), len(known) - 1)
        (least, low), (most, high) = known[after - 1], known[after]
        return low + (high - low) * (count - least) / (most - least)

    return app.gang_size * along(gpus) / along(app.gang_size)


def _rho(app: AppState, rate: float) -> float:
    time_s = app.work_left_s / rate if rate > 0 else math.inf
    return (app.elapsed_s + time_s) / app.t_id_s


def _log_v(rho: float) -> float:
    return -math.log(rho) if math.isfinite(rho) else -_UNBOUNDED
