"""The tables of a result from the columns of the event log."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis import _core
from themis.boundary.columns import first_jobs, jobs_by_app
from themis.boundary.job_speeds import JobSpeeds, allowed_types
from themis.cluster.capacity import CAUSES
from themis.cluster.cluster import Cluster
from themis.schema.compact import compact
from themis.schema.workload import WHOLE_MILLI
from themis.workload.workload import Workload

__all__ = ["gpu_time_by_type", "result_frames"]

Columns = dict[str, npt.NDArray[Any]]
"""A table of the log, whose columns are taken out as they get their last form."""

_US = 1_000_000.0
_ROWS_AT_ONCE = 1 << 16
_LARGE = 1 << 18
"""So many jobs and leases leave gaps that are worth a look for them."""


_PHASES = {
    2: "done",
    3: "killed",
    4: "infeasible",
    5: "unfinished",
    7: "rejected",
    8: "failed",
}
_COUNTED = ("infeasible", "rejected", "failed")
"""States of jobs that say how their app ended."""

_AUCTION_COUNTS = ("offered_gpus", "active_apps", "bidders", "winners", "leftover_gpus")
_CAUSES = {0: "auction", 1: "leftover", 2: "policy", 3: "renewal", 4: "reservation", 5: "shared"}
_ENDS = {
    0: "job_end",
    1: "app_end",
    2: "expired",
    3: "horizon",
    4: "renewal",
    5: "withdrawn",
    6: "failure",
}


def result_frames(
    log: dict[str, Any],
    workload: Workload,
    cluster: Cluster,
    speeds: JobSpeeds,
    *,
    has_horizon: bool = True,
) -> dict[str, pl.DataFrame]:
    """Return the six tables of a result (:data:`themis.schema.result.TABLES`).

    Parameters
    ----------
    log
        What :func:`themis.simulate` returned for this workload and cluster; its tables are taken
        out of it, since both together would be twice the result.
    speeds
        Of the jobs there.
    has_horizon
        Whether what is unfinished was cut off by a horizon; else no policy ever served it.
    """
    end_s = log["end_us"] / _US
    cut = "cut off by the horizon" if has_horizon else "the policy never served it"
    apps = workload.apps.hstack(_of_jobs(log["jobs"], workload))
    make: dict[str, Callable[[Columns], pl.DataFrame]] = {
        "jobs": lambda columns: _jobs(columns, workload, cluster, speeds, cut),
        "apps": lambda columns: _apps(columns, apps, end_s, cut),
        "leases": lambda columns: _leases(columns, workload.apps, cluster),
        "auctions": _auctions,
        "usage": _usage,
        "capacity": lambda columns: _capacity(columns, cluster),
    }
    is_large = len(log["jobs"]["phase"]) + len(log["leases"]["app"]) > _LARGE
    frames = {}
    for name, table in make.items():
        if is_large:
            _core.give_back()  # what the run left, and columns that have become others
        frames[name] = compact(table(log.pop(name)))
    return frames


def _instants(us: npt.NDArray[np.int64]) -> pl.Series:
    """Seconds; null where the instant never came."""
    never = us < 0
    seconds = pl.Series(us / _US)
    return seconds.set(pl.Series(never), None) if never.any() else seconds


def _seconds(us: npt.NDArray[np.float64]) -> pl.Series:
    """Seconds, in the place of the microseconds."""
    us /= _US
    return pl.Series(us)


def _numbers(values: npt.NDArray[np.float64]) -> pl.Series:
    """Null where the figure is undefined."""
    numbers = pl.Series(values)
    return numbers.fill_nan(None) if numbers.is_nan().any() else numbers


def _whole(values: npt.NDArray[np.unsignedinteger[Any]]) -> pl.Series:
    return pl.Series(values).cast(pl.Int64)


def _names(codes: npt.NDArray[Any], names: Mapping[int, str]) -> pl.Series:
    return pl.Series(codes).replace_strict(dict(names), return_dtype=pl.String)


def _of_jobs(columns: Columns, workload: Workload) -> pl.DataFrame:
    """Return of each app how many jobs it has, in all and in some states, and their sums."""
    phase, first = columns["phase"], first_jobs(workload)
    found = {"jobs": np.diff(first, append=phase.size)}
    for code, name in _PHASES.items():
        if name in _COUNTED:
            found[name] = np.add.reduceat(phase == code, first, dtype=np.uint32)
    for name in ("preemptions", "migrations", "failures"):
        found[name] = np.add.reduceat(columns[name], first, dtype=np.int64)
    return pl.DataFrame(found)


def _jobs(
    columns: Columns, workload: Workload, cluster: Cluster, speeds: JobSpeeds, cut: str
) -> pl.DataFrame:
    take, specs = columns.pop, workload.jobs
    table = specs.select("job_id", "app_id", "submit_s", "gang_size", gpus_max="max_gpus")
    table = table.with_columns(
        gpu_milli=specs.get_column("gpu_milli").fill_null(WHOLE_MILLI),
        start_s=_instants(take("start_us")),
        end_s=_instants(take("end_us")),
        state=_names(take("phase"), _PHASES),
        gpu_s=_seconds(take("gpu_us")),
        work_gpu_s=_seconds(take("work_gpu_us")) * pl.Series(speeds.fastest),
        preemptions=_whole(take("preemptions")),
        migrations=_whole(take("migrations")),
        promised_s=_instants(take("promised_us")),
        failures=_whole(take("failures")),
        lost_gpu_s=_seconds(take("lost_gpu_us")),
    )
    reasons = [text or None for text in columns["reasons"]]
    told = pl.Series(reasons, dtype=pl.String).gather(take("reason"))
    state = pl.col("state")
    too_few = table.select((state == "infeasible") & told.is_null()).to_series().arg_true()
    if too_few.len():
        infeasible = jobs_by_app(workload)[too_few]
        told = told.scatter(too_few, _too_few(infeasible, cluster))
    unfinished = pl.when(state == "unfinished").then(pl.lit(cut))
    return table.with_columns(reason=pl.coalesce(told, unfinished))


def _too_few(specs: pl.DataFrame, cluster: Cluster) -> pl.Series:
    """Say of which GPU types there are not enough for each of some jobs."""
    sizes = {
        name: int(gpus)
        for name, gpus in cluster.machines.group_by("gpu_type")
        .agg(pl.col("gpus").sum())
        .iter_rows()
    }
    kinds = specs.select("gpu_types", mixes=pl.col("mixes_types").fill_null(value=True))
    different = kinds.unique(maintain_order=True)
    texts, there = [], []
    for wanted, mixes in different.iter_rows():
        of_types = [sizes[name] for name in allowed_types(wanted, cluster.gpu_types)]
        there.append(sum(of_types) if mixes else max(of_types, default=0))
        words = f" of type {wanted}" if sum(of_types) < cluster.gpus else ""
        texts.append(words if mixes or len(of_types) < 2 else f"{words}, all of one type")  # noqa: PLR2004
    known = different.with_columns(
        text=pl.Series(texts, dtype=pl.String), there=pl.Series(there, dtype=pl.Int64)
    )
    found = kinds.join(known, on=kinds.columns, nulls_equal=True, maintain_order="left")
    what = pl.format("needs {} GPUs{}, the cluster has {}", "gang_size", *found["text", "there"])
    return specs.select(what).to_series()


def _apps(columns: Columns, specs: pl.DataFrame, end_s: float, cut: str) -> pl.DataFrame:
    """Make the table of apps from their specs with what their jobs came to."""
    take = columns.pop
    ended = pl.Series(columns["end_us"] >= 0)
    sums = ("jobs", *_COUNTED, "preemptions", "migrations", "failures")
    table = specs.select("app_id", "user", "tenant", "arrival_s", *sums).with_columns(
        first_gpu_s=_instants(take("first_gpu_us")),
        end_s=_instants(take("end_us")),
        ended=ended,
        n_avg=_numbers(take("n_avg")),
        gpus_avg=_numbers(take("gpus_avg")),
        t_id_s=_numbers(take("t_id_s")),
        t_sh_s=_numbers(take("t_sh_s")),
        t_alone_s=_numbers(take("t_alone_s")),
        placement_score=_numbers(take("placement_score")),
        gpu_s=_seconds(take("gpu_us")),
        useful_gpu_s=_seconds(take("useful_gpu_us")),
        slowed_gpu_s=_seconds(take("slowed_gpu_us")),
        switching_gpu_s=_seconds(take("switching_gpu_us")),
        lost_gpu_s=_seconds(take("lost_gpu_us")),
        idle_gpu_s=pl.lit(0.0),
    )
    return _with_rho(table, end_s, cut).drop("t_alone_s", "ended", *_COUNTED)


def _with_rho(table: pl.DataFrame, end_s: float, cut: str) -> pl.DataFrame:
    """States, reasons, rho and its floor (docs/metrics.md)."""
    refused = pl.col("rejected") > 0
    hopeless = pl.col("infeasible") + pl.col("rejected") == pl.col("jobs")
    ideal = pl.col("t_id_s") > 0
    state = (
        pl.when(hopeless & refused)
        .then(pl.lit("rejected"))
        .when(hopeless)
        .then(pl.lit("infeasible"))
        .when("ended", pl.col("failed") > 0)
        .then(pl.lit("failed"))
        .when("ended")
        .then(pl.lit("done"))
        .otherwise(pl.lit("unfinished"))
    )
    reason = (
        pl.when(hopeless & ~refused)
        .then(pl.lit("every job needs more GPUs than it could ever have"))
        .when(~pl.col("ended") & (pl.col("arrival_s") > end_s))
        .then(pl.lit("arrives after the horizon"))
        .when(refused)
        .then(pl.format("{} of {} jobs are rejected by the policy: no rho", "rejected", "jobs"))
        .when(~pl.col("ended") & ideal.fill_null(value=False))
        .then(pl.lit(f"{cut}: rho counts the time so far and the rest alone"))
        .when("ended", pl.col("failed") > 0)
        .then(pl.format("{} of {} jobs failed: rho is undefined", "failed", "jobs"))
        .when(pl.col("infeasible") > 0)
        .then(pl.format("{} of {} jobs are infeasible", "infeasible", "jobs"))
        .when(~ideal.fill_null(value=False))
        .then(pl.lit("no work for GPUs: rho is undefined"))
    )
    failed = pl.col("ended") & (pl.col("failed") > 0)
    counted = ideal & ~hopeless & ~refused & ~failed  # nobody gains by having work turned away
    return table.with_columns(
        state=state,
        reason=reason,
        end_s=pl.when(hopeless).then(None).otherwise("end_s"),
        rho=pl.when(counted).then(pl.col("t_sh_s") / pl.col("t_id_s")),
        rho_is_bound=~pl.col("ended") & counted.fill_null(value=False),
        rho_floor=pl.when(counted).then(pl.col("t_alone_s") / pl.col("t_id_s")),
        queue_s=pl.col("first_gpu_s") - pl.col("arrival_s"),
        t_id_s=pl.when(counted).then("t_id_s"),
        t_sh_s=pl.when(counted).then("t_sh_s"),
    )


def _leases(columns: Columns, apps: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    take = columns.pop
    rows = len(columns["app"])
    return pl.DataFrame(
        {
            "lease_id": pl.int_range(rows, eager=True).cast(pl.String),
            "app_id": apps.get_column("app_id").gather(take("app")),
            "machine": cluster.machines.get_column("machine").gather(take("machine")),
            "slot": _whole(take("slot")),
            "gpu_first": _whole(take("gpu_first")),
            "gpus": _whole(take("gpus")),
            "start_s": take("start_us") / _US,
            "end_s": take("end_us") / _US,
            "cause": _names(take("cause"), _CAUSES),
            "renewals": _whole(take("renewals")),
            "ended_by": _names(take("ended_by"), _ENDS),
            "gpu_milli": _whole(take("gpu_milli")),
        }
    )


def gpu_time_by_type(
    leases: pl.DataFrame, cluster: Cluster, end_s: float
) -> dict[str, dict[str, float | None]]:
    """Return what was held of each GPU type.

    By type: gpus, gpu_s (GPU-seconds held; of a share its part), and utilisation, their part of all
    from 0 to the end; None for a run of no time.
    """
    used = pl.col("gpus") * pl.col("gpu_milli") / WHOLE_MILLI
    held = used * (pl.col("end_s") - pl.col("start_s"))
    found = {}
    for kind in cluster.gpu_types:
        machines = cluster.machines.filter(gpu_type=kind)
        gpus = int(machines.get_column("gpus").sum())
        mine = pl.col("machine").is_in(machines["machine"].implode())
        parts = (
            some.filter(mine).select(held).to_series() for some in leases.iter_slices(_ROWS_AT_ONCE)
        )
        gpu_s = math.fsum(chain.from_iterable(parts))
        share = gpu_s / (gpus * end_s) if end_s > 0 else None
        found[kind] = {"gpus": gpus, "gpu_s": gpu_s, "utilisation": share}
    return found


def _auctions(columns: Columns) -> pl.DataFrame:
    take, at_us = columns.pop, columns.pop("at_us")
    table = pl.DataFrame(
        {
            "auction_id": pl.int_range(len(at_us), eager=True).cast(pl.String),
            "at_s": at_us / _US,
            **{name: _whole(take(name)) for name in _AUCTION_COUNTS},
            **columns,
        }
    )
    # Infinite where more apps of unbounded rho might have been served: no figure.
    return table.with_columns(gap=pl.when(pl.col("gap").is_finite()).then("gap"))


def _usage(columns: Columns) -> pl.DataFrame:
    take = columns.pop
    at_s, productive = take("at_us") / _US, take("gpus_productive")
    counts = {name: _whole(take(name)) for name in list(columns)}
    return pl.DataFrame({"at_s": at_s, "gpus_productive": productive, **counts})


def _capacity(columns: Columns, cluster: Cluster) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "at_s": columns["at_us"] / _US,
            "machine": cluster.machines.get_column("machine").gather(columns["machine"]),
            "gpus": columns["gpus"],
            "cause": _names(columns["cause"], dict(enumerate(CAUSES))),
        }
    )
