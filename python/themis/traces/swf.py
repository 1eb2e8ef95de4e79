"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line.

Lines that begin with ``;`` are comments, -1 means unknown. The processors that were allocated, else
those asked for, are taken as GPUs. The user, the group as tenant and the queue's number are
numbers; ``UnixStartTime`` in a comment is the time of second 0. Lines of a partial execution (a
job that was checkpointed, status 2 to 4) are part of the job's own line.
"""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime

import polars as pl

from themis.traces.csvtext import CsvHeader, Dialect
from themis.traces.reader import Input, Reader
from themis.traces.rows import RowChecks
from themis.traces.table import Table
from themis.traces.tabular import read_table
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_FIELDS = (
    *("job", "submit", "wait", "run", "processors", "cpu_time", "memory"),
    *("asked_processors", "asked_time", "asked_memory", "status", "user", "group"),
    *("executable", "queue", "partition", "preceding_job", "think_time"),
)
_DIALECT = Dialect(separator=" ", quoted=False, comment=";")
_HEADER = CsvHeader(_FIELDS, 0, len(_FIELDS), _DIALECT)
_STATUS = {"0": "failed", "1": "completed", "5": "cancelled"}
_START = re.compile(r"(?im)^;\s*UnixStartTime:\s*(\d{1,11})\b")
_LOOKED_AT = 20
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def recognise(source: Input) -> str | None:
    """By 18 numbers in one of the first lines that are no comments."""
    if source.kind != "csv":
        return None
    lines = (line.strip() for line in source.file.head.split("\n"))
    first = itertools.islice((line for line in lines if line and line[0] != ";"), _LOOKED_AT)
    if not any(_is_record(line.split()) for line in first):
        return None
    return f"lines of {len(_FIELDS)} numbers between blanks"


def _is_record(cells: list[str]) -> bool:
    return len(cells) == len(_FIELDS) and all(map(_NUMBER.fullmatch, cells))


def read(source: Input, about: TraceSource, *, unit: object = "s") -> Workload:
    """Read files of the Standard Workload Format."""
    notes = ("processors are taken as GPUs: those allocated, else those asked for",)
    return read_table(_TABLE, source, about.with_origin(_origin(source)), {"unit": unit}, notes)


def _origin(source: Input) -> str | None:
    found = _START.search(source.file.head) if len(source.parts) == 1 else None
    return datetime.fromtimestamp(int(found[1]), tz=UTC).isoformat() if found else None


def _prepare(checks: RowChecks) -> None:
    frame = checks.frame.with_columns(
        pl.when(~pl.all().is_in(["-1", "-1.0", "-1.00"])).then(pl.all())
    )
    frame = frame.with_columns(pl.coalesce("processors", "asked_processors"))
    status = frame.get_column("status")
    partial = status.is_in(["2", "3", "4"]).fill_null(value=False)
    checks.reject(partial.to_numpy(), "partial execution", "job")
    ending = status.replace(_STATUS)
    checks.frame = frame.with_columns(ending.alias("status"))
    never = (frame["run"].is_null() | frame["processors"].is_null()) & (status == "5")
    checks.reject(never.fill_null(value=False).to_numpy(), "never scheduled", "job")


_TABLE = Table(
    name="swf",
    title="Standard Workload Format",
    known_by=(),
    job_id="job",
    submit="submit",
    duration="run",
    gpus="processors",
    user="user",
    tenant="group",
    status="status",
    unit="s",
    header=lambda _part: _HEADER,
    prepare=_prepare,
)

READER = Reader(
    name="swf",
    expects="Standard Workload Format: 18 numbers a line, comments after ;",
    recognise=recognise,
    read=read,
    options=("unit",),
    several=True,
)
