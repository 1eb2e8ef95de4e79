"""Who held the machines over time, coarse enough to draw."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.schema.workload import WHOLE_MILLI

__all__ = ["OCCUPANCY", "occupancy"]

OCCUPANCY: Mapping[str, type[pl.DataType]] = {
    "machine": pl.String,
    "from_s": pl.Float64,
    "to_s": pl.Float64,
    "app_id": pl.String,
    "share": pl.Float64,
}
"""Columns of :func:`occupancy`: seconds after the start, share of the machine's GPUs held."""

_MACHINES = 16
_BINS = 120
_US = 1_000_000
_LEVELS = 4


def occupancy(
    leases: pl.DataFrame,
    start_s: float | None,
    end_s: float | None,
    *,
    machines: int = _MACHINES,
    bins: int = _BINS,
) -> pl.DataFrame:
    """Return which app held most of a machine in each of `bins` equal parts of [start_s, end_s].

    Parameters
    ----------
    leases
        The table of a result.
    start_s, end_s
        First and last instant; None where nothing happened.
    machines
        How many at most: evenly picked from all that were ever leased, in natural order.
    bins
        Parts of the time.

    Returns
    -------
    polars.DataFrame
        Columns of :data:`OCCUPANCY`, by machine and time; parts in which nobody held a GPU are
        left out, and equal parts that follow one another are one row. `share` is what all apps
        held of the most GPUs that were ever leased at once on that machine, in quarters rounded
        up. Ties between apps: the smaller id.
    """
    if leases.is_empty() or start_s is None or end_s is None or end_s <= start_s:
        return pl.DataFrame(schema=OCCUPANCY)
    lanes = _picked(leases, machines)
    mine = leases.filter(pl.col("machine").is_in(lanes))
    parts = _levels(_held(mine, lanes, start_s, end_s, bins), mine, lanes, (end_s - start_s) / bins)
    width_s = (end_s - start_s) / bins
    return _bars(parts).select(
        machine=pl.col("lane").replace_strict(
            list(range(len(lanes))), lanes, return_dtype=pl.String
        ),
        from_s=pl.col("first") * width_s,
        to_s=(pl.col("last") + 1) * width_s,
        app_id="app_id",
        share=pl.col("level") / _LEVELS,
    )


def _picked(leases: pl.DataFrame, most: int) -> list[str]:
    names = sorted(leases.get_column("machine").unique().to_list(), key=_natural)
    places = np.unique(np.linspace(0, len(names) - 1, most).round().astype(np.int64))
    return [names[at] for at in places.tolist()]


def _levels(
    held: pl.DataFrame, leases: pl.DataFrame, lanes: list[str], width_s: float
) -> pl.DataFrame:
    """Return, by lane and part, the app that held most and how full the machine was."""
    last = leases.select("machine", last=pl.col("gpu_first") + pl.col("gpus"))
    sizes = dict(last.group_by("machine").agg(pl.col("last").max()).iter_rows())
    size = pl.col("lane").replace_strict(
        list(range(len(lanes))), [sizes[name] for name in lanes], return_dtype=pl.Int64
    )
    full = pl.col("gpu_us") / (size * width_s * _US)
    return (
        held.sort("lane", "bin", "gpu_us", "app_id", descending=[False, False, True, False])
        .group_by("lane", "bin", maintain_order=True)
        .agg(pl.col("app_id").first(), pl.col("gpu_us").sum())
        .with_columns(level=(full * _LEVELS - 1e-6).ceil().clip(1, _LEVELS).cast(pl.Int64))
    )


def _bars(parts: pl.DataFrame) -> pl.DataFrame:
    """Join equal parts that follow one another."""
    same = [pl.col(name) == pl.col(name).shift() for name in ("lane", "app_id", "level")]
    goes_on = pl.all_horizontal(*same, pl.col("bin") == pl.col("bin").shift() + 1)
    return (
        parts.with_columns(bar=(~goes_on.fill_null(value=False)).cum_sum())
        .group_by("bar", maintain_order=True)
        .agg(
            pl.col("lane", "app_id", "level").first(),
            first=pl.col("bin").first(),
            last=pl.col("bin").last(),
        )
    )


def _held(
    leases: pl.DataFrame, lanes: list[str], start_s: float, end_s: float, bins: int
) -> pl.DataFrame:
    """Return GPU-microseconds by lane, part and app: whole numbers, whose sums have no order."""
    edges = np.round(np.linspace(start_s, end_s, bins + 1) * _US).astype(np.int64)
    start = np.round(leases.get_column("start_s").to_numpy() * _US).astype(np.int64)
    end = np.round(leases.get_column("end_s").to_numpy() * _US).astype(np.int64)
    first = np.clip(np.searchsorted(edges, start, "right") - 1, 0, bins - 1)
    last = np.clip(np.searchsorted(edges, end, "left") - 1, 0, bins - 1)
    spans = np.maximum(last - first + 1, 1)
    row = np.repeat(np.arange(leases.height), spans)
    part = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans) + first[row]
    length = np.minimum(end[row], edges[part + 1]) - np.maximum(start[row], edges[part])
    length = np.maximum(length, 0)
    milli = leases.select(pl.col("gpus") * pl.col("gpu_milli")).to_series().to_numpy()
    whole, rest = np.divmod(milli, WHOLE_MILLI)
    lane = leases.get_column("machine").replace_strict(
        lanes, list(range(len(lanes))), return_dtype=pl.Int64
    )
    expanded = pl.DataFrame(
        {
            "lane": lane[row],
            "bin": part,
            "app_id": leases.get_column("app_id")[row],
            "gpu_us": length * whole[row] + length * rest[row] // WHOLE_MILLI,
        }
    )
    return (
        expanded.filter(pl.col("gpu_us") > 0)
        .group_by("lane", "bin", "app_id")
        .agg(pl.col("gpu_us").sum())
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key by which m2 comes before m10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]
