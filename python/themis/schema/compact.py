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
    # A series of its own, because a table keeps what was made of its constants for looking at them.
    series = {name: frame.select(name).to_series() for name in frame.columns}
    alike = [pl.lit(s[0], s.dtype).alias(name) for name, s in series.items() if _is_constant(s)]
    return frame.with_columns(alike)


def _is_constant(series: pl.Series) -> bool:
    return series.null_count() == series.len() or series.eq_missing(series[0]).all()
