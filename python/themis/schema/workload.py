"""The tables of a workload: columns, types, order of the rows, and what a valid row is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.errors import TraceError
from themis.schema.compact import compact
from themis.schema.host import MAX_HOST, OF_GPU
from themis.schema.limits import MAX_GPUS, MAX_TIME_S, MAX_WEIGHT, MIN_WEIGHT

__all__ = [
    "APPS",
    "APP_ATTRIBUTES",
    "JOBS",
    "LOSS",
    "MAX_GPUS",
    "MAX_TIME_S",
    "MAX_WORK_GPU_S",
    "NULLABLE",
    "STATUSES",
    "STOPPING",
    "WHOLE_MILLI",
    "WORKLOAD_SCHEMA_VERSION",
    "all_distinct",
    "apps_from_jobs",
    "canonical",
    "gpu_seconds",
]

WORKLOAD_SCHEMA_VERSION = 4
"""Version of these tables in Parquet files."""

_S, _F, _I = pl.String(), pl.Float64(), pl.Int64()

APPS: Mapping[str, pl.DataType] = {
    "app_id": _S,
    "user": _S,
    "tenant": _S,
    "arrival_s": _F,
    "stopping": _S,
    "weight": _F,
    "profile": _S,
    "gpu_types": _S,
    "max_gpus": _I,
    "target_loss": _F,
}
"""Columns of `apps`; those after weight, user and tenant may be null or absent.

`max_gpus` caps the GPUs of the whole app; `target_loss` is where a search by loss is content.
"""

JOBS: Mapping[str, pl.DataType] = {
    "job_id": _S,
    "app_id": _S,
    "submit_s": _F,
    "serial_time_s": _F,
    "gang_size": _I,
    "max_gpus": _I,
    "profile": _S,
    "checkpoint_s": _F,
    "status": _S,
    "iterations": _F,
    "loss_a": _F,
    "loss_b": _F,
    "loss_c": _F,
    "bracket": _I,
    "gpu_milli": _I,
    "mixes_types": pl.Boolean(),
    **dict.fromkeys(OF_GPU, _F),
}
"""Columns of `jobs`; those after max_gpus may be null or absent.

A job of one GPU uses `gpu_milli` thousandths of it; null is all. One that `mixes_types` (null:
true) runs on GPUs of several types at the speed of the slowest. `iterations` is how many the whole
work of the job is. Its loss after k of them is
``1 / (loss_a * k + loss_b) + loss_c``. Jobs of one `bracket` of an app halve among themselves. Each
GPU takes `cpu_cores_per_gpu` and `memory_gib_per_gpu` of its machine, a share of a GPU that part.
"""

STOPPING = ("all", "first", "successive_halving", "performance_curve", "fixed")
"""What ends an app: all its jobs or the first one; or how its search drops poor jobs."""

APP_ATTRIBUTES: Mapping[str, str] = {
    "user": "user",
    "tenant": "tenant",
    "stopping": "stopping",
    "weight": "weight",
    "gpu_types": "gpu_types",
    "max_gpus": "app_max_gpus",
    "target_loss": "target_loss",
}
"""Attributes of an app that a table of jobs may carry, and their names there."""

STATUSES = ("completed", "cancelled", "failed", "unknown")
"""Words for how a job ended in the source."""

MAX_WORK_GPU_S = 1e12
"""Largest work of one job that is believed; it still fits 64-bit microseconds."""

WHOLE_MILLI = 1000
"""`gpu_milli` of a job that uses its GPUs whole."""

LOSS = ("loss_a", "loss_b", "loss_c")
"""Columns of a loss curve."""

NULLABLE: Mapping[str, frozenset[str]] = {
    "apps": frozenset({"user", "tenant", "profile", "gpu_types", "max_gpus", "target_loss"}),
    "jobs": frozenset(
        {
            "profile",
            "checkpoint_s",
            "status",
            "iterations",
            *LOSS,
            "bracket",
            "gpu_milli",
            "mixes_types",
            *OF_GPU,
        }
    ),
}
"""Columns of each table that may be null or absent."""

_ARRIVAL_SLACK_S = 1e-6


def gpu_seconds(jobs: pl.DataFrame) -> float:
    """GPU-seconds of a jobs table; exactly rounded, so any row order gives the same."""
    work = jobs.filter(pl.col("gang_size") > 0).get_column("serial_time_s")
    return math.fsum(work.to_list())


def canonical(apps: pl.DataFrame, jobs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Validate the tables and put columns and rows in canonical order.

    Apps are sorted by (arrival_s, app_id); jobs by (order of their app, submit_s, job_id).

    Raises
    ------
    TraceError
        A column is missing, unknown or of another type; a value is null, not finite, negative or
        out of range; a loss curve is incomplete or has no iterations; an id stands twice; a job's
        app is missing; an app has no job, or a cap below the gang of one; a job is submitted
        before its app arrives, or no job of an app is submitted when it arrives.
    """
    apps, jobs = _conform("apps", apps, APPS), _conform("jobs", jobs, JOBS)
    _check_values(apps, jobs)
    apps, jobs = compact(apps), compact(jobs)
    apps = apps.sort("arrival_s", "app_id").rechunk()
    jobs = _in_order_of_apps(apps, jobs)
    _check_references(apps, jobs)
    return apps, jobs.select(list(JOBS)).rechunk()


