"""Capacity over time: machines that join, leave, fail and are repaired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.errors import ClusterError
from themis.nearest import nearest
from themis.schema.workload import MAX_TIME_S

__all__ = [
    "CAPACITY",
    "CAUSES",
    "capacity_columns",
    "checked_capacity",
    "no_changes",
    "whole_rows",
]

CAPACITY: dict[str, pl.DataType] = {
    "machine": pl.String(),
    "at_s": pl.Float64(),
    "gpus": pl.Int64(),
    "cause": pl.String(),
}
"""Columns of a capacity timeline."""

CAUSES = ("planned", "evicted", "failure", "repair")
"""Why a machine's GPUs change. The core knows them by position."""


def no_changes() -> pl.DataFrame:
    """Return the timeline of a cluster that has all of its machines at all times."""
    return pl.DataFrame(schema=CAPACITY)


def whole_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return all columns in order; a change is planned unless its row says otherwise."""
    if "cause" not in frame.columns:
        frame = frame.with_columns(cause=pl.lit("planned"))
    return frame.select(
        pl.col(name).cast(kind, strict=True) for name, kind in CAPACITY.items()
    ).with_columns(pl.col("cause").fill_null("planned"))


def checked_capacity(frame: pl.DataFrame, machines: pl.DataFrame) -> pl.DataFrame:
    """Return a timeline in its canonical form: all columns, sorted by (at_s, machine).

    Parameters
    ----------
    frame
        Columns machine, at_s and gpus; optional cause ("planned" where absent or null).
    machines
        The cluster's machines: machine (String) and gpus (Int64: the most that it ever has).

    Raises
    ------
    ClusterError
        A column is missing, unknown or of another type; a machine is unknown, a number is out of
        range, a cause is unknown, or two rows say what a machine has at one instant.
    """
    if not isinstance(frame, pl.DataFrame):
        raise ClusterError(f"capacity is {frame!r}: expected a polars frame of changes")
    unknown = [column for column in frame.columns if column not in CAPACITY]
    missing = [column for column in ("machine", "at_s", "gpus") if column not in frame.columns]
    if missing or unknown:
        what, column = ("missing", missing[0]) if missing else ("unknown", unknown[0])
        raise ClusterError(f"capacity: column {column!r} is {what}: expected {', '.join(CAPACITY)}")
    gpus = frame.get_column("gpus")
    if gpus.dtype == pl.Boolean or (gpus.dtype.is_float() and (gpus % 1 != 0).any()):
        raise ClusterError("capacity: gpus is no whole number: expected GPUs of the machine")
    try:
        full = whole_rows(frame)
    except pl.exceptions.PolarsError as error:
        raise ClusterError(f"capacity: {str(error).splitlines()[0]}") from error
    most = dict(machines.select("machine", "gpus").iter_rows())
    for row, change in enumerate(full.iter_rows(named=True)):
        problem = _problem(change, most)
        if problem is not None:
            raise ClusterError(f"capacity: row {row}: {problem}")
    again = full.filter(full.select("machine", "at_s").is_duplicated())
    if again.height:
        machine, at_s = again.sort("at_s", "machine").select("machine", "at_s").row(0)
        raise ClusterError(
            f"capacity: machine {machine!r} stands twice at {at_s:g} s: expected one"
        )
    return full.sort("at_s", "machine")


def capacity_columns(changes: pl.DataFrame, machines: pl.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """Return a checked timeline as the compiled core takes it.

    Arrays at_us (int64), machine (uint32: position in `machines`), gpus (uint32) and cause (uint8:
    position in :data:`CAUSES`).
    """
    positions = {name: row for row, name in enumerate(machines.get_column("machine"))}
    places = {name: row for row, name in enumerate(CAUSES)}
    return {
        "at_us": np.rint(changes.get_column("at_s").to_numpy() * 1e6).astype(np.int64),
        "machine": np.array([positions[name] for name in changes["machine"]], dtype=np.uint32),
        "gpus": changes.get_column("gpus").to_numpy().astype(np.uint32),
        "cause": np.array([places[name] for name in changes["cause"]], dtype=np.uint8),
    }


def _problem(change: dict[str, object], most: dict[str, int]) -> str | None:
    """Return what is wrong with a row, if anything."""
    for column, value in change.items():
        if value is None:
            return f"{column} is missing"
    name, at_s, gpus, cause = (change[column] for column in CAPACITY)
    if name not in most:
        return f"machine {name!r} is unknown{_near(str(name), most)}: expected one of the cluster's"
    if not isinstance(at_s, float) or not abs(at_s) <= MAX_TIME_S:
        return f"at_s is {at_s}: expected seconds on the workload's clock"
    if not isinstance(gpus, int) or not 0 <= gpus <= most[str(name)]:
        return f"machine {name!r}: gpus is {gpus}: expected 0 to its {most[str(name)]} GPUs"
    if cause not in CAUSES:
        return f"cause is {cause!r}: expected one of {', '.join(CAUSES)}"
    return None


def _near(name: str, known: Iterable[str]) -> str:
    return nearest(name, list(known)[:1000])
