"""Thrash and starvation: GPUs taken to and fro, and apps that go without for long."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.metrics.by_app import Changes, Integers, Spans, app_rows, changes, us
from themis.metrics.completion import run_span
from themis.metrics.gpu_time import microseconds

__all__ = ["STARVED", "longest_waits", "repeats", "thrash_metrics"]

STARVED = 5.0
"""An app starves that could use GPUs and has none, in one piece, for so many times its T_ID."""

_HOUR_US = 3_600_000_000
_ONE_JOB = 1 << 32
"""Jobs and GPUs are counted in one number; no app has so many GPUs."""

_LEASES_AT_ONCE = 1 << 18


def thrash_metrics(
    apps: pl.DataFrame, jobs: pl.DataFrame, leases: pl.DataFrame, usage: pl.DataFrame
) -> dict[str, float | int | None]:
    """Evictions an app and an hour, allocations that come back, and the longest waits.

    An eviction is an instant at which leases of an app run out and are not granted again. An
    allocation comes back when the same apps hold the same GPUs as before, others held some in
    between, and no job was submitted or ended meanwhile.
    """
    evictions = _evictions(apps, leases)
    end_s = run_span(apps, usage)[1]
    life_us = microseconds(apps.get_column("end_s").fill_null(end_s or 0.0))
    life_us -= microseconds(apps.get_column("arrival_s"))
    rates = evictions / np.maximum((pl.Series(life_us) / _HOUR_US).to_numpy(), 1.0)
    lost, lives_us = int(evictions.sum()), int(life_us.sum())
    waits = longest_waits(apps, jobs, leases, usage)
    longest, ratio = waits.select(pl.col("wait_s", "ratio").max()).row(0)
    back = repeats(jobs, leases)
    return {
        "evictions": lost,
        "evictions_per_app_hour": lost * _HOUR_US / lives_us if lives_us else None,
        "evictions_per_app_hour_max": float(rates.max(initial=0.0)),
        "repeated_allocations": int(back["times"].sum()),
        "starved_apps": int((waits["ratio"] > STARVED).sum()),
        "wait_longest_s": longest,
        "wait_longest_ratio": ratio,
    }


def _evictions(apps: pl.DataFrame, leases: pl.DataFrame) -> Integers:
    """Count the instants at which leases of each app run out."""
    lost = leases.select("app_id", "ended_by", "end_s").filter(pl.col("ended_by") == "expired")
    rows = app_rows(apps.get_column("app_id"), lost.get_column("app_id"))
    ends = Spans(rows, lost.select("end_s"), us("end_s"), us("end_s"), pl.lit(1))
    counts = np.zeros(apps.height, dtype=np.int64)
    for app, at_us, _ in changes(apps.height, ends):
        np.add.at(counts, app[_lasts(app, at_us)], 1)
    return counts


def longest_waits(
    apps: pl.DataFrame, jobs: pl.DataFrame, leases: pl.DataFrame, usage: pl.DataFrame
) -> pl.DataFrame:
    """Return (app_id, wait_s, ratio): the longest time with an open job and no GPU, over T_ID."""
    end_us = _us_of(run_span(apps, usage)[1])
    never = (pl.col("state") == "killed") & pl.col("end_s").is_null()
    works = (pl.col("gang_size") > 0) & (pl.col("state") != "infeasible") & ~never
    until_us, ids = pl.coalesce(us("end_s"), pl.lit(end_us)), apps.get_column("app_id")
    app = np.where(jobs.select(works).to_series(), app_rows(ids, jobs.get_column("app_id")), -1)
    times = jobs.select("submit_s", "end_s")
    has_work = Spans(app, times, us("submit_s"), until_us, pl.lit(_ONE_JOB))
    app = app_rows(ids, leases.get_column("app_id"))
    held = leases.select("start_s", "end_s", "gpus")
    holds = Spans(app, held, us("start_s"), until_us, pl.col("gpus"))
    longest = np.full(apps.height, -1, dtype=np.int64)
    for some in changes(apps.height, has_work, holds):
        _find_longest(longest, some)
    wait_us = pl.Series(longest)
    wait_s = wait_us.set(wait_us < 0, None) / 1e6
    ideal = pl.when(pl.col("t_id_s") > 0).then("t_id_s")
    return apps.select("app_id", wait_s=wait_s, ratio=wait_s / ideal)


def _find_longest(longest: Integers, changes: Changes) -> None:
    """Set the longest waits of the apps of some changes."""
    app, at, amount = changes
    # An app's sum ends at 0, where that of the next begins.
    has = np.cumsum(amount)
    last = _lasts(app, at)
    app, at, has = app[last], at[last], has[last]
    waits = (has >= _ONE_JOB) & (has % _ONE_JOB == 0)
    lasts = np.where(waits, np.diff(at, append=0), 0)
    begins = np.flatnonzero(waits & ~np.roll(waits, 1))
    if begins.size:
        np.maximum.at(longest, app[begins], np.add.reduceat(lasts, begins))


def _lasts(app: Integers, at: Integers) -> Integers:
    """Return the last change of each app at each instant."""
    return np.flatnonzero((np.diff(app, append=-1) != 0) | (np.diff(at, append=-1) != 0))


def repeats(jobs: pl.DataFrame, leases: pl.DataFrame) -> pl.DataFrame:
    """Return the cycles: (since_s, until_s, times, states), most times first.

    `times` is how often an allocation came back between two submissions or ends of jobs, `states`
    how many allocations took turns.
    """
    quiet = _quiet(jobs)
    held = _Held.of(leases)
    parts = max(1, min(leases.height // _LEASES_AT_ONCE, quiet.size))
    edges = quiet[np.arange(parts) * quiet.size // parts] if quiet.size else quiet
    ends = np.append(edges[1:], np.iinfo(np.int64).max) if quiet.size else quiet
    cycles = [_cycles(quiet, *held.states(*part)) for part in zip(edges, ends, strict=True)]
    found = pl.concat(cycles or [_cycles(quiet, quiet, quiet)])
    return found.sort(["times", "since"], descending=[True, False]).select(
        since_s=pl.col("since") / 1e6, until_s=pl.col("until") / 1e6, times="times", states="states"
    )


def _quiet(jobs: pl.DataFrame) -> Integers:
    """Return the instants at which jobs are submitted and end, by time."""
    ends = jobs.get_column("end_s").drop_nulls()
    events = np.concatenate([microseconds(at) for at in (jobs.get_column("submit_s"), ends)])
    events.sort()
    return events


def _cycles(quiet: Integers, at: Integers, state: Integers) -> pl.DataFrame:
    """Count the states that come back between two instants of `quiet`."""
    since = quiet[np.searchsorted(quiet, at, side="right") - 1]
    # Most states stand alone, so that nothing comes back.
    same, among = since[1:] == since[:-1], np.zeros(since.size, dtype=np.bool_)
    among[1:] |= same
    among[:-1] |= same
    states = pl.DataFrame({"since": since[among], "at": at[among], "state": state[among]})
    number = pl.col("state").n_unique()
    return (
        states.group_by("since")
        .agg(times=pl.len() - number, states=number, until=pl.col("at").max())
        .filter(pl.col("times") > 0)
    )


class _Held(NamedTuple):
    """Which GPUs are leased, and from when until when."""

    leases: pl.DataFrame
    marks: Integers
    """The sum of the marks of the GPUs of each lease."""
    is_given_back: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, leases: pl.DataFrame) -> _Held:
        """Read a table of leases; at the horizon none is given back."""
        is_given_back = (leases.get_column("ended_by") != "horizon").to_numpy()
        return cls(leases.select("start_s", "end_s"), _marks(leases), is_given_back)

    def states(self, since_us: int, until_us: int) -> tuple[Integers, Integers]:
        """Return (at, state) where what apps hold changes, within [since, until).

        Equal states are equal. A state is the sum of the marks of the GPUs held, but for those
        held before.
        """
        begun, begin_us = self._within("start_s", since_us, until_us)
        ended, end_us = self._within("end_s", since_us, until_us)
        back = self.is_given_back[ended]
        at = np.append(begin_us, end_us[back])
        mark = np.append(self.marks[begun], -self.marks[ended[back]])
        order = np.argsort(at, kind="stable")  # begins are in order already
        at, mark = at[order], mark[order]
        begins = np.flatnonzero(np.diff(at, prepend=-1))
        mark = np.add.reduceat(mark, begins) if begins.size else mark
        changed = mark != 0
        return at[begins][changed], np.cumsum(mark)[changed]

    def _within(self, column: str, since_us: int, until_us: int) -> tuple[Integers, Integers]:
        """Return the rows with an instant in [since, until), and the instants."""
        rows, instants = [], []
        for first in range(0, self.leases.height, _LEASES_AT_ONCE):
            at_us = microseconds(self.leases.get_column(column).slice(first, _LEASES_AT_ONCE))
            mine = np.flatnonzero((at_us >= since_us) & (at_us < until_us))
            rows.append(first + mine)
            instants.append(at_us[mine])
        nothing = [np.zeros(0, dtype=np.int64)]
        return np.concatenate(rows or nothing), np.concatenate(instants or nothing)


def _marks(leases: pl.DataFrame) -> Integers:
    """Return the sum of the marks of the GPUs of each lease.

    A mark is a hash of app and machine times one of the GPU's index: so that of a lease is a
    difference of two sums, and takes no row for each GPU.
    """
    most = sum(leases.select(pl.col("gpu_first", "gpus").max().fill_null(0)).row(0))
    indices = pl.int_range(most, eager=True).hash(0).to_numpy()
    upto = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(indices)))
    marks = np.zeros(leases.height, dtype=np.uint64)
    for start in range(0, leases.height, _LEASES_AT_ONCE):
        some = leases[start : start + _LEASES_AT_ONCE]
        first, gpus = some["gpu_first"].to_numpy(), some["gpus"].to_numpy()
        whose = some.select(pl.struct("app_id", "machine").hash(0)).to_series().to_numpy()
        marks[start : start + _LEASES_AT_ONCE] = (upto[first + gpus] - upto[first]) * whose
    signed: Integers = marks.view(np.int64)
    return signed


def _us_of(seconds: float | None) -> int:
    return 0 if seconds is None else round(seconds * 1e6)
