"""Philly as the Pollux authors derived it: a CSV without users and job ids.

Columns: timestamp, duration, num_gpus, gpu_time, cluster.

``timestamp`` is the submission, ``duration`` seconds, ``cluster`` the virtual cluster (tenant).
Users and job ids are lost in that derivation: jobs are numbered in the order of their cells, never
of the file, and rows that look alike are different jobs. Each job is its own app until
:meth:`Workload.group_into_apps` says otherwise.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from themis.traces.gathered import Gathered
from themis.traces.reader import (
    Input,
    csv_rows,
    numbered,
    require_columns,
    workload_from_rows,
)
from themis.traces.rows import Floats
from themis.traces.stamps import Clock, since_first
from themis.workload.workload import TraceSource, Workload

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
        if "gpu_time" in checks.frame.columns:
            stated = checks.number("gpu_time", required=False)
            lying += int((checks.good & (np.abs(stated - work) > 1e-6 * work + 1e-3)).sum())
        tenant = pl.repeat(None, len(work), dtype=pl.String, eager=True)
        if "cluster" in checks.frame.columns:
            tenant = checks.text("cluster")
        columns: dict[str, pl.Series | Floats] = {
            "submit_us": pl.Series(submit.micros),
            "duration_s": duration_s,
            "gang_size": gpus,
            "stated": stated,
            "tenant": tenant,
            "serial_time_s": np.where(gpus > 0, work, duration_s),
        }
        gathered.add(checks, columns, work)
    content = ["submit_us", "duration_s", "gang_size", "stated", "tenant"]
    rows = gathered.in_order(content)
    rows, origin = since_first(rows, "submit_us", clock)
    rows = numbered(rows, "philly").with_columns(pl.col("job_id").alias("app_id"))
    gathered.notes.extend(clock.notes())
    gathered.notes.append("the file names no users: user is null, tenant is the virtual cluster")
    if lying:
        gathered.notes.append(
            f"gpu_time differs from duration x num_gpus in {lying} rows: not used"
        )
    return workload_from_rows(rows, gathered, about.with_origin(origin))
