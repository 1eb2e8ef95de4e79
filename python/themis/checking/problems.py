"""What reading a trace found: rows in, jobs out, and every row that could not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from themis.checking.repairs import choices_left, chosen, given

__all__ = ["REJECTED", "Problem", "TraceReport", "problems_of"]

REJECTED: Mapping[str, pl.DataType] = {
    "line": pl.Int64(),
    "reason": pl.String(),
    "column": pl.String(),
    "value": pl.String(),
}
"""Columns of `TraceReport.rejected`, one row a row of the source that became no job of its own.

Where the trace has several files, ``file`` (String) comes after them.
"""

_LINES = 5
_VALUES = 3
SHOWN = 80
"""Characters of a value that are shown."""

_ACTIONS = {
    "earlier attempt": "its run is added to its job",
    "further row of a job": "left out: it is part of its job",
    "job step": "left out: it is part of its job",
    "partial execution": "left out: it is part of its job",
    "repeated row": "counted once",
    "repeated header": "left out",
}

_CONFLICTS = {
    "earliest": "the earliest row of the id is kept, this one left out",
    "latest": "the latest row of the id is kept, this one left out",
    "join": "its work is added to the earliest row of the id",
}

_REPAIRED = {
    "conflicting id": "repaired: a job of its own, numbered",
    "repeated row": "repaired: a job of its own, numbered",
    "negative duration": "repaired: ends as it starts",
    "end before start": "repaired: ends as it starts",
    "still running at the end": "repaired: runs to the last instant of the trace",
    "still running at the snapshot": "repaired: runs to the last instant of the trace",
    "fraction of a GPU": "repaired: takes whole GPUs for its duration",
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
    files
        The file of each of `lines`, where the trace has several.
    values
        Up to three of the values found there.
    action
        What the reader did.
    rejected
        Whether the rows were left out (else they became jobs).
    repairs
        What else could be done with them, as ``rule=choice`` (see
        :data:`themis.checking.repairs.RULES`).
    settled
        Whether the caller chose what is done with them.
    """

    name: str
    column: str = ""
    count: int = 0
    lines: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    action: str = "left out"
    rejected: bool = True
    repairs: tuple[str, ...] = ()
    settled: bool = False

    def repaired(self) -> Problem:
        """Return the class as one whose rows became jobs after all."""
        return replace(self, action=_REPAIRED[self.name], rejected=False)

    @property
    def places(self) -> tuple[str, ...]:
        """`lines` as text, with their files where there are several."""
        if not self.files:
            return tuple(map(str, self.lines))
        return tuple(f"{file}:{line}" for file, line in zip(self.files, self.lines, strict=True))

    def to_dict(self) -> dict[str, object]:
        """JSON-able form."""
        return {
            "name": self.name,
            "column": self.column or None,
            "count": self.count,
            "lines": list(self.lines),
            **({"files": list(self.files)} if self.files else {}),
            "values": list(self.values),
            "action": self.action,
            "rejected": self.rejected,
            "repairs": list(self.repairs),
            "settled": self.settled,
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
    by_place = [column for column in ("file", "line") if column in rejected.columns]
    groups = (
        rejected.sort(by_place)
        .group_by("reason", "column", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("line").head(_LINES).alias("lines"),
            pl.col(by_place[0]).head(_LINES).alias("files"),
            pl.col("value")
            .drop_nulls()
            .unique(maintain_order=True)
            .head(_VALUES)
            .str.head(SHOWN)
            .alias("values"),
        )
        .sort("count", "reason", "column", descending=[True, False, False])
    )
    found = [
        Problem(
            name=row["reason"],
            column=row["column"],
            count=row["count"],
            lines=tuple(row["lines"]),
            files=tuple(row["files"]) if len(by_place) > 1 else (),
            values=tuple(row["values"]),
            action=_action(row["reason"]),
            repairs=choices_left(row["reason"]),
            settled=given(row["reason"]) is not None,
        )
        for row in groups.iter_rows(named=True)
    ]
    return (*found, *(problem for problem in kept if problem.count))


def _action(reason: str) -> str:
    if reason == "conflicting id":
        return _CONFLICTS.get(chosen(reason) or "", "left out")
    return _ACTIONS.get(reason, "left out")
