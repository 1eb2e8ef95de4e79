"""What the GPUs did: GPU time and its split, utilisation, placement, contention."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.metrics.statistics import exact_sum, present, share, weighted_mean

__all__ = ["GPU_TIME_PARTS", "gpu_time_metrics", "microseconds", "spans_us", "usage_metrics"]

GPU_TIME_PARTS = ("useful", "slowed", "switching", "lost", "idle")
"""Parts of the GPU time held, which add up to it."""

Integers = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 1 << 16
_PERFECT = 1.0 - 1e-9


def gpu_time_metrics(apps: pl.DataFrame) -> dict[str, float | int | None]:
    """GPU-seconds held by apps, their split, and the placement scores of the apps.

    The placement score of a run is the mean of the apps' scores 1/S, weighted by their running
    GPU time (useful + slowed + lost).
    """
    held = {
        f"{part}_gpu_s": exact_sum(present(apps.get_column(f"{part}_gpu_s")))
        for part in GPU_TIME_PARTS
    }
    total = exact_sum(present(apps.get_column("gpu_s")))
    parts = ("useful_gpu_s", "slowed_gpu_s", "lost_gpu_s")
    placed = apps.select("placement_score", *parts)
    ran = placed.filter(pl.col("placement_score").is_not_null())
    score = present(ran.get_column("placement_score"))
    running = present(ran.select(pl.sum_horizontal(pl.col(*parts).fill_null(0.0))).to_series())
    return {
        "gpu_s": total,
        **held,
        "useful_share": held["useful_gpu_s"] / total if total > 0 else None,
        "placement_score": weighted_mean(score, running),
        "perfectly_placed_apps_share": share(int((score >= _PERFECT).sum()), score.size),
    }


def usage_metrics(
    usage: pl.DataFrame, start_s: float | None, end_s: float | None
) -> dict[str, float | int | None]:
    """Time-weighted utilisation and contention over [start_s, end_s], in exact integers.

    A row of `usage` holds until the next. Utilisation is GPU time held over GPU time that
    existed; productive utilisation counts only GPUs that did work. Contention is the number of
    active apps: its mean over time and its maximum.
    """
    empty = dict.fromkeys(
        ("utilisation", "productive_utilisation", "contention_mean", "contention_max")
    )
    if usage.is_empty() or start_s is None or end_s is None:
        return {**empty}
    lengths = spans_us(usage, start_s, end_s)
    duration = int(lengths.sum())
    if duration == 0:
        return {**empty}
    used, total, active = (
        int(usage.get_column(name).to_numpy() @ lengths)
        for name in ("gpus_used", "gpus_total", "active_apps")
    )
    # Thousandths of GPUs work; both parts of them stay whole numbers.
    milli = np.rint(usage.get_column("gpus_productive").to_numpy() * 1000).astype(np.int64)
    productive = int(milli // 1000 @ lengths) * 1000 + int(milli % 1000 @ lengths)
    return {
        "utilisation": used / total if total else None,
        "productive_utilisation": productive / (1000 * total) if total else None,
        "contention_mean": active / duration,
        "contention_max": int(usage.get_column("active_apps").to_numpy()[lengths > 0].max()),
    }


def spans_us(usage: pl.DataFrame, start_s: float, end_s: float) -> Integers:
    """Microseconds for which each row of `usage` holds inside [start_s, end_s]."""
    at = microseconds(usage.get_column("at_s"))
    start, end = (microseconds(pl.Series([edge]))[0] for edge in (start_s, end_s))
    edges: Integers = np.clip(np.append(at, max(end, at[-1])), start, end)
    return edges[1:] - edges[:-1]


def microseconds(seconds: pl.Series) -> Integers:
    """Whole microseconds, rounded half to even; some rows at once, so that there is one copy."""
    us = np.empty(seconds.len(), dtype=np.int64)
    for first in range(0, us.size, _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        us[some] = np.rint(seconds[some].to_numpy() * 1e6)
    return us
