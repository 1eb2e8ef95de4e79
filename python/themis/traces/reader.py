"""What every trace reader shares: how it is described, and how its rows become a workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from themis.checking.problems import Problem
from themis.checking.repairs import chosen
from themis.errors import TraceError
from themis.files.expansion import PARQUET_ERRORS
from themis.schema.workload import JOBS, apps_from_jobs
from themis.traces.csvtext import SHAPE, CsvBlock, CsvHeader, csv_blocks, csv_header
from themis.traces.gathered import Gathered, kept_problem
from themis.traces.rows import RowChecks
from themis.traces.source import TraceFile, is_folder
from themis.workload.workload import TraceSource, Workload

__all__ = [
    "Input",
    "Reader",
    "choice",
    "csv_rows",
    "numbered",
    "positive",
    "require_columns",
    "text_rows",
    "unused_columns",
    "workload_from_rows",
]


_NO_GPU = Problem("no GPU", action="kept: takes no GPU")
_NO_WORK = Problem("no work", action="kept: ends as it starts")
_CUT_OFF = Problem("ends with the trace", action="kept: may have been cut off")
_RUNNING = ("still running at the end", "still running at the snapshot")


@dataclass(frozen=True)
class Input:
    """A file, a directory or several files to read, with what a glance at them tells.

    Parameters
    ----------
    path
        File or directory as given; a tar archive for its members.
    member
        Name of the file inside the archive at `path`.
    label
        What tells this file apart from the others that are read with it; None for a lone file.
    files
        The files, if they are several; what a glance tells is then told of the first.
    """

    path: Path
    member: str | None = None
    label: str | None = None
    files: tuple[Input, ...] = ()

    @property
    def name(self) -> str:
        """The path, for messages."""
        return str(self.path) if self.member is None else f"{self.path}:{self.member}"

    @property
    def parts(self) -> tuple[Input, ...]:
        """The files one by one."""
        return self.files or (self,)

    @cached_property
    def file(self) -> TraceFile:
        """The first file."""
        first = self.parts[0]
        return TraceFile(first.path, first.member)

    @cached_property
    def kind(self) -> str:
        """``"directory"``, ``"parquet"``, ``"json"`` or ``"csv"`` (any other text)."""
        if is_folder(self.file.path):
            return "directory"
        if self.file.kind == "parquet":
            return "parquet"
        return "json" if self.file.head.lstrip()[:1] in {"[", "{"} else "csv"

    @property
    def first_line(self) -> str:
        """The first line of a text file that is not blank."""
        return self.file.head.lstrip().split("\n", 1)[0].rstrip("\r")

    @cached_property
    def header(self) -> CsvHeader:
        """Header of a CSV file."""
        return csv_header(self.file)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Column names of a CSV or Parquet file, else nothing."""
        if self.kind == "csv":
            return self.header.names
        if self.kind == "parquet":
            try:
                return tuple(pl.read_parquet_schema(self.path))
            except PARQUET_ERRORS as error:
                raise TraceError(f"{self.name}: damaged Parquet file: {error}") from None
        return ()

    def describe(self) -> str:
        """Say what was found, for messages."""
        if self.kind == "csv":
            names = ", ".join(name[:40] for name in self.columns[:20])
            return f"a text file whose first line is: {names}{self._separated()}"
        if self.kind == "parquet":
            return f"a Parquet file with columns: {', '.join(self.columns[:20])}"
        return {"json": "a JSON file", "directory": "a directory"}[self.kind]

    def _separated(self) -> str:
        """Say so if the columns seem to be separated by something else than commas."""
        if len(self.columns) == 1:
            for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
                if mark in self.columns[0]:
                    return f" (separated by {name}: expected commas)"
        return ""


@dataclass(frozen=True)
class Reader:
    """One trace format.

    Parameters
    ----------
    name
        Name of the format.
    expects
        What its files look like, in a phrase.
    recognise
        Why an input is of this format, or None if it is not.
    read
        Makes a workload of an input that is of this format; takes the options by name.
    options
        Names of the options of `read`.
    several
        Whether `read` takes several files (see :attr:`Input.parts`); their ids are then told apart
        by their labels.
    """

    name: str
    expects: str
    recognise: Callable[[Input], str | None]
    read: Callable[..., Workload]
    options: tuple[str, ...] = ()
    several: bool = False


def choice(name: str, option: str, value: object, allowed: tuple[str, ...]) -> str:
    """`value` as one of the allowed words.

    Raises
    ------
    TraceError
        It is none of them.
    """
    if value not in allowed:
        raise TraceError(
            f"{name}: option {option} is {value!r}: expected one of {', '.join(allowed)}"
        )
    return str(value)


