"""Cells into numbers, times and ids, with the first problem of every row on record."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.errors import TraceError
from themis.traces.repairs import choices_left, chosen, given
from themis.traces.report import REJECTED, Problem, TraceReport, problems_of
from themis.traces.same_ids import each_id_once
from themis.traces.schema import MAX_GPUS, MAX_TIME_S, MAX_WORK_GPU_S, all_distinct

__all__ = ["Floats", "Gathered", "Mask", "RowChecks", "is_missing", "kept_problem"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MISSING = ("", "na", "n/a", "<na>", "none", "null", "-")
"""Cells that mean that there is no value, in lower case."""

_MISSING_IN_ANY_CASE = [
    "".join(letters)
    for word in MISSING
    for letters in itertools.product(*({letter, letter.upper()} for letter in word))
]


_REJECTED = {**REJECTED, "file": pl.String()}


class _Class(NamedTuple):
    """A class of trouble: its name, the column at fault, the values to show."""

    reason: str
    column: str
    values: pl.Series | None


@dataclass
class RowChecks:
    """Reads the columns of some rows; a row is good until a check rejects it.

    The first check that rejects a row gives its reason, so the order of the calls is the order of
    the reasons.

    Parameters
    ----------
    frame
        The rows as found in the source; text has no blanks around it.
    line
        Int64, number of each row in its file.
    file
        Label of the file, where there are several.
    """

    frame: pl.DataFrame
    line: npt.NDArray[np.int64]
    file: str | None = None
    _code: npt.NDArray[np.int16] = field(init=False)
    _classes: list[_Class] = field(init=False, default_factory=list)
    _repairs: list[tuple[_Class, Mask]] = field(init=False, default_factory=list)
    _zero: Mask = field(init=False)

    def __post_init__(self) -> None:
        self._code = np.zeros(self.frame.height, dtype=np.int16)
        self._zero = np.zeros(self.frame.height, dtype=np.bool_)

    @property
    def good(self) -> Mask:
        """Rows that no check has rejected so far."""
        mask: Mask = self._code == 0
        return mask

    def reject(
        self, bad: Mask, reason: str, column: str = "", values: pl.Series | None = None
    ) -> None:
        """Reject good rows where `bad` holds; `values` are shown, the column's cells by default.

        Where the repair ``zero`` was chosen the rows stay good, and will have no work.
        """
        found = bad & (self._code == 0)
        if not found.any():
            return
        if values is None and column:
            values = self.frame.get_column(column)
        if chosen(reason) == "zero":
            self._zero |= found
            self._repairs.append((_Class(reason, column, values), found))
            return
        self._classes.append(_Class(reason, column, values))
        self._code[found] = len(self._classes)

    def repair(
        self, which: Mask, reason: str, column: str, values: pl.Series | None = None
    ) -> None:
        """List the good rows of `which` as saved by a repair."""
        shown = self.frame.get_column(column) if values is None else values
        self._repairs.append((_Class(reason, column, shown), which & self.good))

    @property
    def without_work(self) -> Mask:
        """Rows that a repair leaves no work."""
        return self._zero

    def rejected(self) -> pl.DataFrame:
        """Rejected rows in the columns of `report.REJECTED` and `file`."""
        return self._listed(
            (found, self._code == index) for index, found in enumerate(self._classes, start=1)
        )

    def refuse_any(self, name: str, row_word: str = "line") -> None:
        """Raise for the first rejected row that is not empty.

        Raises
        ------
        TraceError
            Names the file (`name`), row, column and value.
        """
        rejected = self.rejected().filter(pl.col("reason") != "empty line")
        if rejected.height:
            row = rejected.sort("line").row(0, named=True)
            where = f" in column {row['column']!r}" if row["column"] else ""
            raise TraceError(
                f"{name}, {row_word} {row['line']}: {row['reason']}{where}: {row['value']!r}"
            )

    def repaired(self) -> pl.DataFrame:
        """Good rows that a repair has saved, in the same columns."""
        return self._listed((found, which & self.good) for found, which in self._repairs)

    def _listed(self, classes: Iterable[tuple[_Class, Mask]]) -> pl.DataFrame:
        parts = [pl.DataFrame(schema=_REJECTED)]
        for (reason, column, values), which in classes:
            rows = np.flatnonzero(which)
            shown = (
                pl.Series([None] * len(rows), dtype=pl.String)
                if values is None
                else values.gather(rows).cast(pl.String)
            )
            parts.append(
                pl.DataFrame(
                    {
                        "line": self.line[rows],
                        "reason": [reason] * len(rows),
                        "column": [column] * len(rows),
                        "value": shown,
                        "file": [self.file] * len(rows),
                    },
                    schema=_REJECTED,
                )
            )
        return pl.concat(parts)

    def missing(self, column: str) -> Mask:
        """Which cells of a column hold no value."""
        series = self.frame.get_column(column)
        if series.dtype != pl.String:
            return series.is_null().to_numpy()
        return is_missing(series).to_numpy()

    def text(self, column: str, *, required: bool = False) -> pl.Series:
        """Strings of a column; null where there is no value, which `required` rejects."""
        series = self.frame.get_column(column).cast(pl.String)
        gone = is_missing(series)
        if required:
            self.reject(gone.to_numpy(), "missing value", column)
        if not gone.any():
            return series
        return pl.select(pl.when(~gone).then(series).alias(column)).to_series()

    def number(self, column: str, *, required: bool = True) -> Floats:
        """Read finite numbers; NaN in rejected rows and, unless `required`, where missing."""
        series = self.frame.get_column(column)
        if series.dtype.is_numeric():
            gone = series.is_null()
            values = series.cast(pl.Float64, strict=False)
        else:
            text = series.cast(pl.String)
            gone = is_missing(text)
            values = text.cast(pl.Float64, strict=False)
        missing = gone.to_numpy()
        found: Floats = values.fill_null(float("nan")).to_numpy().copy()
        unreadable = values.is_null().to_numpy() & ~missing
        if required:
            self.reject(missing, "missing value", column)
        self.reject(unreadable, "not a number", column)
        self.reject(~np.isfinite(found) & ~missing, "not a finite number", column)
        found[~np.isfinite(found)] = np.nan
        return found

    def seconds(
        self,
        column: str,
        *,
        required: bool = True,
        scale: float = 1.0,
        limit_s: float = MAX_TIME_S,
    ) -> Floats:
        """Non-negative durations of a column times `scale`, in seconds."""
        found = self.number(column, required=required) * scale
        self.reject(found < 0, "negative duration", column)
        self.reject(found > limit_s, "number too large", column)
        return found

    def gpus(self, column: str, *, required: bool = True) -> Floats:
        """Whole, non-negative numbers of GPUs."""
        found = self.number(column, required=required)
        self.reject(found < 0, "negative number of GPUs", column)
        self.reject(found > MAX_GPUS, "number too large", column)
        part = ~np.isnan(found) & (found != np.floor(found))
        if chosen("fraction of a GPU") != "round_up":
            self.reject(part, "fraction of a GPU", column)
            return found
        if part.any():
            shown = _Class("fraction of a GPU", column, self.frame.get_column(column))
            self._repairs.append((shown, part))
        return np.ceil(found)

    def work(self, column: str, serial_time_s: Floats) -> None:
        """Reject rows with more work than is believed; `column` names the figure at fault."""
        self.reject(serial_time_s > MAX_WORK_GPU_S, "too much work", column)


def is_missing(text: pl.Series) -> pl.Series:
    """Which cells hold no value."""
    return text.is_null() | text.is_in(_MISSING_IN_ANY_CASE).fill_null(value=False)


class Gathered:
    """Accepted rows and rejected rows of all blocks of a source.

    Accepted rows have `line` and `file` (null for a lone file) besides the reader's own columns.

    Parameters
    ----------
    name
        The file, for messages.
    row_word
        What a line number counts: ``"line"``, ``"entry"`` or ``"row"``.
    """

    def __init__(self, name: str, row_word: str = "line") -> None:
        self.name = name
        self.row_word = row_word
        self.notes: list[str] = []
        self._rows = 0
        self._accepted: list[pl.DataFrame] = []
        self._rejected: list[pl.DataFrame] = []
        self._repaired: list[pl.DataFrame] = []
        self._lost_gpu_s: list[float] = []

    def add(
        self, checks: RowChecks, columns: Mapping[str, pl.Series | Floats], work: Floats
    ) -> None:
        """Take the good rows of `columns`; `work` is each row's GPU-seconds, NaN if unknown."""
        good, none = checks.good, checks.without_work
        self._rows += len(good)
        self._repaired.append(checks.repaired())
        if none.any():
            work = np.where(none, 0.0, work)
            serial = np.asarray(columns["serial_time_s"], dtype=np.float64)
            columns = {**columns, "serial_time_s": np.where(none, 0.0, serial)}
        rejected = checks.rejected()
        if rejected.height:
            self._rejected.append(rejected)
            lost = work[~good]
            self._lost_gpu_s.extend(lost[np.isfinite(lost) & (lost >= 0)].tolist())
        frame = pl.DataFrame({**columns, "line": checks.line}).with_columns(
            pl.lit(checks.file, dtype=pl.String).alias("file")
        )
        self._accepted.append(frame if good.all() else frame.filter(pl.Series(good)))

    def rows(self, *, unique: str | None, content: Sequence[str]) -> pl.DataFrame:
        """Return accepted rows, each id once, sorted by `content`.

        Of rows that agree in all of `content` one is kept; of rows that share the id `unique` but
        differ, the first in the order of `content`, unless a repair was chosen. With `unique` None
        no row is a repetition.

        Raises
        ------
        TraceError
            No row is left.
        """
        frame = pl.concat(self._accepted) if self._accepted else pl.DataFrame()
        if frame.is_empty():
            raise TraceError(self._no_rows())
        if unique is not None and all_distinct(frame.get_column(unique)):
            return frame.sort(*content[: content.index(unique) + 1])
        frame = frame.sort(*content, "file", "line")
        if unique is None:
            return frame
        return each_id_once(frame, self, unique=unique, content=content)

    def keep(self, rows: pl.DataFrame, reason: str, column: str) -> None:
        """Report accepted rows that a repair keeps; `column` has the values shown."""
        if rows.is_empty():
            return
        self._repaired.append(_listed_rows(rows, reason, column))

    def reject(self, rows: pl.DataFrame, reason: str, column: str, *, lost: bool = True) -> None:
        """Report accepted rows that become no job of their own; `column` has the values shown.

        Their work counts as left out unless it is not `lost`, because another job has it.
        """
        if rows.is_empty():
            return
        self._rejected.append(_listed_rows(rows, reason, column))
        if lost:
            work = rows.filter(pl.col("gang_size") > 0).get_column("serial_time_s")
            self._lost_gpu_s.extend(work.to_list())

    def rejected_any(self, reasons: Sequence[str]) -> bool:
        """Whether a row was rejected for one of `reasons`."""
        return any(part.get_column("reason").is_in(list(reasons)).any() for part in self._rejected)

    def report(self, jobs: pl.DataFrame, kept: Sequence[Problem] = ()) -> TraceReport:
        """Close the accounts, once `jobs` are final."""
        rejected = _by_place(self._rejected)
        saved = [problem.repaired() for problem in problems_of(_by_place(self._repaired))]
        work = jobs.filter(pl.col("gang_size") > 0).get_column("serial_time_s").to_list()
        return TraceReport(
            rows=self._rows,
            jobs=jobs.height,
            row_word=self.row_word,
            problems=problems_of(rejected, [*saved, *kept]),
            rejected=rejected,
            gpu_s_rows=math.fsum([*work, *self._lost_gpu_s]),
            gpu_s_jobs=math.fsum(work),
            notes=tuple(self.notes),
        )

    def _no_rows(self) -> str:
        rejected = _by_place(self._rejected)
        if rejected.is_empty():
            return f"{self.name}: no rows after the header: expected at least one job"
        worst = problems_of(rejected)[0]
        where = f" in column {worst.column!r}" if worst.column else ""
        value = f", for example {worst.values[0]!r}" if worst.values else ""
        return (
            f"{self.name}: none of the {self._rows} rows can be used: {worst.count} have a "
            f"{worst.name}{where} (first at {self.row_word} {worst.places[0]}{value})"
        )


