"""Thrash and starvation: GPUs taken to and fro, and apps that go without for long."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.metrics.completion import run_span

__all__ = ["STARVED", "longest_waits", "repeats", "thrash_metrics"]

STARVED = 5.0
"""An app starves that could use GPUs and has none, in one piece, for so many times its T_ID."""

_HOUR_US = 3_600_000_000
_ONE_JOB = 1 << 32
"""Jobs and GPUs are counted in one number; no app has so many GPUs."""

_APPS_AT_ONCE = 1 << 18
"""Apps looked at together: a join on the ids of a million takes 170 MiB."""

Integers = npt.NDArray[np.integer[Any]]


def thrash_metrics(
    apps: pl.DataFrame, jobs: pl.DataFrame, leases: pl.DataFrame, usage: pl.DataFrame
) -> dict[str, float | int | None]:
    """Evictions an app and an hour, allocations that come back, and the longest waits.

    An eviction is an instant at which leases of an app run out and are not granted again. An
    allocation comes back when the same apps hold the same GPUs as before, others held some in
    between, and no job was submitted or ended meanwhile.
    """
    end_us = _us_of(run_span(apps, usage)[1])
    lost = leases.filter(pl.col("ended_by") == "expired").select("app_id", _us("end_s")).unique()
    life_us = pl.coalesce(_us("end_s"), pl.lit(end_us)) - _us("arrival_s")
    each = apps.select("app_id", life_us=life_us).join(
        lost.group_by("app_id").len("evictions"), on="app_id", how="left", maintain_order="left"
    )
    hours = pl.col("life_us") / _HOUR_US
    rate, lives_us = each.select(
        (pl.col("evictions") / pl.max_horizontal(hours, 1.0)).max(), pl.col("life_us").sum()
    ).row(0)
    waits = longest_waits(apps, jobs, leases, usage)
    longest, ratio = waits.select(pl.col("wait_s", "ratio").max()).row(0)
    back = repeats(jobs, leases)
    return {
        "evictions": lost.height,
        "evictions_per_app_hour": lost.height * _HOUR_US / lives_us if lives_us else None,
        "evictions_per_app_hour_max": rate if rate is not None else 0.0,
        "repeated_allocations": int(back["times"].sum()),
        "starved_apps": int((waits["ratio"] > STARVED).sum()),
        "wait_longest_s": longest,
        "wait_longest_ratio": ratio,
    }


def longest_waits(
    apps: pl.DataFrame, jobs: pl.DataFrame, leases: pl.DataFrame, usage: pl.DataFrame
) -> pl.DataFrame:
    """Return (app_id, wait_s, ratio): the longest time with an open job and no GPU, over T_ID."""
    end_us = _us_of(run_span(apps, usage)[1])
    never = (pl.col("state") == "killed") & pl.col("end_s").is_null()
    works = jobs.filter((pl.col("gang_size") > 0) & (pl.col("state") != "infeasible") & ~never)
    works = works.select("app_id", "submit_s", "end_s", change=pl.lit(_ONE_JOB))
    holds = leases.select("app_id", "start_s", "end_s", change=pl.col("gpus").cast(pl.Int64))
    longest = np.full(apps.height, -1, dtype=np.int64)
    numbers = apps.select("app_id", app=pl.int_range(pl.len(), dtype=pl.Int32))
    for some in numbers.iter_slices(_APPS_AT_ONCE):
        _find_longest(longest, *_changes(some, end_us, works, holds))
    wait_us = pl.Series(longest)
    wait_s = wait_us.set(wait_us < 0, None) / 1e6
    ideal = pl.when(pl.col("t_id_s") > 0).then("t_id_s")
    return apps.select("app_id", wait_s=wait_s, ratio=wait_s / ideal)


def _find_longest(longest: Integers, app: Integers, at: Integers, change: Integers) -> None:
    """Set the longest waits of the apps of some changes."""
    # What an app opens it closes, and what it gets it gives back: its sum ends at 0, where that of
    # the next begins.
    has = np.cumsum(change)
    last = np.flatnonzero((np.diff(app, append=-1) != 0) | (np.diff(at, append=-1) != 0))
    app, at, has = app[last], at[last], has[last]
    waits = (has >= _ONE_JOB) & (has % _ONE_JOB == 0)
    lasts = np.where(waits, np.diff(at, append=0), 0)
    begins = np.flatnonzero(waits & ~np.roll(waits, 1))
    if begins.size:
        np.maximum.at(longest, app[begins], np.add.reduceat(lasts, begins))


def _changes(
    apps: pl.DataFrame, end_us: int, *spans: pl.DataFrame
) -> tuple[Integers, Integers, Integers]:
    """Return app number, time and change, by app and time, of spans (app_id, from, to, change)."""
    columns: list[tuple[Integers, ...]] = []
    for rows in spans:
        since, until = rows.columns[1:3]
        table = rows.join(apps, on="app_id").select(
            "app", _us(since), pl.coalesce(_us(until), pl.lit(end_us)), "change"
        )
        app, begin, end, change = (column.to_numpy() for column in table.iter_columns())
        columns += [(app, begin, change), (app, end, -change)]
    app, at, change = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.lexsort((at, app))
    return app[order], at[order], change[order]


def repeats(jobs: pl.DataFrame, leases: pl.DataFrame) -> pl.DataFrame:
    """Return the cycles: (since_s, until_s, times, states), most times first.

    `times` is how often an allocation came back between two submissions or ends of jobs, `states`
    how many allocations took turns.
    """
    since = pl.col("since")
    events = pl.concat([jobs.select(at=_us("submit_s")), jobs.select(at=_us("end_s"))])
    quiet = events.drop_nulls().sort("at").select("at", since="at")
    found = (
        _states(leases)
        .join_asof(quiet, on="at")
        # Most states stand alone, so that nothing comes back.
        .filter((since == since.shift(1)) | (since == since.shift(-1)))
        .group_by("since")
        .agg(
            times=pl.len() - pl.col("state").n_unique(),
            states=pl.col("state").n_unique(),
            until=pl.col("at").max(),
        )
    )
    return (
        found.filter(pl.col("times") > 0)
        .sort(["times", "since"], descending=[True, False])
        .select(
            since_s=pl.col("since") / 1e6,
            until_s=pl.col("until") / 1e6,
            times="times",
            states="states",
        )
    )


def _states(leases: pl.DataFrame) -> pl.DataFrame:
    """Return (at, state) of the instants at which what apps hold changes; equal states are equal.

    A state is the sum of the marks of the GPUs held, a mark a hash of app and machine times one of
    the GPU's index: so that of a lease is a difference of two sums, and takes no row for each GPU.
    """
    at, mark = _marks(leases)
    order = np.argsort(at, kind="stable")
    at, mark = at[order], mark[order]
    begins = np.flatnonzero(np.diff(at, prepend=-1))
    mark = np.add.reduceat(mark, begins) if begins.size else mark
    changed = mark != 0
    return pl.DataFrame({"at": at[begins][changed], "state": np.cumsum(mark)[changed]})


def _marks(leases: pl.DataFrame) -> tuple[Integers, Integers]:
    """Return the instants at which leases begin and end, and the change of the state then."""
    mark = _marks_of_leases(leases)
    begin, end, over = leases.select(_us("start_s"), _us("end_s"), pl.col("ended_by") != "horizon")
    at = np.concatenate((begin.to_numpy(), end.filter(over).to_numpy()))
    del begin, end
    return at, np.concatenate((mark, -mark[over.to_numpy()]))


def _marks_of_leases(leases: pl.DataFrame) -> Integers:
    """Return the mark of the GPUs of each lease."""
    first, gpus = leases["gpu_first"].to_numpy(), leases["gpus"].to_numpy()
    indices = pl.int_range(int((first + gpus).max(initial=0)), eager=True).hash(0).to_numpy()
    upto = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(indices)))
    mark: npt.NDArray[np.uint64] = upto[first + gpus]
    mark -= upto[first]
    mark *= leases.select(pl.struct("app_id", "machine").hash(0)).to_series().to_numpy()
    signed: Integers = mark.view(np.int64)
    return signed


def _us(column: str) -> pl.Expr:
    return (pl.col(column) * 1e6).round().cast(pl.Int64)


def _us_of(seconds: float | None) -> int:
    return 0 if seconds is None else round(seconds * 1e6)
