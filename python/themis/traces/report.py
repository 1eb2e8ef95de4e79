"""What reading a trace found: rows in, jobs out, and every row that could not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

__all__ = ["REJECTED", "Problem", "TraceReport", "problems_of"]

REJECTED: Mapping[str, pl.DataType] = {
    "line": pl.Int64(),
    "reason": pl.String(),
    "column": pl.String(),
    "value": pl.String(),
}
"""Columns of `TraceReport.rejected`, one row a row of the source that became no job."""

_LINES = 5
_VALUES = 3

_ACTIONS = {
    "repeated row": "counted once",
    "repeated header": "left out",
    "conflicting id": "the earliest row of the id is kept, this one left out",
}


@dataclass(frozen=True)
class Problem:
    """One class of trouble.

    Parameters
    ----------
    name
        Reason class, for example ``"missing value"``.
    column
        The column at fault in the source; empty for the row as a whole.
    count
        Rows of the class.
    lines
        Numbers of the first rows (at most 5): physical lines of a CSV file with the header as
        line 1, entries of a JSON array or rows of a Parquet table from 1.
    values
        Up to three of the values found there.
    action
        What the reader did.
    rejected
        Whether the rows were left out (else they became jobs).
    """

    name: str
    column: str = ""
    count: int = 0
    lines: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    action: str = "left out"
    rejected: bool = True

    def to_dict(self) -> dict[str, object]:
        """JSON-able form."""
        return {
            "name": self.name,
            "column": self.column or None,
            "count": self.count,
            "lines": list(self.lines),
            "values": list(self.values),
            "action": self.action,
            "rejected": self.rejected,
        }


@dataclass(frozen=True, eq=False)
class TraceReport:
    """Accounts of one reading: ``rows == jobs + rejected.height``.

    Parameters
    ----------
    rows
        Rows, records or entries of the source.
    jobs
        Jobs made of them.
    row_word
        What a number in `Problem.lines` counts: ``"line"``, ``"entry"`` or ``"row"``.
    problems
        Classes, rejected ones first, by falling count.
    rejected
        One row a rejected row, with the columns of :data:`REJECTED`.
    gpu_s_rows
        GPU-seconds of all rows whose GPUs and duration could be read.
    gpu_s_jobs
        GPU-seconds of the jobs.
    notes
        What else the reader decided or saw.
    """

    rows: int
    jobs: int
    row_word: str
    problems: tuple[Problem, ...]
    rejected: pl.DataFrame = field(repr=False)
    gpu_s_rows: float
    gpu_s_jobs: float
    notes: tuple[str, ...] = field(default=())


def problems_of(rejected: pl.DataFrame, kept: Sequence[Problem] = ()) -> tuple[Problem, ...]:
    """Classes of the rejected rows and the given classes of rows that were kept."""
    groups = (
        rejected.sort("line")
        .group_by("reason", "column", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("line").head(_LINES).alias("lines"),
            pl.col("value").drop_nulls().unique(maintain_order=True).head(_VALUES).alias("values"),
        )
        .sort("count", "reason", "column", descending=[True, False, False])
    )
    found = [
        Problem(
            name=row["reason"],
            column=row["column"],
            count=row["count"],
            lines=tuple(row["lines"]),
            values=tuple(row["values"]),
            action=_ACTIONS.get(row["reason"], "left out"),
        )
        for row in groups.iter_rows(named=True)
    ]
    return (*found, *(problem for problem in kept if problem.count))
