"""Figures of the auctions of a run."""

from __future__ import annotations

import polars as pl

from themis.metrics.statistics import exact_sum, mean, present, quantile

__all__ = ["auction_metrics"]


def auction_metrics(auctions: pl.DataFrame) -> dict[str, float | int | None]:
    """Count, bidders, offers, payment factors c, leftovers and certified gaps of the auctions.

    c is the share of its value that a winner keeps (Mahajan et al., NSDI 2020, section 5.1): 1
    is no payment. The gap is relative, on the geometric mean of the bidders' values. Policies
    without auctions have none: every figure but the count is None.
    """
    columns = {
        name: present(auctions.get_column(name))
        for name in ("bidders", "offered_gpus", "leftover_gpus", "min_c", "mean_c", "gap")
    }
    offered = exact_sum(columns["offered_gpus"])
    leftover = exact_sum(columns["leftover_gpus"])
    return {
        "auctions": auctions.height,
        "auction_bidders_mean": mean(columns["bidders"]),
        "auction_offered_gpus_mean": mean(columns["offered_gpus"]),
        "auction_leftover_gpus_mean": mean(columns["leftover_gpus"]),
        "auction_leftover_share": leftover / offered if offered > 0 else None,
        "auction_c_min": quantile(columns["min_c"], 0.0),
        "auction_c_mean": mean(columns["mean_c"]),
        "auction_gap_mean": mean(columns["gap"]),
        "auction_gap_max": quantile(columns["gap"], 1.0),
    }
