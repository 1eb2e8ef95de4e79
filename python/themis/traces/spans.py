"""Times that are numbers: units, second 0, and rows whose start or end the trace did not see."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.checking.repairs import chosen
from themis.traces.rows import Floats, Mask, RowChecks

__all__ = ["UNITS", "OpenEnds", "doubt_seconds", "from_zero", "open_ends", "reject_outside"]

UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "min": 60.0}
"""Seconds of each unit of time."""

_MANY_S = 366 * 86400.0
_LONG_S = 86400.0


_RUNNING = "still running at the end"


def reject_outside(checks: RowChecks, shown: str, submit: str, start: str, end: str) -> Mask:
    """Reject rows that began before the trace, were never scheduled, or had not ended.

    `shown` is the column that tells which job was never scheduled. Return the rows that had not
    ended where they stay, by the repair ``still_running=to_the_end``: their end is, for now, their
    start (see :class:`OpenEnds`).
    """
    gone = {name: checks.missing(name) for name in (submit, start, end)}
    before = gone[submit] & gone[start] & ~gone[end]
    checks.reject(before, "began before the trace", end)
    checks.reject(~gone[submit] & gone[start], "never scheduled", shown)
    still = gone[end] & checks.good
    if chosen(_RUNNING) != "to_the_end":
        checks.reject(still, _RUNNING, start)
        return np.zeros_like(still)
    checks.repair(still, _RUNNING, start)
    ends = pl.when(pl.Series(still)).then(start).otherwise(end)
    checks.frame = checks.frame.with_columns(ends.alias(end))
    return still


class OpenEnds:
    """The last instant of a trace, up to which jobs run that had not ended.

    Instants are seconds of any one clock.
    """

    def __init__(self) -> None:
        self._last = -np.inf

    def columns(
        self, checks: RowChecks, still: Mask, submit: Floats, start: Floats, end: Floats
    ) -> dict[str, pl.Series | Floats]:
        """Return the columns that :meth:`closed` needs of rows of which `still` had not ended."""
        seen = np.concatenate([times[checks.good] for times in (submit, start, end)])
        self._last = max(self._last, float(seen[np.isfinite(seen)].max(initial=-np.inf)))
        return {"still": pl.Series(still), "began": start}

    def closed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """`rows` with the work of those jobs up to the last instant."""
        left = self._last - pl.col("began")
        more = pl.when("still").then(left * pl.col("gang_size").clip(1)).otherwise(0.0)
        return rows.with_columns(pl.col("serial_time_s") + more)


def open_ends() -> OpenEnds | None:
    """Return the last instant to be found, if jobs that had not ended run up to it."""
    return OpenEnds() if chosen(_RUNNING) == "to_the_end" else None


def from_zero(rows: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """`rows` with `submit_s` shifted so that none is negative, with a note if one was."""
    first = float(rows.get_column("submit_s").to_numpy().min())
    if first >= 0:
        return rows
    notes.append(f"all times were shifted by {-first:g} s: one was negative")
    return rows.with_columns(pl.col("submit_s") - first)


def doubt_seconds(rows: pl.DataFrame, notes: list[str]) -> None:
    """Note times, read as seconds, that look like milliseconds."""
    run_s = rows.get_column("serial_time_s") / rows.get_column("gang_size").clip(1)
    submit_s = rows.get_column("submit_s").to_numpy()
    horizon = float((submit_s + run_s.to_numpy()).max())
    median = float(np.median(run_s.to_numpy()))
    if horizon > _MANY_S and median > _LONG_S:
        notes.append(
            f"read as seconds, the trace ends after {horizon / _MANY_S:.3g} years and its "
            f"median job runs {median / 86400:.3g} days: are these milliseconds (unit='ms')?"
        )
