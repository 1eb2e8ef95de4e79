"""How long apps and jobs took, and how they ended."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from themis.metrics.statistics import Floats, mean, present, quantile

__all__ = [
    "APP_STATES",
    "COMPLETION_S",
    "JOB_STATES",
    "completion_metrics",
    "run_span",
    "state_counts",
    "time_statistics",
]

APP_STATES = ("done", "failed", "infeasible", "rejected", "unfinished")
"""Final states of an app."""

JOB_STATES = ("done", "killed", "failed", "infeasible", "rejected", "unfinished")
"""Final states of a job."""


COMPLETION_S = (
    pl.when(pl.col("state") == "done").then(pl.col("end_s") - pl.col("arrival_s"))
).alias("completion_s")
"""Completion time of an app in seconds; null unless it is done."""


def state_counts(apps: pl.DataFrame, jobs: pl.DataFrame) -> dict[str, int]:
    """Apps and jobs, in all and by final state; the states add up to all."""
    return {
        "apps": apps.height,
        **_counts("apps", apps.get_column("state"), APP_STATES),
        "jobs": jobs.height,
        **_counts("jobs", jobs.get_column("state"), JOB_STATES),
    }


def completion_metrics(
    apps: pl.DataFrame, jobs: pl.DataFrame
) -> dict[str, float | int | bool | None]:
    """Makespan and completion times.

    Completion times are of apps and jobs in state done, in seconds from arrival (app) or
    submission (job) to the end.
    """
    start_s, _ = run_span(apps)
    apps = apps.select("state", "arrival_s", "end_s")
    done = apps.filter(pl.col("state") == "done")
    last_s = done.get_column("end_s").max()
    makespan = None if start_s is None or last_s is None else _number(last_s) - start_s
    app_s = present(apps.select(COMPLETION_S).to_series())
    times = jobs.select("state", "submit_s", "end_s")
    done_jobs = times.filter(pl.col("state") == "done")
    job_s = present(done_jobs.select(pl.col("end_s") - pl.col("submit_s")).to_series())
    return {
        "makespan_s": makespan,
        "makespan_is_bound": bool((apps.get_column("state") == "unfinished").any()),
        **time_statistics("app_completion", app_s),
        **time_statistics("job_completion", job_s),
    }


def run_span(
    apps: pl.DataFrame, usage: pl.DataFrame | None = None
) -> tuple[float | None, float | None]:
    """First arrival and end of the run in seconds.

    The run ends with the last end of an app; where apps are unfinished, not before the last row
    of `usage`. Either is None where nothing tells it.
    """
    first = apps.get_column("arrival_s").min()
    ends = [apps.get_column("end_s").max()]
    unfinished = (apps.get_column("state") == "unfinished").any()
    if usage is not None and (unfinished or ends[0] is None):
        ends.append(usage.get_column("at_s").max())
    known = [_number(end) for end in ends if end is not None]
    return (None if first is None else _number(first)), (max(known) if known else None)


def time_statistics(name: str, seconds: Floats) -> dict[str, float | None]:
    """Mean, median, 95th and 99th percentile as metrics called `name`."""
    return {
        f"{name}_mean_s": mean(seconds),
        f"{name}_p50_s": quantile(seconds, 0.50),
        f"{name}_p95_s": quantile(seconds, 0.95),
        f"{name}_p99_s": quantile(seconds, 0.99),
    }


def _counts(prefix: str, column: pl.Series, states: Iterable[str]) -> dict[str, int]:
    return {f"{prefix}_{state}": int((column == state).sum()) for state in states}


def _number(value: object) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"expected a number, found {value!r}")
    return float(value)
