"""The demo: hyper-parameter searches of a few teams that contend for a small cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from themis.schema.workload import JOBS, apps_from_jobs
from themis.synthetic.draws import Draws, Floats, ids, log_logistic, pick
from themis.synthetic.parameters import (
    Gangs,
    Names,
    Parameters,
    Share,
    Shares,
    check_shares,
    check_some,
)
from themis.workload.workload import TraceSource, Workload

__all__ = ["DemoParams", "demo"]

_STREAMS = ("arrivals", "sizes", "gangs", "elastic", "durations", "profiles", "people")


class DemoParams(Parameters):
    """Parameters of the demo."""

    replaces: ClassVar[Mapping[str, tuple[str, ...]]] = {"gangs": ("gang_shares",)}

    apps: int = Field(default=24, ge=1, le=10**7, description="how many apps")
    load: float = Field(
        default=1.5,
        ge=1e-3,
        le=1e6,
        description="work of the apps over what `gpus` GPUs can do while they arrive",
    )
    gpus: int = Field(default=64, ge=1, le=10**6, description="GPUs that `load` is about")
    jobs_min: int = Field(default=1, ge=1, le=10**6, description="fewest jobs of an app")
    jobs_max: int = Field(
        default=40, ge=1, le=10**6, description="most jobs of an app; log-uniform in between"
    )
    gangs: Gangs = Field(default=(1, 2, 4), description="GPUs that the jobs of an app need at once")
    gang_shares: Shares = Field(
        default=(0.5, 0.25, 0.25), description="how often each gang occurs; empty: equally often"
    )
    elastic_share: Share = Field(
        default=0.25, description="share of apps whose jobs can use more GPUs than their gang"
    )
    elastic_factor: int = Field(
        default=2, ge=1, le=1000, description="how many times their gang those jobs can use"
    )
    job_s: float = Field(
        default=2400.0, ge=1, le=1e8, description="median duration of a job at its gang, seconds"
    )
    app_spread: Share = Field(
        default=0.4,
        description="spread over apps: half are within a factor of 3 ** spread of the median",
    )
    job_spread: Share = Field(default=0.2, description="the same, over the jobs of an app")
    profiles: Names = Field(
        default=("vgg16", "resnet50", "alexnet", "inception3"),
        description="placement profiles, equally often",
    )
    users: int = Field(
        default=6, ge=1, le=10**6, description="users; the i-th is 1 / i as active as the first"
    )
    tenants: int = Field(
        default=3, ge=1, le=10**6, description="tenants; users belong to them in turn"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.jobs_max < self.jobs_min:
            raise ValueError(f"jobs_max is {self.jobs_max}: expected {self.jobs_min} or more")
        check_some("gangs", self.gangs)
        check_some("profiles", self.profiles)
        check_shares("gang_shares", self.gang_shares, self.gangs)
        return self


def demo(params: DemoParams, seed: int, source: TraceSource) -> Workload:
    """Make the demo workload."""
    draws = Draws(seed, _STREAMS)
    count = params.apps
    low, high = np.log(params.jobs_min), np.log(params.jobs_max + 1)
    jobs = np.floor(np.exp(low + (high - low) * draws.uniform("sizes", count))).astype(np.int64)
    jobs = np.clip(jobs, params.jobs_min, params.jobs_max)
    gang = np.array(params.gangs)[
        pick(params.gang_shares or [1.0] * len(params.gangs), draws.uniform("gangs", count))
    ]
    elastic = draws.uniform("elastic", count) < params.elastic_share
    profile = pick([1.0] * len(params.profiles), draws.uniform("profiles", count))
    user = pick(1 / np.arange(1, params.users + 1), draws.uniform("people", count))
    app_s = params.job_s * log_logistic(draws.uniform("durations", count), params.app_spread)
    app = np.repeat(np.arange(count), jobs)
    spread = log_logistic(draws.uniform("durations", len(app)), params.job_spread)
    duration_s = np.maximum(np.round(app_s[app] * spread), 1.0)
    work = duration_s * gang[app]
    arrivals = _arrivals(draws.uniform("arrivals", count), float(work.sum()), params)
    rows = pl.DataFrame(
        {
            "app_id": ids("app", app, count),
            "number": np.arange(len(app)) - np.repeat(np.cumsum(jobs) - jobs, jobs),
            "submit_s": arrivals[app],
            "serial_time_s": work,
            "gang_size": gang[app],
            "max_gpus": (gang * np.where(elastic, params.elastic_factor, 1))[app],
            "profile": pl.Series(params.profiles).gather(profile[app]),
            "user": ids("user", user[app], params.users),
            "tenant": ids("team", (user % params.tenants)[app], params.tenants),
        }
    )
    width = max(2, len(str(params.jobs_max)))
    number = (pl.col("number") + 1).cast(pl.String).str.zfill(width)
    rows = rows.with_columns(pl.concat_str("app_id", pl.lit("/"), number).alias("job_id"))
    jobs = rows.select(column for column in JOBS if column in rows.columns)
    return Workload(apps=apps_from_jobs(rows), jobs=jobs, source=source)


def _arrivals(uniform: Floats, work_gpu_s: float, params: DemoParams) -> Floats:
    """Whole seconds with exponential gaps, from 0 to where the load is as wished."""
    count = len(uniform)
    places = np.cumsum(-np.log1p(-uniform))
    span_s = work_gpu_s / (params.gpus * params.load) * (count - 1) / count
    times: Floats = np.round((places - places[0]) / max(places[-1] - places[0], 1e-9) * span_s)
    return times
