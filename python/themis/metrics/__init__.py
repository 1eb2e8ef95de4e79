"""Metrics of a run, each defined once here and in docs/metrics.md."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from themis.metrics.auctions import auction_metrics
from themis.metrics.completion import completion_metrics, run_span, state_counts
from themis.metrics.fairness import fairness_metrics
from themis.metrics.gpu_time import gpu_time_metrics, usage_metrics
from themis.metrics.thrash import thrash_metrics
from themis.metrics.waiting import waiting_metrics

__all__ = ["Number", "summarise"]

Number = float | int | bool | None


def summarise(frames: Mapping[str, pl.DataFrame]) -> dict[str, Number]:
    """Every metric of a run by name; None where a metric is undefined, never NaN.

    Parameters
    ----------
    frames
        The five tables of :data:`themis.schema.result.TABLES`.
    """
    apps, jobs, usage = frames["apps"], frames["jobs"], frames["usage"]
    start_s, end_s = run_span(apps, usage)
    return {
        **state_counts(apps, jobs),
        **fairness_metrics(apps),
        **completion_metrics(apps, jobs),
        **waiting_metrics(apps, frames["leases"]),
        **thrash_metrics(apps, jobs, frames["leases"], usage),
        **gpu_time_metrics(apps),
        **usage_metrics(usage, start_s, end_s),
        **auction_metrics(frames["auctions"]),
    }
