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
    ends = pl.coalesce(_us("end_s"), pl.lit(end_us))
    app, at, change = _changes(
        apps,
        works.select("app_id", _us("submit_s"), ends, change=_ONE_JOB),
        leases.select("app_id", _us("start_s"), _us("end_s"), change=pl.col("gpus").cast(pl.Int64)),
    )
    # What an app opens it closes, and what it gets it gives back: its sum ends at 0, where that of
    # the next begins.
    has = np.cumsum(change)
    last = np.flatnonzero((np.diff(app, append=-1) != 0) | (np.diff(at, append=-1) != 0))
    app, at, has = app[last], at[last], has[last]
    waits = (has >= _ONE_JOB) & (has % _ONE_JOB == 0)
    lasts = np.where(waits, np.diff(at, append=0), 0)
    begins = np.flatnonzero(waits & ~np.roll(waits, 1))
    longest = np.full(apps.height, -1, dtype=np.int64)
    if begins.size:
        np.maximum.at(longest, app[begins], np.add.reduceat(lasts, begins))
    wait_us = pl.Series(longest)
    wait_s = wait_us.set(wait_us < 0, None) / 1e6
    ideal = pl.when(pl.col("t_id_s") > 0).then("t_id_s")
    return apps.select("app_id", wait_s=wait_s, ratio=wait_s / ideal)


def _changes(apps: pl.DataFrame, *spans: pl.DataFrame) -> tuple[Integers, Integers, Integers]:
    """Return app number, time and change, by app and time, of spans (app_id, from, to, change)."""
    numbers = apps.select("app_id", app=pl.int_range(pl.len(), dtype=pl.Int32))
    columns: list[tuple[Integers, ...]] = []
    for rows in spans:
        table = rows.join(numbers, on="app_id", maintain_order="left").drop("app_id")
        begin, end, change, app = (column.to_numpy() for column in table.iter_columns())
        columns += [(app, begin, change), (app, end, -change)]
    app, at, change = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.lexsort((at, app))
    return app[order], at[order], change[order]


def repeats(jobs: pl.DataFrame, leases: pl.DataFrame) -> pl.DataFrame:
    """Return the cycles: (since_s, until_s, times, states), most times first.

    `times` is how often an allocation came back between two submissions or ends of jobs, `states`
    how many allocations took turns.
    """
    end = pl.col("gpu_first") + pl.col("gpus")
    leases = leases.with_columns(gpu=pl.int_ranges("gpu_first", end)).explode(
        "gpu", empty_as_null=False
    )
    mark = pl.struct("app_id", "machine", "gpu").hash(0).reinterpret(signed=True)
    over = leases.filter(pl.col("ended_by") != "horizon")
    changes = pl.concat(
        [leases.select(at=_us("start_s"), mark=mark), over.select(at=_us("end_s"), mark=-mark)]
    )
    states = (
        changes.group_by("at")
        .agg(pl.col("mark").sum())
        .sort("at")
        .with_columns(state=pl.col("mark").cum_sum())
    ).filter(pl.col("mark") != 0)
    events = (
        jobs.select(at=pl.concat_list(_us("submit_s"), _us("end_s"))).explode("at").drop_nulls()
    )
    quiet = events.group_by("at").len().sort("at").select("at", since="at")
    found = (
        states.join_asof(quiet, on="at")
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


def _us(column: str) -> pl.Expr:
    return (pl.col(column) * 1e6).round().cast(pl.Int64)


def _us_of(seconds: float | None) -> int:
    return 0 if seconds is None else round(seconds * 1e6)
