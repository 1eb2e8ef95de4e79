"""The rows of all blocks of a source, and the accounts of those that became no job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from themis.checking.problems import Problem, TraceReport, problems_of
from themis.checking.repairs import choices_left, given
from themis.errors import TraceError
from themis.traces.rows import LISTED, Floats, RowChecks

__all__ = ["Gathered", "kept_problem"]


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

    def accepted(self) -> pl.DataFrame:
        """Hand over accepted rows as they came; none are left here, where they would stand twice.

        Raises
        ------
        TraceError
            No row is left.
        """
        frame = pl.concat(self._accepted) if self._accepted else pl.DataFrame()
        self._accepted.clear()
        if frame.is_empty():
            raise TraceError(self._no_rows())
        return frame

    def in_order(self, content: Sequence[str]) -> pl.DataFrame:
        """Hand over accepted rows sorted by `content`, none a repetition; raises the same."""
        return self.accepted().sort(*content, "file", "line")

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
            f"{self.name}: none of the {self._rows} rows can be used: {worst.count} x "
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
    found = pl.concat([pl.DataFrame(schema=LISTED), *parts]).sort("file", "line")
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
