"""The native format: a table of jobs, or tables of apps and jobs.

One CSV or Parquet file holds jobs, one a row; a directory holds ``apps`` and ``jobs`` tables, each
``.parquet`` or ``.csv`` (``.csv.gz``), as :meth:`Workload.write` makes them. Columns of jobs, with
the names that are accepted:

========================================  ==========================================================
id, job_id                                required; each id once
submit, submit_s, arrival_s               required; seconds (see the option `unit`)
gpus, num_gpus, gang_size                 required; whole GPUs that the job needs at once
duration, duration_s                      seconds at that gang; work is duration x GPUs
serial_time_s                             instead of a duration: GPU-seconds of work; of a job
                                          without GPUs its seconds
start, end (start_s, end_s)               instead of a duration: it is their difference
max_gpus                                  GPUs that an elastic job can use; the gang if absent
app_id                                    its app; an app of its own if absent
user, tenant, profile, stopping, weight,  as in :data:`themis.schema.workload.APPS` and
gpu_types, target_loss, checkpoint_s,     :data:`~themis.schema.workload.JOBS`
status, iterations, loss_a, loss_b,
loss_c, bracket, gpu_milli, mixes_types,
cpu_cores_per_gpu, memory_gib_per_gpu
app_max_gpus                              most GPUs of the whole app
========================================  ==========================================================

Columns of apps: app_id (or id), and any of arrival_s (or arrival), user, tenant, stopping, weight,
profile, gpu_types, max_gpus (of the whole app), target_loss.

Options
-------
unit
    Unit of every time in the file: ``"s"`` (default), ``"ms"`` or ``"min"``; work in
    ``serial_time_s`` is always in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.errors import TraceError
from themis.schema.host import OF_GPU
from themis.schema.workload import APP_ATTRIBUTES, MAX_TIME_S, WHOLE_MILLI, apps_from_jobs
from themis.traces.gathered import Gathered
from themis.traces.native_tables import (
    LEARNING,
    LIMITS,
    app_limits,
    find_table,
    gangs,
    host_needs,
    learning,
    mixing,
    named_columns,
    nothing,
    read_apps,
    stopping,
    table_rows,
    weights,
    written_about,
)
from themis.traces.reader import Input, Reader, choice, workload_from_rows
from themis.traces.rows import Floats, RowChecks
from themis.traces.same_ids import each_id_once
from themis.traces.source import digest
from themis.traces.spans import UNITS, doubt_seconds, from_zero, open_ends, reject_outside
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_JOB_NAMES: Mapping[str, tuple[str, ...]] = {
    "job_id": ("job_id", "id"),
    "submit_s": ("submit_s", "submit", "arrival_s"),
    "gang_size": ("gang_size", "num_gpus", "gpus"),
    "serial_time_s": ("serial_time_s",),
    "duration_s": ("duration_s", "duration"),
    "start_s": ("start_s", "start"),
    "end_s": ("end_s", "end"),
    "max_gpus": ("max_gpus",),
    "app_id": ("app_id",),
    "user": ("user",),
    "tenant": ("tenant",),
    "profile": ("profile",),
    "stopping": ("stopping",),
    "weight": ("weight",),
    "gpu_types": ("gpu_types",),
    "app_max_gpus": ("app_max_gpus",),
    "target_loss": ("target_loss",),
    "checkpoint_s": ("checkpoint_s",),
    "status": ("status",),
    "iterations": ("iterations",),
    "loss_a": ("loss_a",),
    "loss_b": ("loss_b",),
    "loss_c": ("loss_c",),
    "bracket": ("bracket",),
    "gpu_milli": ("gpu_milli",),
    "mixes_types": ("mixes_types",),
    **{name: (name,) for name in OF_GPU},
}
_TEXTS = ("user", "tenant", "profile", "gpu_types", "status")
_NO_UNIT = {"submit", "duration", "start", "end"}


def recognise(source: Input) -> str | None:
    """Say whether this is a directory with jobs, or a table with an id, a submission and GPUs."""
    if source.kind == "directory":
        found = find_table(source.path, "jobs")
        return f"directory with {found.name}" if found else None
    needed = ("job_id", "submit_s", "gang_size")
    names = [_first(source.columns, _JOB_NAMES[column]) for column in needed]
    if None in names:
        return None
    return f"{source.kind} table with {', '.join(name for name in names if name)}"


def lacking(columns: tuple[str, ...]) -> str:
    """Say which columns a table of one's own lacks, with the names that they may have."""
    absent = [
        f"column {column!r} is missing (accepted: {', '.join(_JOB_NAMES[column])})"
        for column in ("job_id", "submit_s", "gang_size")
        if _first(columns, _JOB_NAMES[column]) is None
    ]
    known = [_first(columns, _JOB_NAMES[column]) for column in ("serial_time_s", "duration_s")]
    span = [_first(columns, _JOB_NAMES[column]) for column in ("start_s", "end_s")]
    if not any(known) and not all(span):
        accepted = "duration, duration_s, serial_time_s, start and end"
        absent.append(f"column 'duration_s' is missing (accepted: {accepted})")
    return ", ".join(absent)


