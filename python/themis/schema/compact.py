"""Large tables in less memory: a column in which every row has the same value keeps it once."""

from __future__ import annotations

import polars as pl

__all__ = ["compact"]

_MANY = 1 << 16


def compact(frame: pl.DataFrame) -> pl.DataFrame:
    """Return an equal table, in which columns of one value (or of nulls only) are constants.

    That is half of the columns of a workload or result, as a rule. Tables of fewer than 65,536 rows
    stay as they are.
    """
    if frame.height < _MANY:
        return frame
    alike = []
    for name in frame.columns:
        # Of a table of its own, since a table keeps what was made of its constants to look at them.
        series = frame.select(name).to_series()
        if _is_constant(series):
            alike.append(pl.lit(series[0], series.dtype).alias(name))
    return frame.with_columns(alike)


def _is_constant(series: pl.Series) -> bool:
    return series.null_count() == series.len() or series.eq_missing(series[0]).all()
