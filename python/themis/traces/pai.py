"""Alibaba PAI 2020 (Weng et al., NSDI 2022): tables of jobs, tasks, instances and group tags.

The tables are CSV files without headers, read together from one folder. A job is submitted at
``start_time`` of the job table. Its GPUs are those of all instances of its tasks: ``inst_num`` x
``plan_gpu`` / 100; a job of one instance may use a fraction of a GPU, several instances take whole
GPUs each. It runs from its first to its last instance; without the instance table task by task,
else from its submission. Jobs of one user with one ``group`` tag are an app; ``workload`` is the
placement profile, ``gpu_type`` of its tasks the GPU type. Times are shifted by an unknown constant
and read as seconds; 0 means missing.

Without the job table, jobs are those that tasks or instances name, submitted when the first starts.

Options
-------
fractions, host
    As in :func:`themis.traces.tabular.read_table`.
apps
    ``"group"``, the default, or ``"job"``: every job is its own app.
gpus_per_instance
    GPUs of every instance, where there is no task table to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from themis.errors import TraceError
from themis.schema.host import OF_GPU
from themis.traces.by_key import Lookup
from themis.traces.host import HOST
from themis.traces.pai_tables import TABLES, header_of, instances, table_of, tags, tasks
from themis.traces.reader import Input, Reader, choice, positive
from themis.traces.rows import RowChecks
from themis.traces.table import Table
from themis.traces.tabular import read_table
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_PRIMARY = ("job", "task", "instance")


def recognise(source: Input) -> str | None:
    """By the number of fields, a status word and two times in the first line."""
    kind = table_of(source)
    return f"{kind} table of PAI ({len(TABLES[kind])} fields)" if kind else None


def read(  # noqa: PLR0913 - the options of the format
    source: Input,
    about: TraceSource,
    *,
    fractions: object = None,
    apps: object = "group",
    gpus_per_instance: object = None,
    host: object = HOST[0],
) -> Workload:
    """Read the tables; the module says what the options mean."""
    apps = choice(source.name, "apps", apps, ("group", "job"))
    parts = _parts(source)
    primary = next(kind for kind in _PRIMARY if kind in parts)
    notes: list[str] = []
    keeps = choice(source.name, "host", host, HOST) == "keep" and "task" in parts
    side = _side(parts, notes)
    if "task" not in parts:
        if gpus_per_instance is None or "instance" not in parts:
            raise TraceError(
                f"{source.name}: no task table, which has the GPUs: give its folder, or, for an "
                "instance table, option gpus_per_instance"
            )
        each = positive(source.name, "gpus_per_instance", gpus_per_instance)
        side = side.with_columns(
            (pl.col("count") * float(np.ceil(each))).alias("gpus"),
            (pl.col("count") * each).alias("gpus_asked"),
        )
        notes.append(f"every instance has {each:g} GPUs, as option gpus_per_instance says")
    tagged = tags(parts["group tag"], notes) if "group tag" in parts else None
    if primary != "job":
        notes.append("no job table: a job is submitted when its first task or instance starts")
    table = Table(
        name="pai",
        title="tables of Alibaba PAI",
        known_by=(),
        job_id="job_name",
        submit="start_time" if primary == "job" else "begin",
        start="begin",
        end="finish",
        gpus="gpus",
        gpus_asked="gpus_asked",
        app="app" if apps == "group" else None,
        user="user",
        status="status" if primary == "job" else None,
        profile="workload",
        gpu_types="gpu_type",
        host={name: (name, 1.0) for name in OF_GPU} if keeps else {},
        unit="s",
        header=lambda part: header_of(part, primary),
        prepare=_preparation(side, tagged, of_jobs=primary == "job"),
    )
    only = replace(parts[primary], label=None)
    return read_table(table, only, about, {"fractions": fractions, "host": host}, notes)


def _parts(source: Input) -> dict[str, Input]:
    """Files by the table that they are."""
    found: dict[str, Input] = {}
    for part in source.parts:
        kind = table_of(part)
        if kind is None:
            raise TraceError(
                f"{part.name}: found {part.describe()}: expected one of the "
                f"{', '.join(TABLES)} tables of PAI"
            )
        if kind in found:
            raise TraceError(
                f"{source.name}: two {kind} tables: {found[kind].name} and {part.name}: "
                "expected one"
            )
        found[kind] = part
    if not set(found) & set(_PRIMARY):
        raise TraceError(
            f"{source.name}: group tags without jobs: expected the job and task tables beside them"
        )
    return found


def _side(parts: Mapping[str, Input], notes: list[str]) -> pl.DataFrame:
    """Return what tasks and instances say of each job; the times of instances come first."""
    of_tasks = tasks(parts["task"], notes) if "task" in parts else None
    if "instance" not in parts:
        return pl.DataFrame(schema=_NOTHING) if of_tasks is None else of_tasks
    found = instances(parts["instance"], notes)
    if of_tasks is None:
        return found
    times = found.select("job_name", pl.col("begin", "finish").name.suffix("_"))
    joined = of_tasks.hstack(Lookup(times, "job_name").of(of_tasks.get_column("job_name")))
    return joined.with_columns(
        pl.coalesce(f"{name}_", name).alias(name) for name in ("begin", "finish")
    ).drop("begin_", "finish_")


_NOTHING = {"job_name": pl.String(), "gpus": pl.Int64(), "gpus_asked": pl.Float64()}


def _preparation(
    side: pl.DataFrame, tagged: pl.DataFrame | None, *, of_jobs: bool
) -> Callable[[RowChecks], None]:
    """Return what adds the columns of the other tables to the rows of jobs, tasks or instances."""
    seen: set[str] = set()
    jobs = Lookup(side, "job_name")
    tag = None if tagged is None else Lookup(tagged, "inst_id")

    def prepare(checks: RowChecks) -> None:
        if not of_jobs:
            names = checks.frame.get_column("job_name")
            known = np.array([name in seen for name in names], dtype=np.bool_)
            known |= (~names.is_first_distinct() & names.is_not_null()).to_numpy()
            checks.reject(known, "further row of a job", "job_name")
            seen.update(names.drop_nulls())
        frame = checks.frame.drop("gpu_type", strict=False)
        frame = frame.hstack(jobs.of(frame.get_column("job_name")))
        if of_jobs and "begin" not in side.columns:
            frame = frame.with_columns(begin="start_time", finish="end_time")
        if tag is not None and "inst_id" in frame.columns:
            frame = frame.hstack(tag.of(frame.get_column("inst_id")))
            user = pl.coalesce(*(name for name in ("user", "tag_user") if name in frame.columns))
            app = pl.concat_str(user, pl.lit("/"), pl.col("group"))
            frame = frame.with_columns(user.alias("user"), app.alias("app"))
        if of_jobs:
            zero = pl.col("start_time").cast(pl.Float64, strict=False) == 0
            frame = frame.with_columns(pl.when(~zero.fill_null(value=False)).then("start_time"))
        checks.frame = frame
        unknown = frame.get_column("gpus").is_null().to_numpy()
        checks.reject(unknown, "no GPUs recorded", "job_name")

    return prepare


READER = Reader(
    name="pai",
    expects="the job, task, instance and group tag tables of Alibaba PAI, without headers",
    recognise=recognise,
    read=read,
    options=("fractions", "apps", "gpus_per_instance", "host"),
    several=True,
)