def positive(name: str, option: str, value: object) -> float:
    """`value` as a positive, finite number.

    Raises
    ------
    TraceError
        It is none.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise TraceError(f"{name}: option {option} is {value!r}: expected a positive number")


def require_columns(source: Input, needed: Iterable[str]) -> None:
    """Raise a TraceError that names the first of `needed` that a file lacks."""
    for part in source.parts:
        for column in needed:
            if column not in part.columns:
                raise TraceError(
                    f"{part.name}: column {column!r} is missing: found {part.describe()}"
                )


def unused_columns(source: Input, gathered: Gathered, known: Iterable[str]) -> None:
    """Note once which columns of the input are not in `known`."""
    names = set(known)
    found = dict.fromkeys(name for part in source.parts for name in part.columns)
    extra = [name for name in found if name not in names]
    if extra:
        gathered.notes.append(f"columns not used: {', '.join(extra)}")


def csv_rows(source: Input, gathered: Gathered, known: Iterable[str]) -> Iterator[RowChecks]:
    """Blocks of rows of CSV files, malformed records rejected.

    Only the columns `known` are read; the others are noted once.
    """
    used = set(known)
    unused_columns(source, gathered, used)
    for part in source.parts:
        yield from text_rows(part, part.header, used)


def text_rows(
    part: Input, header: CsvHeader, used: Collection[str] | None = None
) -> Iterator[RowChecks]:
    """Blocks of rows of one file with the columns of `header`, malformed records rejected.

    Only the columns `used` are read, if they are given.
    """
    for block in csv_blocks(part.file, header, used):
        checks = RowChecks(block.frame, block.line, part.label)
        for code, reason in enumerate(SHAPE[1:], start=1):
            _reject_shape(checks, block, code, reason)
        yield checks


def _reject_shape(checks: RowChecks, block: CsvBlock, code: int, reason: str) -> None:
    bad = block.shape == code
    if bad.any():
        rows = np.flatnonzero(bad)
        texts = pl.Series([None], dtype=pl.String).new_from_index(0, len(bad))
        if reason != "empty line":
            shown = pl.Series([block.record.text(int(row))[:80] for row in rows])
            texts = texts.scatter(pl.Series(rows), shown)
        checks.reject(bad, reason, values=texts)


def workload_from_rows(  # noqa: PLR0913 - the accounts of one reading belong together
    rows: pl.DataFrame,
    gathered: Gathered,
    source: TraceSource,
    *,
    kept: Iterable[Problem] = (),
    apps: pl.DataFrame | None = None,
    notes: tuple[str, ...] = (),
) -> Workload:
    """Make a workload of accepted rows, with the report of their reading.

    `rows` has the columns of jobs and of their app (see :func:`schema.apps_from_jobs`), `line`, and
    `ended`, when each ended in the source, where that is known.
    """
    rows = rows.with_columns(
        pl.col("gang_size").cast(pl.Int64),
        pl.col("max_gpus" if "max_gpus" in rows.columns else "gang_size")
        .cast(pl.Int64)
        .alias("max_gpus"),
    )
    found = (
        (pl.col("gang_size") == 0, _NO_GPU, "gang_size"),
        (pl.col("serial_time_s") == 0, _NO_WORK, "serial_time_s"),
        (_cut_off(rows, gathered), _CUT_OFF, "job_id"),
    )
    for which, problem, column in found:
        rows = _without(rows, gathered, which, problem, column)
    noted = [
        *(kept_problem(rows, which, problem) for which, problem, _ in found),
        *kept,
    ]
    jobs = rows.select(
        (pl.col(c) if c in rows.columns else pl.lit(None)).cast(kind).alias(c)
        for c, kind in JOBS.items()
    )
    report = gathered.report(jobs, noted)
    return Workload(
        apps=apps_from_jobs(rows) if apps is None else apps,
        jobs=jobs,
        source=source.with_report(report),
        notes=notes,
    )


def _cut_off(rows: pl.DataFrame, gathered: Gathered) -> pl.Expr:
    """Which jobs end at the last instant of the trace, if it seems to have cut jobs off.

    It does if others still ran, or if several end then. `rows` may have `ended`, in any unit.
    """
    if "ended" not in rows.columns:
        return pl.lit(value=False)
    last = rows.select(pl.col("ended").max()).item()
    several = rows.filter(pl.col("ended") == last).height > 1
    if not (several or gathered.rejected_any(_RUNNING)):
        return pl.lit(value=False)
    return (pl.col("ended") == pl.lit(last)).fill_null(value=False)


def _without(
    rows: pl.DataFrame, gathered: Gathered, which: pl.Expr, problem: Problem, column: str
) -> pl.DataFrame:
    """Leave out the rows of `problem`, if that is its repair."""
    if chosen(problem.name) != "leave_out":
        return rows
    left = rows.filter(~which)
    if left.is_empty():
        raise TraceError(f"{gathered.name}: no job is left: {problem.name}")
    gathered.reject(rows.filter(which), problem.name, column)
    return left


def numbered(rows: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """`rows` with job ids ``prefix-000001`` and so on in their order, for sources without ids."""
    width = max(6, len(str(rows.height)))
    number = pl.int_range(1, rows.height + 1).cast(pl.String).str.zfill(width)
    return rows.with_columns((pl.lit(f"{prefix}-") + number).alias("job_id"))
