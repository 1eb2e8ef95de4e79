"""Columns of one value are constants, and tell the same."""

from __future__ import annotations

import polars as pl
import pytest

from themis.schema.compact import compact


@pytest.mark.parametrize("rows", [0, 1, 1000, 1 << 17])
def test_a_compact_table_is_equal_and_smaller_where_it_is_large(rows: int) -> None:
    frame = pl.DataFrame(
        {
            "id": pl.int_range(rows, eager=True).cast(pl.String),
            "weight": pl.repeat(1.5, rows, eager=True),
            "user": pl.repeat(None, rows, dtype=pl.String, eager=True),
            "state": pl.repeat("done", rows, eager=True),
            "some": (pl.int_range(rows, eager=True) > 5).cast(pl.Int64),
            "first": pl.Series([None, *range(1, rows)][:rows], dtype=pl.Int64),
        }
    )
    kept = compact(frame)
    size = kept.estimated_size()  # looking at constants makes columns of them
    assert kept.equals(frame, null_equal=True)
    assert kept.schema == frame.schema
    assert kept.height == rows
    if rows >= 1 << 17:
        assert size <= frame.estimated_size() - 11 * rows  # of 8 and 4


def test_a_large_table_of_constants_alone_keeps_its_rows() -> None:
    frame = pl.DataFrame({"a": pl.repeat(1, 1 << 17, eager=True)})
    assert compact(frame).equals(frame)
