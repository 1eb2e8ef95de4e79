"""Auctions of every size, drawn at random: GPUs on offer, and the states of the apps that bid.

Two styles. `base` has the gangs of public traces on a busy cluster that has just released whole
gangs here and there. `hard` has large gangs, mostly single elastic jobs that suffer when spread
out, and its free GPUs lie scattered one by one. The same arguments give the same auction.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from themis import AppState, Offer

__all__ = ["LARGER", "SIZES", "Auction", "Style", "assert_plausible", "draw_auction"]

Style = Literal["base", "hard"]
Ints = npt.NDArray[np.int64]

SIZES = ((64, 10), (256, 30), (1024, 100), (4096, 400))
"""GPUs of the cluster and apps that bid."""

LARGER = ((16384, 1500), (65536, 5000), (262144, 20000))
"""Sizes that are measured on request only."""

SLOT_GPUS = 4
DEMAND = 2.5
"""Together the apps could use this many times the GPUs of the cluster."""

_MACHINE_SHARES = {1: 0.05, 2: 0.10, 4: 0.25, 8: 0.60}
_RACK_GPUS = ((64, 16), (256, 32), (math.inf, 64))
_GANGS = (1, 2, 4, 8, 16)
_LARGE_CLUSTER = 1024
_MEDIAN_WORK_S = 3600.0

_SENSITIVE = (1.10, 2.00, 3.50)
_MIDDLING = (1.05, 1.35, 1.90)
_INDIFFERENT = (1.01, 1.04, 1.10)
_FAMILIES = (_SENSITIVE, _MIDDLING, _INDIFFERENT)


@dataclass(frozen=True)
class _Mix:
    """What the apps of a style are like; gangs on clusters from 1,024 GPUs, and on smaller ones."""

    many_jobs: float
    gangs: tuple[float, ...]
    gangs_small: tuple[float, ...]
    families: tuple[float, ...]


_MIXES: dict[Style, _Mix] = {
    "base": _Mix(
        0.55, (0.42, 0.18, 0.20, 0.17, 0.03), (0.45, 0.20, 0.22, 0.13, 0.0), (0.25, 0.25, 0.5)
    ),
    "hard": _Mix(
        0.35, (0.20, 0.15, 0.30, 0.30, 0.05), (0.25, 0.15, 0.30, 0.30, 0.0), (0.6, 0.2, 0.2)
    ),
}


@dataclass
class _App:
    """An app being drawn; `pieces` are its gangs: GPUs a slot."""

    gang: int
    many: bool
    most: int
    slowdowns: tuple[float, ...]
    pieces: list[dict[int, int]] = field(default_factory=list)

    @property
    def held(self) -> int:
        return sum(sum(piece.values()) for piece in self.pieces)


@dataclass(frozen=True)
class Auction:
    """One auction: what is on offer, and who bids.

    Parameters
    ----------
    gpus
        GPUs of the whole cluster.
    percent
        How many of them are on offer.
    style
        See the module.
    offer, apps
        What :func:`themis.clear_auction` takes.
    """

    gpus: int
    percent: int
    style: Style
    offer: Offer
    apps: list[AppState]


def draw_auction(gpus: int, apps: int, percent: int, style: Style, seed: int = 0) -> Auction:
    """Return the auction of these sizes, style and seed."""
    entropy = [gpus, apps, percent, seed, int(style == "hard")]
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    floor = _Floor(gpus, rng)
    mix = _MIXES[style]
    drawn = [_draw_app(mix, gpus, rng) for _ in range(apps)]
    _scale_demand(drawn, gpus, rng)
    on_offer = round(gpus * percent / 100)
    if style == "hard":
        _scatter(floor, drawn, on_offer, rng)
    elif percent < 100:
        _fill_and_release(floor, drawn, on_offer, rng)
    keys = floor.keys
    return Auction(
        gpus=gpus,
        percent=percent,
        style=style,
        offer=Offer(tuple(keys), tuple(floor.free.tolist())),
        apps=[_state(number, app, keys, rng) for number, app in enumerate(drawn)],
    )


class _Floor:
    """The machines with their racks and slots, and what is free in each slot."""

    def __init__(self, gpus: int, rng: np.random.Generator) -> None:
        sizes = [s for s, share in _MACHINE_SHARES.items() for _ in range(round(gpus * share / s))]
        while sum(sizes) > gpus:
            sizes.pop(0)
        sizes += [1] * (gpus - sum(sizes))
        self.machine_gpus: Ints = rng.permutation(np.array(sizes, dtype=np.int64))
        limit = next(rack for most, rack in _RACK_GPUS if gpus <= most)
        self.rack = np.array(_racks(self.machine_gpus.tolist(), limit), dtype=np.int64)
        self.slots: list[list[int]] = []
        slot_gpus: list[int] = []
        self.keys: list[tuple[int, int, int]] = []
        for machine, (rack, size) in enumerate(zip(self.rack, self.machine_gpus, strict=True)):
            parts = [min(SLOT_GPUS, int(size) - at) for at in range(0, int(size), SLOT_GPUS)]
            self.slots.append(list(range(len(slot_gpus), len(slot_gpus) + len(parts))))
            self.keys += [(int(rack), machine, slot) for slot in range(len(parts))]
            slot_gpus += parts
        self.free: Ints = np.array(slot_gpus, dtype=np.int64)
        self.machine_free: Ints = self.machine_gpus.copy()
        self.machine_of = np.repeat(np.arange(len(self.slots)), [len(s) for s in self.slots])

    def take(self, machine: int, gpus: int) -> dict[int, int]:
        """Take GPUs of a machine: from the fullest slot that has them all, else slot by slot."""
        slots = self.slots[machine]
        whole = [slot for slot in slots if self.free[slot] >= gpus]
        order = sorted(whole, key=lambda slot: self.free[slot])[:1] or slots
        piece: dict[int, int] = {}
        for slot in order:
            part = min(gpus - sum(piece.values()), int(self.free[slot]))
            if part:
                piece[slot] = part
                self.free[slot] -= part
        self.machine_free[machine] -= gpus
        return piece

    def put_back(self, piece: dict[int, int]) -> None:
        for slot, gpus in piece.items():
            self.free[slot] += gpus
            self.machine_free[self.machine_of[slot]] += gpus

    def take_rest(self) -> list[dict[int, int]]:
        """Take all that is free, one piece a machine."""
        return [
            self.take(int(m), int(self.machine_free[m])) for m in np.flatnonzero(self.machine_free)
        ]


def _racks(machine_gpus: list[int], limit: int) -> list[int]:
    """Rack of each machine: a rack is full when the next machine would exceed `limit` GPUs."""
    racks, filled = [0], machine_gpus[0]
    for size in machine_gpus[1:]:
        full = filled + size > limit
        racks.append(racks[-1] + full)
        filled = size if full else filled + size
    return racks


def _draw_app(mix: _Mix, gpus: int, rng: np.random.Generator) -> _App:
    shares = mix.gangs if gpus >= _LARGE_CLUSTER else mix.gangs_small
    gang = int(rng.choice(_GANGS, p=shares))
    many = bool(rng.random() < mix.many_jobs)
    if many:
        jobs = round(math.exp(rng.uniform(0, math.log(17))))
        most = max(gang, min(gang * min(jobs, 16), 64))
    else:
        factor = int(rng.choice((1, 2, 4, 8), p=(0.3, 0.3, 0.25, 0.15)))
        most = min(gang * factor, max(gang, 32))
    family = _FAMILIES[int(rng.choice(len(_FAMILIES), p=mix.families))]
    slowdowns = [1.0]
    for typical in family:
        drawn = 1 + (typical - 1) * float(rng.uniform(0.8, 1.2))
        slowdowns.append(max(slowdowns[-1], drawn))
    return _App(gang, many, most, tuple(slowdowns))


def _scale_demand(apps: list[_App], gpus: int, rng: np.random.Generator) -> None:
    """Scale what each app can use so that all together want `DEMAND` times the cluster."""
    factor = DEMAND * gpus / sum(app.most for app in apps)
    for app in apps:
        gangs = app.most / app.gang * factor
        whole = int(gangs) + int(rng.random() < gangs % 1)
        limit = min(128, 32 * app.gang) if app.many else 64
        app.most = app.gang * min(max(whole, 1), max(1, limit // app.gang))


def _scatter(floor: _Floor, apps: list[_App], on_offer: int, rng: np.random.Generator) -> None:
    """Leave single GPUs free at random; half of the apps hold a gang on one machine."""
    units = rng.permutation(np.repeat(np.arange(len(floor.free)), floor.free))
    capacity = floor.free.copy()
    free = np.bincount(units[:on_offer], minlength=len(capacity)).astype(np.int64)
    floor.free[:] = capacity - free
    floor.machine_free[:] = np.bincount(floor.machine_of, weights=floor.free).astype(np.int64)
    for number in rng.permutation(len(apps))[: len(apps) // 2]:
        app = apps[int(number)]
        room = np.flatnonzero(floor.machine_free >= app.gang)
        if len(room) and app.gang < app.most:
            app.pieces.append(floor.take(int(rng.choice(room)), app.gang))
    floor.free[:] = free


def _fill_and_release(
    floor: _Floor, apps: list[_App], on_offer: int, rng: np.random.Generator
) -> None:
    """Fill the cluster gang by gang, then release gangs at random until enough is free."""
    growing = [app for app in apps if rng.random() < 0.8]
    while growing and floor.machine_free.any():
        at = int(rng.integers(len(growing)))
        app = growing[at]
        piece = _place(floor, app, rng) if app.held + app.gang <= app.most else None
        if piece is None:
            growing[at] = growing[-1]
            growing.pop()
        else:
            app.pieces.append(piece)
    others = _App(1, many=True, most=0, slowdowns=(), pieces=floor.take_rest())
    placed = [(app, piece) for app in (*apps, others) for piece in app.pieces]
    freed = 0
    for at in rng.permutation(len(placed)):
        if freed >= on_offer:
            break
        app, piece = placed[int(at)]
        app.pieces = [kept for kept in app.pieces if kept is not piece]
        floor.put_back(piece)
        freed += sum(piece.values())


def _place(floor: _Floor, app: _App, rng: np.random.Generator) -> dict[int, int] | None:
    """Take a gang: near what an elastic job holds, else on the fullest of 8 random machines."""
    room = np.flatnonzero(floor.machine_free >= app.gang)
    if not len(room):
        return _place_spread(floor, app.gang)
    near = _near(floor, app, room) if app.pieces and not app.many else None
    if near is None:
        some = room if len(room) <= 8 else rng.choice(room, 8, replace=False)
        near = int(some[np.argmin(floor.machine_free[some])])
    return floor.take(near, app.gang)


def _near(floor: _Floor, app: _App, room: Ints) -> int | None:
    """A machine that the app is on already, or one in the rack of its first."""
    own = [int(floor.machine_of[slot]) for piece in app.pieces for slot in piece]
    here = [machine for machine in own if floor.machine_free[machine] >= app.gang]
    beside = room[floor.rack[room] == floor.rack[own[0]]]
    return here[0] if here else int(beside[0]) if len(beside) else None


def _place_spread(floor: _Floor, gang: int) -> dict[int, int] | None:
    """Take a gang that fits on no machine: in one rack, else anywhere."""
    by_rack = np.bincount(floor.rack, weights=floor.machine_free)
    roomy = np.flatnonzero(by_rack >= gang)
    inside = floor.rack == roomy[0] if len(roomy) else np.ones(len(floor.rack), dtype=bool)
    machines = np.flatnonzero(inside & (floor.machine_free > 0))
    if floor.machine_free[machines].sum() < gang:
        return None
    piece: dict[int, int] = {}
    for machine in machines:
        missing = gang - sum(piece.values())
        if missing:
            piece |= floor.take(int(machine), min(missing, int(floor.machine_free[machine])))
    return piece


def _state(
    number: int, app: _App, keys: list[tuple[int, int, int]], rng: np.random.Generator
) -> AppState:
    work_s = _MEDIAN_WORK_S * math.exp(rng.normal()) * app.most
    done = float(rng.uniform(0, 0.9)) if rng.random() < 0.7 else 0.0
    left_s = work_s * (1 - done)
    ideal_s = work_s / app.most
    elapsed_s = ideal_s * (done * float(rng.uniform(1, 5)) + float(rng.uniform(0, 0.5)))
    held: dict[tuple[int, int, int], int] = {}
    for slot, gpus in itertools.chain.from_iterable(piece.items() for piece in app.pieces):
        held[keys[slot]] = held.get(keys[slot], 0) + gpus
    return AppState(
        app_id=f"app-{number:05d}",
        elapsed_s=elapsed_s,
        work_left_s=left_s,
        gang_size=app.gang,
        max_gpus=app.most,
        t_id_s=ideal_s,
        held={key: held[key] for key in sorted(held)},
        profile=[1 / slowdown for slowdown in app.slowdowns],
        jobs=app.most // app.gang if app.many else 1,
    )


def assert_plausible(auction: Auction) -> None:
    """Assert that an auction has the distributions that it was drawn from."""
    capacity = auction.gpus
    free = sum(auction.offer.gpus)
    wanted = round(capacity * auction.percent / 100)
    assert wanted <= free <= wanted + max(_GANGS), "as much is on offer as was asked for"
    assert max(auction.offer.gpus) <= SLOT_GPUS
    used: dict[tuple[object, ...], int] = dict(
        zip(auction.offer.slots, auction.offer.gpus, strict=True)
    )
    for app in auction.apps:
        for key, gpus in app.held.items():
            used[key] += gpus
    assert max(used.values()) <= SLOT_GPUS, "nothing is both free and held, or held twice"
    assert sum(used.values()) <= capacity
    apps = auction.apps
    spread = 3 / math.sqrt(len(apps))
    mix = _MIXES[auction.style]
    shares = mix.gangs if capacity >= _LARGE_CLUSTER else mix.gangs_small
    for gang, share in zip(_GANGS, shares, strict=True):
        found = sum(app.gang_size == gang for app in apps) / len(apps)
        assert abs(found - share) <= spread, f"gangs of {gang}: {found:.0%} of apps"
    demand = sum(app.max_gpus for app in apps) / capacity
    assert abs(demand - DEMAND) <= DEMAND * max(spread, 0.25), f"demand is {demand:.2f}"
    assert all(app.max_gpus == app.gang_size * app.jobs for app in apps if app.jobs > 1)
    holding = sum(bool(app.held) for app in apps) / len(apps)
    assert (holding == 0) == (auction.percent == 100), f"{holding:.0%} of apps hold GPUs"
