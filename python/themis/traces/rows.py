"""Cells into numbers, times and ids, with the first problem of every row on record."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.checking.problems import REJECTED
from themis.checking.repairs import chosen
from themis.errors import TraceError
from themis.schema.workload import MAX_GPUS, MAX_TIME_S, MAX_WORK_GPU_S

__all__ = ["LISTED", "Floats", "Mask", "RowChecks", "is_missing"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MISSING = ("", "na", "n/a", "<na>", "none", "null", "-")
"""Cells that mean that there is no value, in lower case."""

_MISSING_IN_ANY_CASE = [
    "".join(letters)
    for word in MISSING
    for letters in itertools.product(*({letter, letter.upper()} for letter in word))
]

_TRUTH = {"true": True, "false": False, "1": True, "0": False}

LISTED: Mapping[str, pl.DataType] = {**REJECTED, "file": pl.String()}
"""Columns of a list of rows that were rejected or repaired."""


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
        parts = [pl.DataFrame(schema=LISTED)]
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
                    schema=LISTED,
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

    def flag(self, column: str) -> pl.Series:
        """Truth values of a column, true or false in any case, 1 or 0; null where there is none."""
        text = self.text(column).str.to_lowercase()
        found = text.replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean)
        unreadable = found.is_null() & text.is_not_null()
        self.reject(unreadable.to_numpy(), "neither true nor false", column)
        return found

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

    def gpus(self, column: str, *, required: bool = True, kept: Mask | None = None) -> Floats:
        """Whole, non-negative numbers of GPUs; fractions in the rows of `kept` stay."""
        found = self.number(column, required=required)
        self.reject(found < 0, "negative number of GPUs", column)
        self.reject(found > MAX_GPUS, "number too large", column)
        part = ~np.isnan(found) & (found != np.floor(found))
        if kept is not None:
            part &= ~kept
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