def _listed_rows(rows: pl.DataFrame, reason: str, column: str) -> pl.DataFrame:
    """Return accepted rows in the columns of `report.REJECTED` and `file`."""
    return rows.select(
        "line",
        pl.lit(reason).alias("reason"),
        pl.lit(column).alias("column"),
        pl.col(column).cast(pl.String).alias("value"),
        "file",
    )


def _by_place(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All parts by file and line; without `file` for a lone file."""
    found = pl.concat([pl.DataFrame(schema=_REJECTED), *parts]).sort("file", "line")
    lone = found.get_column("file").null_count() == found.height
    return found.drop("file") if lone else found


def kept_problem(
    rows: pl.DataFrame, which: pl.Expr, problem: Problem, shown: str | None = None
) -> Problem:
    """`problem` with the figures of the rows where `which` holds, which became jobs all the same.

    `shown` is the column whose values are shown.
    """
    found = rows.filter(which).sort("file", "line")
    first = found.head(5)
    values: list[str] = []
    if shown is not None:
        values = found.get_column(shown).drop_nulls().unique(maintain_order=True).head(3).to_list()
    return replace(
        problem,
        count=found.height,
        lines=tuple(first.get_column("line").to_list()),
        files=tuple(first.get_column("file").drop_nulls().to_list()),
        values=tuple(values),
        rejected=False,
        repairs=problem.repairs or choices_left(problem.name),
        settled=given(problem.name) is not None,
    )
