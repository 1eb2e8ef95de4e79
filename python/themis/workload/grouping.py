"""Jobs of a trace without app tags, grouped into apps by bursts of submissions."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from themis.arguments import real, whole
from themis.errors import TraceError
from themis.schema.workload import APP_ATTRIBUTES, JOBS, apps_from_jobs

__all__ = ["GROUP_KEYS", "burst_apps"]

GROUP_KEYS = ("user", "tenant", "gang_size", "max_gpus", "profile", "status")
"""Columns that may tell apart the jobs of different apps."""

_ALWAYS = tuple(name for column, name in APP_ATTRIBUTES.items() if column not in {"user", "tenant"})


def burst_apps(
    apps: pl.DataFrame,
    jobs: pl.DataFrame,
    *,
    gap_s: float,
    max_jobs: int,
    keys: Sequence[str],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Group jobs into apps; see :meth:`themis.Workload.group_into_apps`.

    A job joins the app of the job before it, in the order of (submit_s, job_id) among the jobs of
    equal `keys`, if that one was submitted at most `gap_s` earlier and the app has fewer than
    `max_jobs` jobs. Apps are numbered ``app-000001`` and so on by their first submission.

    Raises
    ------
    TraceError
        An option is out of range, or an app has several jobs already.
    """
    _check(apps, jobs, gap_s=gap_s, max_jobs=max_jobs, keys=keys)
    attributes = apps.select(
        "app_id",
        *(pl.col(column).alias(name) for column, name in APP_ATTRIBUTES.items()),
        pl.col("profile").alias("own"),
    )
    rows = jobs.join(attributes, on="app_id", how="left", maintain_order="left").with_columns(
        pl.coalesce("profile", "own").alias("profile")
    )
    by = [*keys, *_ALWAYS]
    rows = rows.sort(*by, "submit_s", "job_id", nulls_last=False)
    same = pl.all_horizontal(pl.col(key).eq_missing(pl.col(key).shift()) for key in by)
    near = pl.col("submit_s") - pl.col("submit_s").shift() <= gap_s
    rows = rows.with_columns((~(same & near)).fill_null(value=True).cum_sum().alias("burst"))
    place = pl.int_range(pl.len()).over("burst") // max_jobs
    rows = rows.with_columns(place.alias("part"))
    leads = rows.group_by("burst", "part").agg(
        pl.col("submit_s").first().alias("lead_s"), pl.col("job_id").first().alias("lead_id")
    )
    leads = leads.sort("lead_s", "lead_id")
    width = max(6, len(str(leads.height)))
    number = pl.int_range(1, leads.height + 1).cast(pl.String).str.zfill(width)
    leads = leads.select("burst", "part", (pl.lit("app-") + number).alias("app_id"))
    rows = rows.drop("app_id").join(leads, on=["burst", "part"], how="left", maintain_order="left")
    return apps_from_jobs(rows), rows.select(list(JOBS))


def _check(
    apps: pl.DataFrame, jobs: pl.DataFrame, *, gap_s: float, max_jobs: int, keys: Sequence[str]
) -> None:
    real("group_into_apps: gap_s", gap_s, "0 or more seconds", lambda value: value >= 0)
    whole("group_into_apps: max_jobs", max_jobs, "1 or more", lambda value: value >= 1)
    if not isinstance(keys, list | tuple):
        raise TraceError(f"group_into_apps: keys is {keys!r}: expected a list of columns")
    for key in keys:
        if key not in GROUP_KEYS:
            raise TraceError(
                f"group_into_apps: key {key!r} is unknown: expected some of {', '.join(GROUP_KEYS)}"
            )
    if jobs.height != apps.height:
        raise TraceError(
            f"group_into_apps: the {jobs.height} jobs belong to {apps.height} apps already: "
            "expected a workload where every job is its own app"
        )
