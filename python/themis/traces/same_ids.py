"""Rows that share the id of a job: repetitions, conflicts, and what the repairs make of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from themis.checking.repairs import chosen, given
from themis.schema.workload import all_distinct
from themis.traces.attempts import attempts_joined, numbered_again
from themis.traces.gathered import Gathered

__all__ = ["each_id_once"]

_SUMMED = ("serial_time_s", "whole_gpu_s")


def each_id_once(gathered: Gathered, *, unique: str, content: Sequence[str]) -> pl.DataFrame:
    """Return accepted rows, each id once, sorted by `content`; the rest is reported.

    Of rows that agree in all of `content` one is kept. Rows that share the id `unique` but differ
    are attempts of one job, jobs whose id was used again (see :mod:`themis.traces.attempts`), or in
    conflict: then the first in the order of `content` is kept, unless a repair was chosen.

    Raises
    ------
    TraceError
        No row is left.
    """
    frame = gathered.accepted()
    if all_distinct(frame.get_column(unique)):
        return frame.sort(*content[: content.index(unique) + 1])
    return _settled(frame.sort(*content, "file", "line"), gathered, unique, content)


def _settled(
    frame: pl.DataFrame, gathered: Gathered, unique: str, content: Sequence[str]
) -> pl.DataFrame:
    again = ~pl.struct(content).is_first_distinct()
    copies = frame.filter(again)
    separate = chosen("repeated row") == "separate"
    (gathered.keep if separate else gathered.reject)(copies, "repeated row", unique)
    frame = frame.filter(~again)
    if given("conflicting id") is None:
        frame = attempts_joined(frame, gathered).sort(*content, "file", "line")
    frame = _without_conflicts(frame, gathered, unique)
    if separate:
        frame = pl.concat([frame, copies]).sort(*content, "file", "line")
    return numbered_again(frame, unique)


def _without_conflicts(frame: pl.DataFrame, gathered: Gathered, unique: str) -> pl.DataFrame:
    """Rows that differ although they share an id, settled as the repair says."""
    choice = chosen("conflicting id")
    latest = choice == "latest"
    stays = pl.col(unique).is_last_distinct() if latest else pl.col(unique).is_first_distinct()
    others = frame.filter(~stays)
    if choice == "separate":
        gathered.keep(others, "conflicting id", unique)
        return frame
    gathered.reject(others, "conflicting id", unique, lost=choice != "join")
    return (_joined(frame, unique) if choice == "join" else frame).filter(stays)


def _joined(frame: pl.DataFrame, unique: str) -> pl.DataFrame:
    """Give every row of an id the work of all its rows."""
    ids = frame.get_column(unique)
    several = frame.filter(ids.is_duplicated())
    if several.is_empty():
        return frame
    for column in _SUMMED:
        if column in frame.columns:
            work: dict[str, list[float]] = {}
            for name, value in several.select(unique, column).iter_rows():
                work.setdefault(name, []).append(value)
            total = {name: math.fsum(values) for name, values in work.items()}
            joined = ids.replace_strict(total, default=None, return_dtype=pl.Float64)
            frame = frame.with_columns(joined.fill_null(frame.get_column(column)).alias(column))
    return frame
