"""Small workloads in one line a job, and how to play them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

import themis
from themis.cluster.cluster import Cluster
from themis.policies.policy import Policy
from themis.results.result import Result
from themis.workload.workload import Workload

__all__ = ["FREE_SWITCHES", "Job", "Search", "ends", "play", "spans", "workload"]

FREE_SWITCHES: Mapping[str, Any] = {"restart_s": 0.0, "checkpoint_s": 0.0}
"""Settings under which going on elsewhere costs nothing."""


class Job(NamedTuple):
    """A job; without `app` it is an app of its own with the same id."""

    job_id: str
    submit_s: float
    gpus: int
    work_gpu_s: float
    max_gpus: int | None = None
    app: str | None = None
    profile: str | None = None
    checkpoint_s: float | None = None
    iterations: float | None = None
    loss: tuple[float, float, float] | None = None
    bracket: int | None = None
    gpu_milli: int | None = None


class Search(NamedTuple):
    """How an app searches: its stopping rule, the cap on its GPUs, the loss that it is after."""

    stopping: str
    max_gpus: int | None = None
    target_loss: float | None = None


def workload(
    jobs: Sequence[Job],
    *,
    first: Sequence[str] = (),
    searches: Mapping[str, Search] | None = None,
    weights: Mapping[str, float] | None = None,
    owners: Mapping[str, str] | None = None,
) -> Workload:
    """Return the workload of these jobs; apps in `first` are done with their first job.

    `searches` says by app what its scheduler is; the others are done with their last job. `weights`
    and `owners`, its tenant, are by app too; 1 and none for others.
    """
    found = {**dict.fromkeys(first, Search("first")), **(searches or {})}
    table = pl.DataFrame(
        {
            "job_id": [job.job_id for job in jobs],
            "app_id": [job.app or job.job_id for job in jobs],
            "submit_s": [float(job.submit_s) for job in jobs],
            "serial_time_s": [float(job.work_gpu_s) for job in jobs],
            "gang_size": [job.gpus for job in jobs],
            "max_gpus": [job.gpus if job.max_gpus is None else job.max_gpus for job in jobs],
            "profile": pl.Series([job.profile for job in jobs], dtype=pl.String),
            "checkpoint_s": pl.Series([job.checkpoint_s for job in jobs], dtype=pl.Float64),
            "status": pl.Series([None] * len(jobs), dtype=pl.String),
            "iterations": pl.Series([job.iterations for job in jobs], dtype=pl.Float64),
            "bracket": pl.Series([job.bracket for job in jobs], dtype=pl.Int64),
            "gpu_milli": pl.Series([job.gpu_milli for job in jobs], dtype=pl.Int64),
            **{
                name: pl.Series([job.loss and job.loss[k] for job in jobs], dtype=pl.Float64)
                for k, name in enumerate(("loss_a", "loss_b", "loss_c"))
            },
        }
    )
    names = sorted(set(table.get_column("app_id").to_list()))
    arrival = {name: min(j.submit_s for j in jobs if (j.app or j.job_id) == name) for name in names}
    none = pl.Series([None] * len(names), dtype=pl.String)
    kinds = [found.get(name, Search("all")) for name in names]
    apps = pl.DataFrame(
        {
            "app_id": names,
            "user": none,
            "tenant": pl.Series([(owners or {}).get(name) for name in names], dtype=pl.String),
            "arrival_s": [float(arrival[name]) for name in names],
            "stopping": [kind.stopping for kind in kinds],
            "weight": [(weights or {}).get(name, 1.0) for name in names],
            "profile": none,
            "gpu_types": none,
            "max_gpus": pl.Series([kind.max_gpus for kind in kinds], dtype=pl.Int64),
            "target_loss": pl.Series([kind.target_loss for kind in kinds], dtype=pl.Float64),
        }
    )
    return Workload(apps=apps, jobs=table)


def play(
    cluster: str | Cluster,
    jobs: Sequence[Job],
    policy: str | Policy,
    *,
    first: Sequence[str] = (),
    searches: Mapping[str, Search] | None = None,
    weights: Mapping[str, float] | None = None,
    owners: Mapping[str, str] | None = None,
    **settings: Any,  # noqa: ANN401 - each setting has its own type
) -> Result:
    """Return what a policy does with these jobs; switches are free unless `settings` say more."""
    where = Cluster.parse(cluster) if isinstance(cluster, str) else cluster
    return themis.simulate(
        workload(jobs, first=first, searches=searches, weights=weights, owners=owners),
        where,
        policy=policy,
        **{**FREE_SWITCHES, **settings},
    )


def spans(result: Result) -> dict[str, tuple[float | None, float | None]]:
    """Return (start, end) in seconds by job."""
    rows = result.jobs.select("job_id", "start_s", "end_s").iter_rows()
    return {job: (start, end) for job, start, end in rows}


def ends(result: Result) -> dict[str, float | None]:
    """Return the end in seconds by job."""
    return {job: end for job, (_, end) in spans(result).items()}