def all_distinct(series: pl.Series) -> bool:
    """Whether no two values are the same."""
    hashes = np.sort(series.hash().to_numpy())  # equal hashes alone do not say that values are
    return bool((hashes[1:] != hashes[:-1]).all()) or series.n_unique() == series.len()


def _in_order_of_apps(apps: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Sort jobs by the place of their app, as `app_order` (null if there is none), and in it."""
    lone = jobs.sort("submit_s", "app_id")
    if lone.get_column("app_id").equals(apps.get_column("app_id")):  # each app has one job
        return lone.with_row_index("app_order")
    order = apps.select("app_id").with_row_index("app_order")
    jobs = jobs.join(order, on="app_id", how="left", maintain_order="left")
    return jobs.sort("app_order", "submit_s", "job_id")


def apps_from_jobs(rows: pl.DataFrame) -> pl.DataFrame:
    """Make the `apps` table that jobs carrying the columns of their app imply.

    `rows` has app_id, submit_s and any of profile and :data:`APP_ATTRIBUTES`, by their names in a
    table of jobs. An app arrives with its earliest job. Where its jobs disagree about an attribute
    the smallest value stands; a profile must be the same in all of them, else it stays with the
    jobs and is null here.
    """
    defaults = {"stopping": "all", "weight": 1.0}
    known = {column: name for column, name in APP_ATTRIBUTES.items() if name in rows.columns}
    profile = [name for name in ("profile",) if name in rows.columns]
    if all_distinct(rows.get_column("app_id")):
        own = [pl.col(name).alias(column) for column, name in known.items()]
        apps = rows.select("app_id", pl.col("submit_s").alias("arrival_s"), *own, *profile)
    else:
        plans = [pl.col(name).min().alias(column) for column, name in known.items()]
        one = (pl.col("profile").n_unique() == 1) & pl.col("profile").is_not_null().all()
        plans += [pl.when(one).then(pl.col(name).min()).alias(name) for name in profile]
        apps = rows.group_by("app_id").agg(pl.col("submit_s").min().alias("arrival_s"), *plans)
    return apps.select(
        (pl.col(c) if c in apps.columns else pl.lit(defaults.get(c))).cast(kind).alias(c)
        for c, kind in APPS.items()
    ).with_columns(pl.col(c).fill_null(pl.lit(value)) for c, value in defaults.items())


def _conform(table: str, frame: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    if not isinstance(frame, pl.DataFrame):
        raise TraceError(
            f"workload table {table!r} is a {type(frame).__name__}: expected a polars DataFrame"
        )
    for column in schema:
        if column not in frame.columns and column not in NULLABLE[table]:
            raise TraceError(f"workload table {table!r}: column {column!r} is missing")
    for column in frame.columns:
        if column not in schema:
            raise TraceError(
                f"workload table {table!r}: column {column!r} is unknown: "
                f"expected {', '.join(schema)}"
            )
    for column, wanted in schema.items():
        found = frame.schema.get(column, pl.Null())
        widens = found in (wanted, pl.Null) or (
            found.is_integer() and wanted.is_numeric() and found not in (pl.UInt64, pl.Int128)
        )
        if not widens:
            raise TraceError(
                f"workload table {table!r}: column {column!r} has type {found}: expected {wanted}"
            )
    return frame.select(
        (pl.col(column) if column in frame.columns else pl.lit(None)).cast(kind).alias(column)
        for column, kind in schema.items()
    )


def _check_values(apps: pl.DataFrame, jobs: pl.DataFrame) -> None:
    if jobs.is_empty():
        raise TraceError("workload table 'jobs' has no rows: expected at least one job")
    for table, frame in (("apps", apps), ("jobs", jobs)):
        for column in frame.columns:
            if column not in NULLABLE[table]:
                _refuse(table, frame, column, pl.col(column).is_null(), "a value")
        for column, kind in frame.schema.items():
            if kind == pl.Float64:
                bad = ~pl.col(column).is_finite() | (pl.col(column).abs() > MAX_WORK_GPU_S)
                _refuse(table, frame, column, bad, f"a number up to {MAX_WORK_GPU_S:g}")
        key = frame.columns[0]
        if not all_distinct(frame.get_column(key)):
            _refuse(table, frame, key, pl.col(key).is_duplicated(), "an id that stands once")
        _refuse(table, frame, key, pl.col(key) == "", "an id that is not empty")
    for column in ("arrival_s",):
        _refuse("apps", apps, column, pl.col(column) < 0, "0 or more")
    outside = ~pl.col("weight").is_between(MIN_WEIGHT, MAX_WEIGHT)
    _refuse("apps", apps, "weight", outside, f"a weight from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}")
    allowed = pl.col("stopping").is_in(list(STOPPING))
    _refuse("apps", apps, "stopping", ~allowed, f"one of {', '.join(STOPPING)}")
    for column in ("submit_s", "serial_time_s", "gang_size", "checkpoint_s"):
        _refuse("jobs", jobs, column, pl.col(column) < 0, "0 or more")
    over = pl.col("max_gpus") > MAX_GPUS
    _refuse("jobs", jobs, "max_gpus", over, f"at most {MAX_GPUS}")
    smaller = pl.col("max_gpus") < pl.col("gang_size")
    _refuse("jobs", jobs, "max_gpus", smaller, "gang_size or more")
    elastic_cpu = (pl.col("gang_size") == 0) & (pl.col("max_gpus") > 0)
    _refuse("jobs", jobs, "max_gpus", elastic_cpu, "0 where gang_size is 0")
    outside = ~pl.col("gpu_milli").is_between(1, WHOLE_MILLI)
    _refuse("jobs", jobs, "gpu_milli", outside, f"1 to {WHOLE_MILLI}, or null")
    several = (pl.col("gpu_milli") < WHOLE_MILLI) & (pl.col("max_gpus") != 1)
    _refuse("jobs", jobs, "gpu_milli", several, f"{WHOLE_MILLI}, since it is not a job of one GPU")
    _check_search(apps, jobs)
    _check_needs(jobs)


def _check_needs(jobs: pl.DataFrame) -> None:
    """Check what GPUs need of their machines."""
    for column in OF_GPU:
        outside = ~pl.col(column).is_between(0, MAX_HOST)
        _refuse("jobs", jobs, column, outside, f"0 to {MAX_HOST:g}, or null")


def _check_search(apps: pl.DataFrame, jobs: pl.DataFrame) -> None:
    """Check what a search over the jobs needs: caps, iterations, loss curves."""
    outside = ~pl.col("max_gpus").is_between(1, MAX_GPUS)
    _refuse("apps", apps, "max_gpus", outside, f"1 to {MAX_GPUS}, or null")
    _refuse("jobs", jobs, "iterations", pl.col("iterations") <= 0, "a positive number, or null")
    outside = ~pl.col("bracket").is_between(0, MAX_GPUS)
    _refuse("jobs", jobs, "bracket", outside, f"0 to {MAX_GPUS}, or null")
    _refuse("jobs", jobs, "loss_a", pl.col("loss_a") < 0, "0 or more")
    _refuse("jobs", jobs, "loss_b", pl.col("loss_b") <= 0, "a positive number")
    some = pl.any_horizontal(pl.col(column).is_not_null() for column in LOSS)
    for column in (*LOSS, "iterations"):
        wanted = "a value, since the job has a loss curve"
        _refuse("jobs", jobs, column, some & pl.col(column).is_null(), wanted)


def _check_references(apps: pl.DataFrame, jobs: pl.DataFrame) -> None:
    """Check that apps and jobs, in the order of their apps, belong together."""
    _refuse("jobs", jobs, "app_id", pl.col("app_order").is_null(), "the id of an app")
    order = jobs.get_column("app_order").to_numpy()
    lone = np.ones(apps.height, dtype=np.bool_)
    lone[order] = False
    _refuse("apps", apps, "app_id", pl.lit(pl.Series(lone)), "an app with at least one job")
    starts = np.flatnonzero(np.append(True, order[1:] != order[:-1]))
    apps = apps.with_columns(
        first_s=np.minimum.reduceat(jobs.get_column("submit_s").to_numpy(), starts),
        largest=np.maximum.reduceat(jobs.get_column("gang_size").to_numpy(), starts),
    )
    plain = apps.filter(pl.col("stopping").is_in(["all", "first"])).get_column("app_id")
    searched = (pl.col("gpu_milli") < WHOLE_MILLI) & ~pl.col("app_id").is_in(plain.implode())
    expected = f"{WHOLE_MILLI}, since its app searches among its jobs"
    _refuse("jobs", jobs, "gpu_milli", searched, expected)
    early = pl.col("first_s") < pl.col("arrival_s")
    _refuse("apps", apps, "arrival_s", early, "no later than the app's earliest job")
    late = pl.col("first_s") > pl.col("arrival_s") + _ARRIVAL_SLACK_S
    _refuse("apps", apps, "arrival_s", late, "the submission of the app's earliest job")
    small = pl.col("max_gpus") < pl.col("largest")
    _refuse("apps", apps, "max_gpus", small, "the largest gang of its jobs or more")


def _refuse(table: str, frame: pl.DataFrame, column: str, bad: pl.Expr, expected: str) -> None:
    """Raise for the first row where `bad` holds, in order of the id and the value."""
    if not frame.select(bad.any()).item():
        return
    key = frame.columns[0]
    rows = frame.filter(bad).select(pl.col(key).alias("key"), pl.col(column).alias("value"))
    found = rows.sort("key", "value", nulls_last=True).row(0, named=True)
    raise TraceError(
        f"workload table {table!r}, {key} {found['key']!r}: {column} is {found['value']!r}: "
        f"expected {expected}"
    )
