"""How long apps waited for GPUs, and how often they lost them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.metrics.by_app import Spans, app_rows, changes, us
from themis.metrics.completion import time_statistics
from themis.metrics.gpu_time import microseconds
from themis.metrics.statistics import Floats, exact_sum, mean, present, quantile, share

__all__ = ["covered_us", "waiting_metrics"]


def waiting_metrics(apps: pl.DataFrame, leases: pl.DataFrame) -> dict[str, float | int | None]:
    """Queueing delay, time without GPUs, preemptions, migrations and failures.

    All are over the apps that wanted GPUs: that got one, or are unfinished.
    """
    unfinished = pl.col("state") == "unfinished"
    times = ("arrival_s", "first_gpu_s", "end_s", "queue_s")
    apps = apps.select("app_id", "state", *times, "preemptions", "migrations", "failures")
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
    app = app_rows(app_ids, leases.get_column("app_id"))
    times = leases.select("start_s", "end_s")
    covered = np.zeros(app_ids.len(), dtype=np.int64)
    held = Spans(app, times, us("start_s"), us("end_s"), pl.lit(1))
    for of_app, at_us, leased in changes(app_ids.len(), held):
        # An app has no lease after its last change, whatever the next has.
        lasts_us = np.where(np.cumsum(leased) > 0, np.diff(at_us, append=0), 0)
        np.add.at(covered, of_app, lasts_us)
    return covered
