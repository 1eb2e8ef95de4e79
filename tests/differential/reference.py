"""A slow, plain simulator of fifo and LAS, written from the design text and not from the engine.

Rigid gangs, for fifo also fractions of a GPU, one app a job or many, placement slowdown by the
level of the GPUs that a job gets, free switches. Time is whole microseconds; GPUs are named one by
one. Only the choice of GPUs follows a stated rule of the product: the smallest locality that fits,
the tightest part, lowest number first; a job that is served again keeps the GPUs that it had. For
LAS: one job an app and one slot, where it can't matter which GPUs a job gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby

from tests.differential.small import Job

from themis.cluster.cluster import Cluster
from themis.profiles import COLD_START, PROFILES

__all__ = ["Gpu", "reference_schedule"]

_US = 1_000_000
_NEVER = 1 << 62


@dataclass(frozen=True, order=True)
class Gpu:
    """A GPU by its place."""

    number: int
    rack: int
    machine: int
    slot: int


@dataclass
class _Run:
    job: Job
    app: int
    left: Fraction
    gpus: tuple[Gpu, ...] = ()
    since: int = 0
    start: int | None = None
    end: int | None = None

    @property
    def milli(self) -> int:
        return self.job.gpu_milli or 1000

    @property
    def share(self) -> Fraction:
        return Fraction(self.milli, 1000)

    def slowdown(self) -> Fraction:
        level = _level(self.gpus)
        profile = PROFILES[self.job.profile or COLD_START]
        return Fraction(profile[level])

    def due(self) -> int:
        if not self.gpus:
            return _NEVER
        time = self.left * self.slowdown() / len(self.gpus) / self.share
        return self.since + math.ceil(time - Fraction(1, 1000))

    def advance(self, now: int) -> int:
        """Bring the work up to now; return the GPU-microseconds held meanwhile."""
        held = len(self.gpus) * (now - self.since)
        if self.gpus:
            self.left -= Fraction(held) / self.slowdown() * self.share
        self.since = now
        return held


@dataclass
class _State:
    runs: list[_Run]
    free: set[Gpu]
    attained: dict[int, int] = field(default_factory=dict)


def _all_gpus(cluster: Cluster) -> list[Gpu]:
    found: list[Gpu] = []
    racks = cluster.machines.get_column("rack").unique(maintain_order=True).to_list()
    slots = 0
    rows = cluster.machines.select("rack", "gpus", "slot_gpus").iter_rows()
    for machine, (rack, gpus, slot_gpus) in enumerate(rows):
        found += [
            Gpu(len(found) + k, racks.index(rack), machine, slots + k // slot_gpus)
            for k in range(gpus)
        ]
        slots += -(-gpus // slot_gpus)
    return found


def _level(gpus: Sequence[Gpu]) -> int:
    kinds = [{g.slot for g in gpus}, {g.machine for g in gpus}, {g.rack for g in gpus}]
    return next((level for level, parts in enumerate(kinds) if len(parts) == 1), 3)


_PARTS: tuple[Callable[[Gpu], int], ...] = (
    lambda gpu: gpu.slot,
    lambda gpu: gpu.machine,
    lambda gpu: gpu.rack,
    lambda _: 0,
)


def _pick(free: set[Gpu], count: int) -> tuple[Gpu, ...]:
    """Return `count` free GPUs in the smallest and then tightest part that has them."""
    for level, key in enumerate(_PARTS):
        fitting = [part for part in _parts(free, key) if len(part) >= count]
        if fitting:
            return tuple(_fill(min(fitting, key=len), count, level))
    raise AssertionError(f"{count} GPUs of {len(free)}")


def _parts(free: Iterable[Gpu], key: Callable[[Gpu], int]) -> list[list[Gpu]]:
    return [list(group) for _, group in groupby(sorted(free), key=key)]


def _fill(part: list[Gpu], count: int, level: int) -> list[Gpu]:
    """Take the fewest parts of a part: the fullest first, the last one by best fit."""
    if level == 0:
        return part[:count]
    inner = _parts(part, _PARTS[level - 1])
    taken: list[Gpu] = []
    while len(taken) < count:
        need = count - len(taken)
        best = min(inner, key=lambda p: (0, len(p)) if len(p) >= need else (1, -len(p)))
        taken += _fill(best, min(need, len(best)), level - 1)
        inner.remove(best)
    return taken


def reference_schedule(
    cluster: Cluster, jobs: Sequence[Job], policy: str, lease_s: float = 600.0
) -> dict[str, tuple[float | None, float | None]]:
    """Return (start, end) in seconds by job; (None, None) where the cluster is too small."""
    names = sorted({(min(_submit(j) for j in jobs if _app(j) == a), a) for a in map(_app, jobs)})
    order = {name: number for number, (_, name) in enumerate(names)}
    runs = [_Run(job, order[_app(job)], Fraction(round(job.work_gpu_s * _US))) for job in jobs]
    runs.sort(key=lambda run: (run.app, _submit(run.job), run.job.job_id))
    state = _State(
        [run for run in runs if 0 < run.job.gpus <= cluster.gpus], set(_all_gpus(cluster))
    )
    for now in _instants(state, policy, round(lease_s * _US)):
        _end_jobs(state, now)
        if policy == "fifo":
            _fifo(state, now)
        else:
            _las(state, now, round(lease_s * _US))
    for run in runs:
        if run.job.gpus == 0:
            run.start = _submit(run.job)
            run.end = run.start + int(run.left)
    return {
        run.job.job_id: (
            None if run.start is None else run.start / _US,
            None if run.end is None else run.end / _US,
        )
        for run in runs
    }


def _end_jobs(state: _State, now: int) -> None:
    """Bring work and service up to now; end what is done, and what has no work as it comes."""
    for run in state.runs:
        if run.end is not None:
            continue
        if run.start is not None:
            state.attained[run.app] = state.attained.get(run.app, 0) + run.advance(now)
        if run.gpus and run.due() <= now:
            run.end = now
            gpus, run.gpus = set(run.gpus), ()
            state.free |= gpus - {gpu for other in state.runs for gpu in other.gpus}
        elif run.left == 0 and _submit(run.job) == now:
            run.start = run.end = now


def _app(job: Job) -> str:
    return job.app or job.job_id


def _submit(job: Job) -> int:
    return round(job.submit_s * _US)


def _waiting(state: _State, now: int) -> list[_Run]:
    return [r for r in state.runs if r.end is None and not r.gpus and _submit(r.job) <= now]


def _instants(state: _State, policy: str, lease: int) -> Iterator[int]:
    """Yield the next arrival, end or (while somebody waits) lease end, until none is left."""
    now = -1
    while True:
        times = [_submit(r.job) for r in state.runs if _submit(r.job) > now]
        times += [r.due() for r in state.runs if r.end is None and r.gpus]
        if policy != "fifo" and _waiting(state, now):
            times.append((now // lease + 1) * lease)
        if not times:
            return
        now = min(times)
        yield now


def _begin(state: _State, run: _Run, gpus: tuple[Gpu, ...], now: int) -> None:
    state.free -= set(gpus)
    run.gpus, run.since = gpus, now
    if run.start is None:
        run.start = now


def _fifo(state: _State, now: int) -> None:
    """Serve strictly by submission; ties by app, then job. Fractions join others where they can."""
    _join_all(state, now)
    while True:
        left, served = len(state.free), []
        for run in _line(state, now):
            if run.job.gpus > left:
                break
            left -= run.job.gpus
            served.append(run)
        if not served:
            return
        for run in sorted(served, key=lambda run: run.milli < 1000):
            if not _joins(state, run, now):
                _begin(state, run, _pick(state.free, run.job.gpus), now)
        _join_all(state, now)


def _line(state: _State, now: int) -> list[_Run]:
    return sorted(_waiting(state, now), key=lambda r: (_submit(r.job), state.runs.index(r)))


def _join_all(state: _State, now: int) -> None:
    for run in _line(state, now):
        _joins(state, run, now)


def _joins(state: _State, run: _Run, now: int) -> bool:
    """Put a fraction on the GPU of other fractions with the least room that suffices."""
    room: dict[Gpu, int] = {}
    for other in state.runs:
        for gpu in other.gpus:
            room[gpu] = room.get(gpu, 1000) - other.milli
    fits = [(left, gpu) for gpu, left in room.items() if left >= run.milli]
    if run.milli == 1000 or not fits:
        return False
    _begin(state, run, (min(fits)[1],), now)
    return True


def _las(state: _State, now: int, lease: int) -> None:
    """Serve the app with the least attained service first, at lease ends over all GPUs."""
    holders = [run for run in state.runs if run.gpus]
    had = {run.job.job_id: run.gpus for run in holders if now % lease == 0}
    if had and (_waiting(state, now)):
        for run in holders:
            state.free |= set(run.gpus)
            run.gpus = ()
    else:
        had = {}
    for _, app in sorted({(state.attained.get(r.app, 0), r.app) for r in _waiting(state, now)}):
        mine = [run for run in _waiting(state, now) if run.app == app]
        mine.sort(key=lambda r: (r.job.job_id not in had, -r.left / r.job.gpus))
        for run in mine:
            if run.job.gpus <= len(state.free):
                again = had.get(run.job.job_id, ())
                same = again and set(again) <= state.free
                _begin(state, run, again if same else _pick(state.free, run.job.gpus), now)
