"""HyperDrive CSV: the hyper-parameter experiments that the paper's authors published.

Columns: experiment-id, job-id, start-time, run-time (seconds), num-gpus; cells may have blanks
after the commas. An experiment is an app that is done when all its jobs are. Work is
run-time x num-gpus.

``start-time`` is when the original cluster *ran* a job, not when it was asked for; so by default
all jobs of an experiment are submitted when its earliest one started (``jobs_at="arrival"``).
``jobs_at="start"`` keeps each job's own start as its submission.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from themis.traces.gathered import Gathered
from themis.traces.reader import (
    Input,
    Reader,
    choice,
    csv_rows,
    require_columns,
    workload_from_rows,
)
from themis.traces.rows import Floats
from themis.traces.same_ids import each_id_once
from themis.traces.stamps import Clock, since_first
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_COLUMNS = ("experiment-id", "job-id", "start-time", "run-time", "num-gpus")


def recognise(source: Input) -> str | None:
    """By the columns that no other format has."""
    found = {"experiment-id", "job-id"} & set(source.columns)
    return f"CSV with {' and '.join(sorted(found))}" if found and source.kind == "csv" else None


def read(
    source: Input, about: TraceSource, *, jobs_at: object = "arrival", timezone: object = None
) -> Workload:
    """Read a HyperDrive CSV.

    Parameters
    ----------
    source, about
        The file, and what is known of it.
    jobs_at
        ``"arrival"`` or ``"start"``: when an app's jobs are submitted.
    timezone
        IANA zone of the time stamps; None takes them as they stand.
    """
    jobs_at = choice(source.name, "jobs_at", jobs_at, ("arrival", "start"))
    clock = Clock(timezone, source.name)
    require_columns(source, _COLUMNS)
    gathered = Gathered(source.name)
    for checks in csv_rows(source, gathered, _COLUMNS):
        app_id = checks.text("experiment-id", required=True)
        job_id = checks.text("job-id", required=True)
        start = clock.read(checks, "start-time")
        run_s = checks.seconds("run-time")
        gpus = checks.gpus("num-gpus")
        work = run_s * gpus
        checks.work("run-time", work)
        columns: dict[str, pl.Series | Floats] = {
            "job_id": app_id + "/" + job_id,
            "own_id": job_id,
            "app_id": app_id,
            "start_us": pl.Series(start.micros),
            "serial_time_s": np.where(gpus > 0, work, run_s),
            "gang_size": gpus,
        }
        gathered.add(checks, columns, work)
    content = ["start_us", "app_id", "job_id", "gang_size", "serial_time_s"]
    rows = each_id_once(gathered, unique="job_id", content=content)
    if rows.get_column("own_id").n_unique() == rows.height:
        rows = rows.with_columns(job_id="own_id")
    else:
        gathered.notes.append("experiments share job-ids: ids are experiment-id/job-id")
    rows, origin = since_first(rows, "start_us", clock)
    when = pl.col("start_s")
    rows = rows.with_columns(
        (when if jobs_at == "start" else when.min().over("app_id")).alias("submit_s")
    )
    gathered.notes.extend(clock.notes())
    if jobs_at == "arrival":
        gathered.notes.append(
            "all jobs of an experiment are submitted at its earliest start-time, because "
            "start-time is when the original cluster ran a job, not when it was asked for"
        )
    return workload_from_rows(rows, gathered, about.with_origin(origin))


READER = Reader(
    name="hyperdrive",
    expects="CSV with columns " + ", ".join(_COLUMNS),
    recognise=recognise,
    read=read,
    options=("jobs_at", "timezone"),
)
