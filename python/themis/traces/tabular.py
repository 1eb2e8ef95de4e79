"""Trace formats that are one table with one job a row, read from a description of its columns.

A description (:class:`~themis.traces.table.Table`) says what each column means and in which unit;
everything else is the same for all of them: what is rejected and in which order, fractions of a
GPU, ids, second 0, the notes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import polars as pl

from themis.checking.problems import Problem
from themis.checking.repairs import given
from themis.errors import TraceError
from themis.schema.workload import MAX_GPUS, MAX_TIME_S, WHOLE_MILLI
from themis.traces.attempts import merge_attempts
from themis.traces.endings import endings, unknown_words
from themis.traces.fractions import FRACTIONS, ROUNDED_UP, shares
from themis.traces.gathered import Gathered, kept_problem
from themis.traces.host import HOST, Amounts, needs_a_gpu
from themis.traces.reader import (
    Input,
    Reader,
    choice,
    numbered,
    require_columns,
    text_rows,
    unused_columns,
    workload_from_rows,
)
from themis.traces.rows import Floats, RowChecks
from themis.traces.same_ids import each_id_once
from themis.traces.spans import UNITS, doubt_seconds, from_zero, open_ends, reject_outside
from themis.traces.stamps import Clock, since_first
from themis.traces.table import Table
from themis.workload.workload import TraceSource, Workload

__all__ = ["read_table", "table_reader"]


def table_reader(table: Table) -> Reader:
    """Return the reader of a format that its description says all of."""

    def read(source: Input, about: TraceSource, **options: object) -> Workload:
        return read_table(table, source, about, options)

    return Reader(
        name=table.name,
        expects=f"CSV with {', '.join(table.needed)} ({table.title})",
        recognise=table.recognise,
        read=read,
        options=table.options,
        several=True,
    )


def read_table(
    table: Table,
    source: Input,
    about: TraceSource,
    options: Mapping[str, object],
    notes: Sequence[str] = (),
) -> Workload:
    """Read files of the format that `table` describes; `notes` come first in the report.

    The options are those of :attr:`Table.options`: ``timezone`` (see
    :class:`~themis.traces.stamps.Clock`) or ``unit``, and ``fractions``, one of
    :data:`~themis.traces.fractions.FRACTIONS`: what jobs take that ask for fractions of GPUs; and
    ``host``, one of :data:`~themis.traces.host.HOST`: what becomes of their CPU cores and memory.
    """
    reading = _Reading(table, source, options)
    reading.gathered.notes.extend(notes)
    for checks in reading.blocks():
        reading.take(checks)
    return reading.workload(about)


class _Reading:
    """A table being read."""

    def __init__(self, table: Table, source: Input, options: Mapping[str, object]) -> None:
        name = source.name
        self.table, self.source = table, source
        unit = choice(name, "unit", options.get("unit", table.unit or "s"), tuple(UNITS))
        self.unit, self.scale = unit, UNITS[unit]
        self.clock = Clock(options.get("timezone"), name) if table.unit is None else None
        fractions = options.get("fractions")
        if fractions is None:
            fractions = given("fraction of a GPU") or FRACTIONS[0]
        self.fractions = choice(name, "fractions", fractions, FRACTIONS)
        host = choice(name, "host", options.get("host", HOST[0]), HOST)
        self.host: Amounts = table.host if host == "keep" else {}
        self.gathered = Gathered(name)
        self.ends = open_ends() if table.start and table.end and not table.duration else None
        self.lying = 0

    def blocks(self) -> Iterator[RowChecks]:
        """Rows of all files, malformed ones rejected."""
        table, used = self.table, None
        if table.header is None:
            if self.source.kind != "csv":
                raise TraceError(
                    f"{self.source.name}: found {self.source.describe()}: expected {table.title}"
                )
            host = [column for column, _ in self.host.values()]
            require_columns(self.source, (*table.needed, *host))
            stated = (table.stated,) if table.stated else ()
            used = {*table.needed, *table.texts.values(), *stated, *host}
            known = (column for column, _ in table.host.values())
            unused_columns(self.source, self.gathered, {*used, *known, *table.idle})
        for part in self.source.parts:
            yield from text_rows(part, table.header(part) if table.header else part.header, used)

    def take(self, checks: RowChecks) -> None:
        """Gather the rows of one block."""
        table = self.table
        whole = checks.good
        if table.prepare is not None:
            table.prepare(checks)
        part = whole & ~checks.good  # steps and the like: their work is that of their job
        texts = self._texts(checks)
        columns: dict[str, pl.Series | Floats] = dict(texts)
        if table.job_id is not None:
            job_id = checks.text(table.job_id, required=True)
            columns["job_id"] = job_id if checks.file is None else checks.file + "/" + job_id
        still = np.zeros_like(whole)
        if table.submit and table.start and table.end:
            still = reject_outside(
                checks, table.job_id or table.start, table.submit, table.start, table.end
            )
        columns["submit"] = submit = self._submit(checks)
        gang, asked = self._gpus(checks)
        duration_s, ended = self._duration(checks, gang)
        milli = shares(gang, asked if self.fractions == "keep" else gang)
        used = milli.to_numpy() / WHOLE_MILLI  # NaN where GPUs are used whole
        asked, used = np.where(np.isnan(used), (asked, gang), used)
        work = duration_s * used
        checks.work(self._blamed, work)
        columns["gang_size"] = gang
        columns["gpu_milli"] = milli
        columns["serial_time_s"] = np.where(gang > 0, work, duration_s)
        columns["asked_gpus"] = asked
        columns["whole_gpu_s"] = work - duration_s * asked
        devices = checks.gpus(table.gpus) if table.host_each else 1.0
        shared = gang * milli.fill_null(WHOLE_MILLI).to_numpy() / WHOLE_MILLI
        columns |= needs_a_gpu(checks, self.host, shared / devices)
        if self._fraction is not None:
            columns["asked"] = checks.text(self._fraction)
        if table.status is not None:
            columns["status"] = endings(texts["word"])
        if ended is not None:
            columns["ended"] = ended
        if self.ends is not None:
            start = self._instants(checks, cast("str", table.start))
            submit_s = submit.to_numpy() / (1.0 if self.clock is None else 1e6)
            columns |= self.ends.columns(checks, still, submit_s, start, start + duration_s)
        self.gathered.add(checks, columns, np.where(part, np.nan, duration_s * asked))

    @property
    def _blamed(self) -> str:
        """Column at fault for a duration."""
        table = self.table
        return table.duration if isinstance(table.duration, str) else table.end or table.gpus

    def _texts(self, checks: RowChecks) -> dict[str, pl.Series]:
        nothing = pl.repeat(None, checks.frame.height, dtype=pl.String, eager=True)
        found = {
            meaning: checks.text(column) if column in checks.frame.columns else nothing
            for meaning, column in self.table.texts.items()
        }
        if checks.file is not None and "tenant" not in found:
            found["tenant"] = nothing.fill_null(checks.file)
        if "gpu_types" in found:
            found["gpu_types"] = _alternatives(found["gpu_types"])
        return found

    def _submit(self, checks: RowChecks) -> pl.Series:
        column = self.table.submit
        if column is None:
            return pl.Series(np.zeros(checks.frame.height))
        if self.clock is not None:
            return pl.Series(self.clock.read(checks, column).micros)
        found = checks.number(column) * self.scale
        checks.reject(np.abs(found) > MAX_TIME_S, "number too large", column)
        return pl.Series(found)

    def _instants(self, checks: RowChecks, column: str) -> Floats:
        """Return times of a column that was checked before, seconds."""
        if self.clock is None:
            return checks.number(column, required=False) * self.scale
        stamps = Clock(self.clock.timezone, self.source.name)  # that counts nothing twice
        return stamps.parse(checks.frame.get_column(column)).micros / 1e6

    @property
    def _fraction(self) -> str | None:
        """Column that can ask for a fraction of a GPU."""
        return self.table.gpus_asked or self.table.gpus_each

    def _gpus(self, checks: RowChecks) -> tuple[Floats, Floats]:
        """Whole GPUs of the gang, and GPUs as asked for."""
        table, column = self.table, self._fraction
        count = checks.gpus(table.gpus)
        if column is None:
            return count, count
        found = checks.number(column) * table.each_unit
        checks.reject(found < 0, "negative number of GPUs", column)
        gang, asked = (
            (count, found) if table.gpus_asked else (np.ceil(found) * count, found * count)
        )
        checks.reject(gang > MAX_GPUS, "number too large", column)
        if self.fractions == "leave_out":
            checks.reject(asked != gang, "fraction of a GPU", column)
        return gang, asked

    def _duration(self, checks: RowChecks, gpus: Floats) -> tuple[Floats, pl.Series | None]:
        """Durations, and ends on the clock of the submissions, where there are any."""
        table = self.table
        if callable(table.duration):
            return table.duration(checks, gpus), None
        if table.duration is not None:
            return checks.seconds(table.duration, scale=self.scale), self._end(checks)
        start, end = cast("str", table.start), cast("str", table.end)
        if self.clock is not None:
            found, finish = self.clock.between(checks, start, end)
            ended = pl.Series(finish)
        else:
            last = checks.number(end) * self.scale
            found, ended = last - checks.number(start) * self.scale, pl.Series(last)
            checks.reject(found < 0, "end before start", end)
        checks.reject(found > MAX_TIME_S, "number too large", end)
        if table.stated is not None and table.stated in checks.frame.columns:
            stated = checks.number(table.stated, required=False)
            self.lying += int((checks.good & (np.abs(stated - found) > 1.0)).sum())
        return found, ended

    def _end(self, checks: RowChecks) -> pl.Series | None:
        if self.table.end is None or self.clock is None:
            return None
        return pl.Series(self.clock.parse(checks.frame.get_column(self.table.end)).latest)

    def workload(self, about: TraceSource) -> Workload:
        """Return all rows as a workload."""
        table, gathered = self.table, self.gathered
        content = ["submit", "gang_size", "serial_time_s", "asked_gpus", *table.texts]
        if table.job_id is None:
            rows = numbered(gathered.in_order(content), table.name)
        elif table.attempts:
            rows = merge_attempts(gathered, content)
        else:
            rows = each_id_once(
                gathered, unique="job_id", content=["submit", "job_id", *content[1:]]
            )
        if self.ends is not None:
            rows = self.ends.closed(rows)
        origin = about.origin
        if self.clock is None:
            rows = from_zero(rows.rename({"submit": "submit_s"}), gathered.notes)
            if self.unit == "s":
                doubt_seconds(rows, gathered.notes)
        else:
            rows, origin = since_first(
                rows.rename({"submit": "submit_us"}), "submit_us", self.clock
            )
            gathered.notes.extend(self.clock.notes())
        if self.lying:
            gathered.notes.append(
                f"{table.stated} is not {table.end} - {table.start} in {self.lying} rows: not used"
            )
        added = math.fsum(rows.get_column("whole_gpu_s").to_list())
        if added:
            gathered.notes.append(
                f"whole GPUs for fractions add {added:,.0f} GPU-seconds to the work of the jobs"
            )
        own = pl.col("job_id")
        app = pl.col("app_id").fill_null(own) if "app_id" in rows.columns else own
        rows = rows.with_columns(app.alias("app_id"))
        return workload_from_rows(
            rows, gathered, about.with_origin(origin), kept=list(self._kept(rows))
        )

    def _kept(self, rows: pl.DataFrame) -> Iterator[Problem]:
        table = self.table
        if self._fraction is not None:
            problem = replace(ROUNDED_UP, column=self._fraction)
            rounded = (pl.col("asked_gpus") != pl.col("gang_size")) & pl.col("gpu_milli").is_null()
            yield kept_problem(rows, rounded, problem, "asked")
        if table.status is not None:
            yield unknown_words(rows, table.status)
        if table.assumed is not None:
            yield table.assumed(rows)


def _alternatives(text: pl.Series) -> pl.Series:
    """``"A|B"`` without blanks and repetitions, in order."""
    if not text.str.contains("|", literal=True).any():
        return text
    parts = text.str.split("|").list.eval(pl.element().str.strip_chars().replace("", None))
    joined = parts.list.drop_nulls().list.unique().list.sort().list.join("|")
    return joined.replace("", None)
