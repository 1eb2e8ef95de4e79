"""Philly's official job log: a JSON array with one entry a job.

An entry has status, vc, jobid, attempts, submitted_time and user; an attempt has start_time,
end_time and detail (machines with their GPUs). Times may be missing: JSON null, ``""`` or the text
``"None"``.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from themis.errors import TraceError
from themis.traces.reader import Input, statuses, workload_from_rows
from themis.traces.report import Problem
from themis.traces.rows import Floats, Gathered, Mask, RowChecks
from themis.traces.stamps import Clock, Stamps, iso
from themis.workload import TraceSource, Workload

__all__ = ["read_job_log"]

_DETAIL = pl.List(pl.Struct({"ip": pl.String, "gpus": pl.List(pl.String)}))
_ATTEMPT = pl.Struct({"start_time": pl.String, "end_time": pl.String, "detail": _DETAIL})
_ENTRY = {
    "jobid": pl.String(),
    "user": pl.String(),
    "vc": pl.String(),
    "status": pl.String(),
    "submitted_time": pl.String(),
    "attempts": pl.List(_ATTEMPT),
}
_STATUS = {"pass": "completed", "killed": "cancelled", "failed": "failed"}


def read_job_log(source: Input, about: TraceSource, clock: Clock, *, span: bool) -> Workload:
    """Read the official job log.

    Parameters
    ----------
    source, about
        The file, and what is known of it.
    clock
        Reader of the time stamps.
    span
        Whether a job's duration is the time from its first start to its last end; else it is the
        sum of its attempts.
    """
    frame = _entries(source)
    gathered = Gathered(source.name, "entry")
    checks = RowChecks(frame, np.arange(1, frame.height + 1))
    job_id = checks.text("jobid", required=True)
    submit = clock.read(checks, "submitted_time")
    checks.reject(_counts(frame, pl.col("attempts").list.len()) < 1, "never scheduled", "jobid")
    gpus = _gpus(checks)
    duration_s = _durations(checks, clock, span=span)
    checks.reject(duration_s < 0, "end before start", "jobid")
    work = duration_s * gpus
    checks.work("jobid", work)
    status = statuses(checks.text("status"), _STATUS)
    columns = {
        "job_id": job_id,
        "app_id": job_id,
        "submit_us": pl.Series(submit.micros),
        "gang_size": gpus,
        "serial_time_s": np.where(gpus > 0, work, duration_s),
        "user": checks.text("user"),
        "tenant": checks.text("vc"),
        "status": status,
    }
    gathered.add(checks, columns, work)
    content = ["submit_us", "job_id", "gang_size", "serial_time_s", "user", "tenant", "status"]
    rows = gathered.rows(unique="job_id", content=content)
    origin = rows.get_column("submit_us").min()
    assert isinstance(origin, int)  # noqa: S101 - never empty here
    rows = rows.with_columns(
        ((pl.col("submit_us") - origin) / 1e6).alias("submit_s"),
        pl.col("gang_size").cast(pl.Int64),
        pl.col("gang_size").cast(pl.Int64).alias("max_gpus"),
    )
    gathered.notes.extend(clock.notes())
    about = about.with_origin(iso(origin, zoned=clock.zoned))
    return workload_from_rows(rows, gathered, about)
