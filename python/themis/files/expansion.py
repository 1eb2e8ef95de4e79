"""How far the content of a file may go beyond its size: no bomb is unpacked."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from themis.errors import ThemisError

__all__ = ["PARQUET_ERRORS", "check_expansion", "check_parquet"]

PARQUET_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What polars raises about Parquet files that are damaged; some damage makes it panic."""

_FREE_BYTES = 256 << 20  # up to here a file may expand as it likes
_MOST_FOLD = 200  # times its stored bytes, beyond that; logs of clusters reach 30
_CELL_BYTES = 8


def check_expansion(
    expanded_bytes: int, stored_bytes: int, name: str, error: type[ThemisError]
) -> None:
    """Refuse a file whose content is out of proportion to its size.

    Raises
    ------
    ThemisError
        It has more than 256 MiB and more than 200 times what is stored. Of the kind `error`.
    """
    if expanded_bytes > max(_FREE_BYTES, _MOST_FOLD * stored_bytes):
        raise error(
            f"{name}: expands more than {_MOST_FOLD}-fold, beyond {_FREE_BYTES >> 20} MiB: "
            "expected less; if it is meant, unpack it first"
        )


def check_parquet(path: Path, error: type[ThemisError]) -> None:
    """Refuse a Parquet file whose rows are out of proportion to its size, before they are read.

    Raises
    ------
    ThemisError
        They are. Of the kind `error`.
    PolarsError
        It is no Parquet file.
    """
    rows = pl.scan_parquet(path, glob=False)
    cells = rows.select(pl.len()).collect().item() * len(rows.collect_schema())
    check_expansion(_CELL_BYTES * cells, path.stat().st_size, str(path), error)
