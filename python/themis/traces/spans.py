"""Times that are numbers: units, second 0, and rows whose start or end the trace did not see."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.traces.rows import RowChecks

__all__ = ["UNITS", "doubt_seconds", "from_zero", "reject_outside"]

UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "min": 60.0}
"""Seconds of each unit of time."""

_MANY_S = 366 * 86400.0
_LONG_S = 7 * 86400.0


def reject_outside(checks: RowChecks, shown: str, submit: str, start: str, end: str) -> None:
    """Reject rows that began before the trace, were never scheduled, or had not ended.

    `shown` is the column that tells which job was never scheduled.
    """
    gone = {name: checks.missing(name) for name in (submit, start, end)}
    before = gone[submit] & gone[start] & ~gone[end]
    checks.reject(before, "began before the trace", end)
    checks.reject(~gone[submit] & gone[start], "never scheduled", shown)
    checks.reject(gone[end], "still running at the end", start)


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
    horizon = float((submit_s + run_s.to_numpy()).max() - submit_s.min())
    median = float(np.median(run_s.to_numpy()))
    if horizon > _MANY_S and median > _LONG_S:
        notes.append(
            f"read as seconds, the trace ends after {horizon / _MANY_S:.3g} years and its "
            f"median job runs {median / 86400:.3g} days: are these milliseconds (unit='ms')?"
        )
