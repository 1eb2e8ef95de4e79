"""Distributions and time series of a run, small enough to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from themis.metrics.completion import run_span
from themis.metrics.gpu_time import microseconds, spans_us
from themis.metrics.occupancy import occupancy
from themis.metrics.statistics import Floats, present

__all__ = ["Curves", "cumulative_distribution", "curves_of", "usage_over_time"]

_POINTS = 400
_BINS = 300
_US = 1e6


@dataclass(frozen=True, eq=False)
class Curves:
    """What the charts of one run need.

    The distributions have the columns value and share (of the values at or below). `usage` has
    at_s (middle of a bin, seconds after the first arrival), utilisation in [0, 1], active_apps
    and waiting_apps, each a time-weighted mean over the bin. `occupancy` says who held the machines
    (:func:`themis.metrics.occupancy.occupancy`).
    """

    rho: pl.DataFrame
    app_completion_s: pl.DataFrame
    placement_score: pl.DataFrame
    offered_gpus: pl.DataFrame
    mean_c: pl.DataFrame
    gap: pl.DataFrame
    usage: pl.DataFrame
    occupancy: pl.DataFrame


def curves_of(frames: dict[str, pl.DataFrame]) -> Curves:
    """Draw the curves from the five tables of a result."""
    apps, auctions = frames["apps"], frames["auctions"]
    final = apps.filter(
        pl.col("rho").is_not_null() & ~pl.col("rho_is_bound").fill_null(value=False)
    )
    done = apps.filter(pl.col("state") == "done")
    start_s, end_s = run_span(apps, frames["usage"])
    return Curves(
        rho=cumulative_distribution(present(final.get_column("rho"))),
        app_completion_s=cumulative_distribution(
            present(done.select(pl.col("end_s") - pl.col("arrival_s")).to_series())
        ),
        placement_score=cumulative_distribution(present(apps.get_column("placement_score"))),
        offered_gpus=cumulative_distribution(present(auctions.get_column("offered_gpus"))),
        mean_c=cumulative_distribution(present(auctions.get_column("mean_c"))),
        gap=cumulative_distribution(present(auctions.get_column("gap"))),
        usage=usage_over_time(frames["usage"], start_s, end_s),
        occupancy=occupancy(frames["leases"], start_s, end_s),
    )


def cumulative_distribution(values: Floats, points: int = _POINTS) -> pl.DataFrame:
    """Share of `values` at or below a value, at no more than `points` of them.

    Every point is one of the values with its exact share; the smallest and largest are kept.
    """
    ordered, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / max(values.size, 1)
    if ordered.size > points:
        ranks = np.searchsorted(shares, np.linspace(shares[0], 1.0, points) - 1e-12)
        kept = np.unique(ranks)
        ordered, shares = ordered[kept], shares[kept]
    return pl.DataFrame(
        {"value": ordered, "share": shares}, schema={"value": pl.Float64, "share": pl.Float64}
    )


def usage_over_time(
    usage: pl.DataFrame, start_s: float | None, end_s: float | None, bins: int = _BINS
) -> pl.DataFrame:
    """Time-weighted means of `usage` over `bins` equal parts of [start_s, end_s]."""
    columns = ("at_s", "utilisation", "active_apps", "waiting_apps")
    if usage.is_empty() or start_s is None or end_s is None or end_s <= start_s:
        return pl.DataFrame(schema=dict.fromkeys(columns, pl.Float64))
    lengths = spans_us(usage, start_s, end_s)
    start, end = microseconds(pl.Series([start_s, end_s]))
    opening = max(int(microseconds(usage.get_column("at_s").head(1))[0]) - int(start), 0)
    knots = opening + np.concatenate([[0], np.cumsum(lengths)])
    edges = np.linspace(0.0, float(end - start), bins + 1)

    def integral(column: str) -> Floats:
        held = usage.get_column(column).to_numpy() * lengths
        return np.diff(np.interp(edges, knots, np.concatenate([[0], np.cumsum(held)])))

    total, width = integral("gpus_total"), edges[1]
    used = integral("gpus_used")
    return pl.DataFrame(
        {
            "at_s": (edges[:-1] + edges[1:]) / 2 / _US,
            "utilisation": np.divide(used, total, out=np.zeros_like(used), where=total > 0),
            "active_apps": integral("active_apps") / width,
            "waiting_apps": integral("waiting_apps") / width,
        }
    )
