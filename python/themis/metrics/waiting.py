"""How long apps waited for GPUs, and how often they lost them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.metrics.completion import time_statistics
from themis.metrics.gpu_time import microseconds
from themis.metrics.statistics import Floats, exact_sum, mean, present, quantile, share

__all__ = ["covered_us", "waiting_metrics"]


def waiting_metrics(apps: pl.DataFrame, leases: pl.DataFrame) -> dict[str, float | int | None]:
    """Queueing delay, time without GPUs, preemptions, migrations and failures.

    All are over the apps that wanted GPUs: that got one, or are unfinished.
    """
    unfinished = pl.col("state") == "unfinished"
    wanted = apps.filter(
        (pl.col("state") != "infeasible") & (pl.col("first_gpu_s").is_not_null() | unfinished)
    )
    queue_s = present(wanted.get_column("queue_s"))
    preemptions = present(wanted.get_column("preemptions"))
    migrations = present(wanted.get_column("migrations"))
    return {
        **time_statistics("queue", queue_s),
        "queue_max_s": quantile(queue_s, 1.0),
        "never_started_apps": int(wanted.get_column("first_gpu_s").null_count()),
        **time_statistics("without_gpus", _without_gpus_s(wanted, leases)),
        "preemptions": int(exact_sum(preemptions)),
        "preemptions_per_app": mean(preemptions),
        "preempted_apps_share": share(int((preemptions > 0).sum()), preemptions.size),
        "migrations": int(exact_sum(migrations)),
        "migrations_per_app": mean(migrations),
        "failures": int(exact_sum(present(wanted.get_column("failures")))),
    }


def _without_gpus_s(apps: pl.DataFrame, leases: pl.DataFrame) -> Floats:
    """Seconds from arrival to end in which an app had no lease, of each app that is done."""
    done = apps.filter(pl.col("state") == "done")
    life = microseconds(done.get_column("end_s")) - microseconds(done.get_column("arrival_s"))
    return (life - covered_us(done.get_column("app_id"), leases)) / 1e6


def covered_us(app_ids: pl.Series, leases: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Microseconds in which each app had at least one lease; overlaps count once."""
    rows = pl.DataFrame({"app_id": app_ids}).with_row_index("app")
    spans = leases.select(
        "app_id",
        *((pl.col(name) * 1e6).round().cast(pl.Int64) for name in ("start_s", "end_s")),
    )
    spans = spans.join(rows, on="app_id", how="inner").drop("app_id").sort("app", "start_s")
    reached = pl.col("end_s").cum_max().shift(1).over("app")
    # Whole numbers only: their sums do not depend on the order of the rows.
    fresh = pl.col("end_s") - pl.max_horizontal("start_s", reached)
    per_app = spans.select("app", fresh.clip(lower_bound=0).alias("us")).group_by("app").sum()
    covered = np.zeros(app_ids.len(), dtype=np.int64)
    covered[per_app.get_column("app").to_numpy()] = per_app.get_column("us").to_numpy()
    return covered
