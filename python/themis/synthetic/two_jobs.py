"""A long and a short job among searches: who of them waits, and under which policy."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from themis.schema.workload import MAX_GPUS
from themis.synthetic.parameters import Share
from themis.synthetic.search import SearchParams, search
from themis.workload.workload import TraceSource, Workload

__all__ = ["LONG", "SHORT", "TwoJobsParams", "two_jobs"]

LONG, SHORT = "long", "short"
"""App ids of the two jobs."""

_Gang = Annotated[int, Field(ge=1, le=MAX_GPUS // 1000)]
_Hours = Annotated[float, Field(ge=1e-3, le=1e5)]
_HOUR_S = 3600.0


class TwoJobsParams(SearchParams):
    """Parameters of the searches, and of the two jobs that join them."""

    join_at: Share = Field(
        default=0.5, description="when both join: share of the time between first and last arrival"
    )
    long_gpu_h: _Hours = Field(default=10.0, description="work of the long job, GPU-hours")
    long_gang: _Gang = Field(default=4, description="GPUs that the long job needs at once")
    short_gpu_h: _Hours = Field(default=1.0, description="work of the short job, GPU-hours")
    short_gang: _Gang = Field(default=2, description="GPUs that the short job needs at once")
    joined_profile: str = Field(
        default="compute", min_length=1, description="placement profile of the two jobs"
    )


def two_jobs(params: TwoJobsParams, seed: int, source: TraceSource) -> Workload:
    """Make the searches and add two apps of one job each, called `long` and `short`."""
    others = search(params, seed, source)
    arrivals = others.apps.get_column("arrival_s").to_numpy()
    join_s = round(float(arrivals.max()) * params.join_at)
    gangs = [params.long_gang, params.short_gang]
    work_h = [params.long_gpu_h, params.short_gpu_h]
    work_s = [
        float(max(round(hours * _HOUR_S / gang), 1) * gang)
        for hours, gang in zip(work_h, gangs, strict=True)
    ]
    joined = pl.DataFrame(
        {
            "app_id": [LONG, SHORT],
            "job_id": [LONG, SHORT],
            "submit_s": [float(join_s)] * 2,
            "serial_time_s": work_s,
            "gang_size": gangs,
            "max_gpus": gangs,
            "iterations": work_s,
            "profile": [params.joined_profile] * 2,
        }
    )
    jobs = others.jobs.head(2).with_columns(joined)
    apps = others.apps.head(2).with_columns(
        joined.select("app_id", "profile", arrival_s="submit_s"), stopping=pl.lit("all")
    )
    return Workload(
        apps=pl.concat([others.apps, apps]), jobs=pl.concat([others.jobs, jobs]), source=source
    )
