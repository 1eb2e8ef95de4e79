"""Philly's machine list against its job log: the list gives many machines too few GPUs."""

from __future__ import annotations

import polars as pl

from themis.errors import TraceError
from themis.traces.philly_json import read_entries
from themis.traces.reader import Input, choice

__all__ = ["compared_with_log"]


def compared_with_log(machines: pl.DataFrame, name: str, log: Input, more: str) -> pl.DataFrame:
    """Return `machines` (machine, gpus, ...) in agreement with a job log.

    A machine has been seen with GPU ``gpu5`` if it has six. `more` says what happens to machines
    that were seen with more GPUs than listed: ``"stop"``, ``"raise"`` or ``"drop"``.

    Raises
    ------
    TraceError
        The log cannot be read, or `more` is ``"stop"`` and a machine was seen with more.
    """
    more = choice(name, "more", more, ("stop", "raise", "drop"))
    joined = machines.join(_seen(log), on="machine", how="left", maintain_order="left")
    over = joined.filter(pl.col("seen") > pl.col("gpus")).sort("entry", "machine")
    if more == "stop" and over.height:
        first = over.row(0, named=True)
        raise TraceError(
            f"{name}: machine {first['machine']!r} has {first['gpus']} GPUs, but entry "
            f"{first['entry']} of {log.name} uses {first['seen']}; {over.height} machines are "
            "like that: expected more='raise' or more='drop'"
        )
    fits = ~(pl.col("seen") > pl.col("gpus")).fill_null(value=False)
    chosen = joined.filter(fits) if more == "drop" else joined
    return chosen.with_columns(gpus=pl.max_horizontal("gpus", "seen")).select(machines.columns)


def _seen(log: Input) -> pl.DataFrame:
    """Return machine, seen (the GPUs that it must have) and the first entry that shows so many."""
    used = (
        read_entries(log)
        .select(pl.int_range(1, pl.len() + 1).alias("entry"), "attempts")
        .explode("attempts")
        .unnest("attempts")
        .explode("detail")
        .unnest("detail")
        .with_columns(count=pl.col("gpus").list.len())
        .explode("gpus")
    )
    index = pl.col("gpus").str.extract(r"(\d{1,4})$").cast(pl.Int64, strict=False) + 1
    sized = used.select(
        "entry", pl.col("ip").alias("machine"), pl.max_horizontal(index, "count").alias("seen")
    ).drop_nulls()
    sized = sized.sort("machine", "seen", "entry", descending=[False, True, False])
    return sized.group_by("machine", maintain_order=True).first()
