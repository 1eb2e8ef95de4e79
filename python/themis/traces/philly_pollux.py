"""Philly as the Pollux authors derived it: CSV with timestamp, duration, num_gpus, gpu_time, cluster.

``timestamp`` is the submission, ``duration`` seconds, ``cluster`` the virtual cluster (tenant).
Users and job ids are lost in that derivation: jobs are numbered in the order of their cells, never
of the file, and rows that look alike are different jobs. Each job is its own app until
:meth:`Workload.group_into_apps` says otherwise.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from themis.traces.reader import Input, csv_rows, require_columns, workload_from_rows
from themis.traces.rows import Gathered
from themis.traces.stamps import Clock, iso
from themis.workload import TraceSource, Workload

__all__ = ["COLUMNS", "read_pollux"]

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
_NEEDED = ("timestamp", "duration", "num_gpus")


def read_pollux(source: Input, about: TraceSource, clock: Clock) -> Workload:
    """Read the Pollux-derived CSV; gpu_time and cluster may be absent."""
    require_columns(source, _NEEDED)
    gathered = Gathered(source.name)
    lying = 0
    for checks in csv_rows(source, gathered, COLUMNS):
        submit = clock.read(checks, "timestamp")
        duration_s = checks.seconds("duration")
        gpus = checks.gpus("num_gpus")
        work = duration_s * gpus
        checks.work("duration", work)
        stated = np.full(len(work), np.nan)
        if "gpu_time" in source.columns:
            stated = checks.number("gpu_time", required=False)
            lying += int((checks.good & (np.abs(stated - work) > 1e-6 * work + 1e-3)).sum())
        tenant = pl.repeat(None, len(work), dtype=pl.String, eager=True)
        if "cluster" in source.columns:
            tenant = checks.text("cluster")
        columns = {
            "submit_us": pl.Series(submit.micros),
            "duration_s": duration_s,
            "gang_size": gpus,
            "stated": stated,
            "tenant": tenant,
            "serial_time_s": np.where(gpus > 0, work, duration_s),
        }
        gathered.add(checks, columns, work)
    content = ["submit_us", "duration_s", "gang_size", "stated", "tenant"]
    rows = gathered.rows(unique=None, content=content)
    origin = rows.get_column("submit_us").min()
    assert isinstance(origin, int)  # noqa: S101 - never empty here
    width = max(6, len(str(rows.height)))
    number = pl.int_range(1, rows.height + 1).cast(pl.String).str.zfill(width)
    rows = rows.with_columns(
        (pl.lit("philly-") + number).alias("job_id"),
        (pl.lit("philly-") + number).alias("app_id"),
        ((pl.col("submit_us") - origin) / 1e6).alias("submit_s"),
        pl.col("gang_size").cast(pl.Int64),
        pl.col("gang_size").cast(pl.Int64).alias("max_gpus"),
    )
    gathered.notes.extend(clock.notes())
    gathered.notes.append("the file names no users: user is null, tenant is the virtual cluster")
    if lying:
        gathered.notes.append(
            f"gpu_time differs from duration x num_gpus in {lying} rows: not used"
        )
    about = about.with_origin(iso(origin, zoned=clock.zoned))
    return workload_from_rows(rows, gathered, about)