def read(source: Input, about: TraceSource, *, unit: object = "s") -> Workload:
    """Read a native workload; the module says which columns."""
    unit = choice(source.name, "unit", unit, tuple(UNITS))
    if source.kind != "directory":
        return _JobTable(source, unit).workload(about)
    jobs = find_table(source.path, "jobs")
    if jobs is None:
        raise TraceError(f"{source.name}: no jobs.parquet or jobs.csv in this directory")
    apps = find_table(source.path, "apps")
    files = [Input(path) for path in (apps, jobs) if path is not None]
    about = about.with_files(
        tuple(file.name for file in files), digest(file.file for file in files)
    )
    table = _JobTable(Input(jobs), unit)
    if apps is None:
        return table.workload(about)
    origin, notes = written_about(apps)
    return table.workload(about.with_origin(origin), read_apps(Input(apps)), notes)


def _first(columns: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in columns), None)


class _JobTable:
    """A table of jobs being read."""

    def __init__(self, source: Input, unit: str) -> None:
        self.source = source
        self.at = named_columns(source, _JOB_NAMES)
        absent = lacking(source.columns)
        if absent:
            raise TraceError(f"{source.name}: {absent}: found {source.describe()}")
        if "serial_time_s" in self.at:
            for column in ("duration_s", "start_s", "end_s"):
                self.at.pop(column, None)
        self.unit = unit
        if unit != "s" and not _NO_UNIT & set(self.at.values()):
            raise TraceError(
                f"{source.name}: option unit is {unit!r}, but the names of the time columns say "
                "seconds: expected one of submit, duration, start, end"
            )
        self.gathered = Gathered(source.name, "line" if source.kind == "csv" else "row")
        self.ends = open_ends()

    def workload(
        self,
        about: TraceSource,
        apps: pl.DataFrame | None = None,
        notes: tuple[str, ...] = (),
    ) -> Workload:
        """Return all rows as a workload; `apps` has what a second table says of the apps."""
        for checks in table_rows(self.source, self.gathered, self.at):
            if apps is not None and "app_id" in self.at:
                self._reject_unknown_apps(checks, apps)
            self._take(checks)
            del checks  # a table of Parquet is one block
        content = ["submit_s", "job_id", "gang_size", "serial_time_s", "max_gpus", "app_id"]
        rows = each_id_once(
            self.gathered,
            unique="job_id",
            content=[
                *content,
                "weight",
                "stopping",
                "checkpoint_s",
                *_TEXTS,
                *LIMITS,
                *LEARNING,
                "gpu_milli",
                "mixes_types",
                *OF_GPU,
            ],
        )
        if self.ends is not None and "still" in rows.columns:
            rows = self.ends.closed(rows)
        rows = self._from_origin(rows)
        if self.unit == "s" and _NO_UNIT & set(self.at.values()):
            doubt_seconds(rows, self.gathered.notes)
        if apps is None:
            self._note_disagreement(rows)
            return workload_from_rows(rows, self.gathered, about)
        implied = apps_from_jobs(rows.select("app_id", "submit_s"))
        joined = self._join_apps(apps, implied)
        return workload_from_rows(rows, self.gathered, about, apps=joined, notes=notes)

    def _scale(self, column: str) -> float:
        return UNITS[self.unit] if self.at[column] in _NO_UNIT else 1.0

    def _take(self, checks: RowChecks) -> None:
        at = self.at
        job_id = checks.text(at["job_id"], required=True)
        still = None
        if "start_s" in at and "duration_s" not in at:
            places = (at[name] for name in ("job_id", "submit_s", "start_s", "end_s"))
            still = reject_outside(checks, *places)
        submit_s = checks.number(at["submit_s"]) * self._scale("submit_s")
        checks.reject(np.abs(submit_s) > MAX_TIME_S, "number too large", at["submit_s"])
        gang, max_gpus, milli = self._sizes(checks)
        share = milli.fill_null(WHOLE_MILLI).to_numpy() / WHOLE_MILLI
        serial_s, work = self._work(checks, gang * share)
        columns: dict[str, pl.Series | Floats] = {
            "job_id": job_id,
            "submit_s": submit_s,
            "gang_size": gang,
            "serial_time_s": serial_s,
            "max_gpus": max_gpus,
            "app_id": self._app_ids(checks, job_id),
            "weight": weights(checks, at),
            "stopping": stopping(checks, at),
            "checkpoint_s": self._checkpoints(checks),
            **app_limits(checks, at, cap="app_max_gpus", gang=gang),
            **learning(checks, at),
            "gpu_milli": milli,
            "mixes_types": mixing(checks, at),
            **host_needs(checks, at),
        }
        if "end_s" in at and not {"serial_time_s", "duration_s"} & set(at):
            ended = checks.number(at["end_s"], required=False)
            columns["ended"] = ended * self._scale("end_s")
        if self.ends is not None and still is not None:
            times = (
                checks.number(at[name], required=False) * self._scale(name)
                for name in ("start_s", "end_s")
            )
            columns |= self.ends.columns(checks, still, submit_s, *times)
        for name in _TEXTS:
            columns[name] = checks.text(at[name]) if name in at else nothing(checks, pl.String())
        self.gathered.add(checks, columns, work)

    def _sizes(self, checks: RowChecks) -> tuple[Floats, Floats, pl.Series]:
        """GPUs that each job needs and can use, and the thousandths that it uses of one."""
        at = self.at
        gang, milli = gangs(checks, at)
        max_gpus = gang
        if "max_gpus" in at:
            given = checks.gpus(at["max_gpus"], required=False)
            max_gpus = np.where(np.isnan(given), gang, given)
            checks.reject(max_gpus < gang, "max_gpus below the gang", at["max_gpus"])
            checks.reject((gang == 0) & (max_gpus > 0), "max_gpus without a gang", at["max_gpus"])
        several = (milli < WHOLE_MILLI).fill_null(value=False).to_numpy() & (max_gpus != 1)
        blamed = at.get("gpu_milli", at["gang_size"])
        checks.reject(several, "fraction of several GPUs", blamed)
        return gang, max_gpus, milli

    def _work(self, checks: RowChecks, gang: Floats) -> tuple[Floats, Floats]:
        """Work as the workload keeps it, and GPU-seconds, of each row; `gang` counts shares."""
        at = self.at
        if "serial_time_s" in at:
            serial_s = checks.seconds(at["serial_time_s"], limit_s=np.inf)
            checks.work(at["serial_time_s"], serial_s)
            return serial_s, np.where(gang > 0, serial_s, 0.0 * serial_s)
        if "duration_s" in at:
            duration_s = checks.seconds(at["duration_s"], scale=self._scale("duration_s"))
            blamed = at["duration_s"]
        else:
            start_s = checks.number(at["start_s"]) * self._scale("start_s")
            end_s = checks.number(at["end_s"]) * self._scale("end_s")
            checks.reject(end_s < start_s, "end before start", at["end_s"])
            duration_s, blamed = end_s - start_s, at["end_s"]
            checks.reject(duration_s > MAX_TIME_S, "number too large", blamed)
        work = duration_s * gang
        checks.work(blamed, work)
        return np.where(gang > 0, work, duration_s), work

    def _app_ids(self, checks: RowChecks, job_id: pl.Series) -> pl.Series:
        if "app_id" not in self.at:
            return job_id
        return checks.text(self.at["app_id"]).fill_null(job_id)

    def _checkpoints(self, checks: RowChecks) -> pl.Series:
        if "checkpoint_s" not in self.at:
            return nothing(checks, pl.Float64())
        return pl.Series(checks.seconds(self.at["checkpoint_s"], required=False)).fill_nan(None)

    def _reject_unknown_apps(self, checks: RowChecks, apps: pl.DataFrame) -> None:
        name = self.at["app_id"]
        ids = checks.text(name, required=True)
        known = ids.is_in(apps.get_column("app_id").implode()).fill_null(value=True).to_numpy()
        checks.reject(~known, "app not in the apps table", name)

    def _from_origin(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with whole GPUs as integers and no negative time."""
        rows = from_zero(rows, self.gathered.notes)
        return rows.with_columns(pl.col("gang_size", "max_gpus", "app_max_gpus").cast(pl.Int64))

    def _note_disagreement(self, rows: pl.DataFrame) -> None:
        for column in APP_ATTRIBUTES.values():
            counts = rows.group_by("app_id").agg(pl.col(column).n_unique())
            several = int((counts.get_column(column) > 1).sum())
            if several:
                self.gathered.notes.append(
                    f"{several} apps have jobs of different {column}: the smallest value stands"
                )

    def _join_apps(self, apps: pl.DataFrame, implied: pl.DataFrame) -> pl.DataFrame:
        """Attributes of the apps table for the apps that have jobs, with their earliest job."""
        if "app_id" not in self.at:
            raise TraceError(f"{self.source.name}: column 'app_id' is missing: apps are given")
        joined = apps.join(implied.select("app_id", "arrival_s"), on="app_id", how="inner")
        if joined.height < apps.height:
            lone = apps.height - joined.height
            self.gathered.notes.append(f"{lone} apps without usable jobs were left out")
        return joined.select(implied.columns)


READER = Reader(
    name="native",
    expects="CSV or Parquet with id, submit, gpus, duration, or a directory with apps and jobs",
    recognise=recognise,
    read=read,
    options=("unit",),
)
