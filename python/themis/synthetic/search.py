"""Searches as in the paper's workloads: apps of many jobs, with the mixes that it states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from themis.schema.workload import JOBS, MAX_GPUS, apps_from_jobs
from themis.synthetic.draws import Draws, Floats, Indexes, deal, ids, log_logistic
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

__all__ = ["SearchParams", "search"]

_STREAMS = ("arrivals", "sizes", "gangs", "profiles", "work", "losses")
_HOUR_S = 3600.0
_MOST_JOBS = 10**7
_ITERATION_S = {"vgg19": 1.2, "vgg16": 1.2, "vgg11": 1.2, "alexnet": 0.5} | dict.fromkeys(
    ("inception3", "inception4", "resnet50", "resnet101", "resnet152", "googlenet"), 0.33
)
"""Seconds of one iteration at one GPU: constants of the simulator of the paper's authors."""

_Size = Annotated[int, Field(ge=1, le=10**6)]
_Loss = Annotated[float, Field(ge=0, le=1e6)]
Stopping = Literal["all", "first", "successive_halving", "performance_curve", "fixed"]


class SearchParams(Parameters):
    """Parameters of searches; the jobs of an app are alike but for their work and loss."""

    replaces: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "gangs": ("gang_shares",),
        "profiles": ("profile_shares",),
        "network_share": ("profiles", "profile_shares"),
        "job_gpu_h": ("mean_job_gpu_h",),
    }

    jobs_per_app: Annotated[tuple[_Size, ...], Field(strict=False)] = Field(
        default=(1, 2, 4, 8, 16, 32),
        description="numbers of jobs, dealt to the apps in random order, again and again",
    )
    apps: int | None = Field(
        default=None, ge=1, le=10**6, description="how many apps; unset: one for each number"
    )
    stopping: Stopping = Field(default="all", description="stopping rule of every app")
    arrivals: Literal["poisson", "even", "together"] = Field(
        default="poisson", description="apps come at exponential or equal gaps, or all at once"
    )
    gap_s: float = Field(
        default=1200.0, ge=0, le=1e8, description="mean gap between apps at contention 1, seconds"
    )
    contention: float = Field(
        default=1.0, ge=1e-3, le=1e6, description="apps come so many times as fast"
    )
    gangs: Gangs = Field(default=(1,), description="GPUs that the jobs of an app need at once")
    gang_shares: Shares = Field(
        default=(), description="share of the jobs with each gang; empty: equal shares"
    )
    elastic_factor: int = Field(
        default=1, ge=1, le=1000, description="jobs can use so many times their gang"
    )
    app_max_gpus: int | None = Field(
        default=None, ge=1, le=MAX_GPUS, description="most GPUs of a whole app; unset: no cap"
    )
    job_gpu_h: float = Field(
        default=1.0, ge=1e-3, le=1e5, description="median work of a job, GPU-hours"
    )
    mean_job_gpu_h: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e5,
        description="mean work of the jobs, GPU-hours, which all are scaled to; unset: not scaled",
    )
    app_spread: Share = Field(
        default=0.35,
        description="spread of work over apps: half are within a factor of 3 ** spread",
    )
    job_spread: Share = Field(default=0.26, description="the same, over the jobs of an app")
    profiles: Names = Field(default=("compute",), description="placement profiles of the apps")
    profile_shares: Shares = Field(
        default=(), description="share of the apps with each profile; empty: equal shares"
    )
    network_share: Share | None = Field(
        default=None,
        description="share of apps with the profile network, the others have compute; "
        "unset: see profiles",
    )
    iteration_s: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e5,
        description="seconds of an iteration at one GPU; unset: by profile, 1 where none is known",
    )
    loss_curves: bool = Field(default=True, description="whether jobs have loss curves")
    loss_start: _Loss = Field(default=2.3, description="loss of every job before it trains")
    loss_best: _Loss = Field(default=0.1, description="loss that the best job could reach")
    loss_worst: _Loss = Field(default=1.0, description="the same of the worst; even in between")
    loss_fall: float = Field(
        default=0.95, gt=0, lt=1, description="part of that way that a job's whole work goes"
    )
    target_loss: float | None = Field(default=None, description="loss that ends the search")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("jobs_per_app", "gangs", "profiles"):
            check_some(name, getattr(self, name))
        check_shares("gang_shares", self.gang_shares, self.gangs)
        check_shares("profile_shares", self.profile_shares, self.profiles)
        if self.network_share is not None and "profiles" in self.model_fields_set:
            raise ValueError("network_share chooses the profiles: leave out profiles")
        if not self.loss_best <= self.loss_worst < self.loss_start:
            raise ValueError(
                f"loss_best, loss_worst, loss_start are {self.loss_best:g}, {self.loss_worst:g}, "
                f"{self.loss_start:g}: expected best <= worst < start"
            )
        if self.app_max_gpus is not None and self.app_max_gpus < max(self.gangs):
            raise ValueError(
                f"app_max_gpus is {self.app_max_gpus}: expected the largest of gangs or more"
            )
        if self.app_count * max(self.jobs_per_app) > _MOST_JOBS:
            raise ValueError(f"apps times jobs_per_app is above {_MOST_JOBS:,}: expected fewer")
        return self

    @property
    def app_count(self) -> int:
        """Number of apps."""
        return self.apps or len(self.jobs_per_app)

    @property
    def profile_mix(self) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """Profiles and the share of the apps that has each."""
        if self.network_share is not None:
            return ("network", "compute"), (self.network_share, 1 - self.network_share)
        return self.profiles, self.profile_shares or (1.0,) * len(self.profiles)


def search(params: SearchParams, seed: int, source: TraceSource) -> Workload:
    """Make a workload of searches.

    What the paper states as shares is dealt, not drawn, so that a small workload has them too:
    gangs by jobs, the largest apps first; profiles by apps, in random order.
    """
    draws = Draws(seed, _STREAMS)
    count = params.app_count
    sizes = _sizes(params, draws)
    gang = _gangs(params, sizes, draws)
    names, shares = params.profile_mix
    profile = deal(shares, np.ones(count, dtype=np.int64), draws.order("profiles", count))
    app = np.repeat(np.arange(count), sizes)
    work = _work(params, gang, app, draws)
    steps = [params.iteration_s or _ITERATION_S.get(name, 1.0) for name in names]
    iterations = np.maximum(np.round(work / np.array(steps)[profile[app]]), 1.0)
    width = max(2, len(str(max(params.jobs_per_app))))
    number = np.arange(len(app)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    app_id = ids("app", app, count)
    rows = pl.DataFrame(
        {
            "app_id": app_id,
            "job_id": app_id + "/" + pl.Series(number + 1).cast(pl.String).str.zfill(width),
            "submit_s": _arrivals(params, draws)[app],
            "serial_time_s": work,
            "gang_size": gang[app],
            "max_gpus": gang[app] * params.elastic_factor,
            "profile": pl.Series(names).gather(profile[app]),
            "iterations": iterations,
            **_losses(params, iterations, draws),
        }
    ).with_columns(
        stopping=pl.lit(params.stopping),
        app_max_gpus=pl.lit(params.app_max_gpus, pl.Int64),
        target_loss=pl.lit(params.target_loss, pl.Float64),
    )
    jobs = rows.select(column for column in JOBS if column in rows.columns)
    return Workload(apps=apps_from_jobs(rows), jobs=jobs, source=source)


def _sizes(params: SearchParams, draws: Draws) -> Indexes:
    """Jobs of each app: the numbers in random order, as often as there are apps for."""
    deck = np.array(params.jobs_per_app, dtype=np.int64)
    rounds = math.ceil(params.app_count / len(deck))
    dealt = [deck[draws.order("sizes", len(deck))] for _ in range(rounds)]
    return np.concatenate(dealt)[: params.app_count]


def _gangs(params: SearchParams, sizes: Indexes, draws: Draws) -> Indexes:
    """Gang of each app."""
    shuffled = draws.order("gangs", len(sizes))
    largest_first = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    shares = params.gang_shares or (1.0,) * len(params.gangs)
    return np.array(params.gangs, dtype=np.int64)[deal(shares, sizes, largest_first)]


def _work(params: SearchParams, gang: Indexes, app: Indexes, draws: Draws) -> Floats:
    """GPU-seconds of each job: whole seconds at its gang, one or more."""
    of_app = log_logistic(draws.uniform("work", len(gang)), params.app_spread)
    of_job = log_logistic(draws.uniform("work", len(app)), params.job_spread)
    work_s = params.job_gpu_h * _HOUR_S * of_app[app] * of_job
    if params.mean_job_gpu_h is not None:
        work_s *= params.mean_job_gpu_h * _HOUR_S * len(app) / math.fsum(work_s.tolist())
    work: Floats = np.maximum(np.round(work_s / gang[app]), 1.0) * gang[app]
    return work


def _arrivals(params: SearchParams, draws: Draws) -> Floats:
    """Whole seconds from 0 on; the first apps arrive alike however many follow."""
    count = params.app_count
    if params.arrivals == "together":
        return np.zeros(count)
    gaps = -np.log1p(-draws.uniform("arrivals", count - 1))
    if params.arrivals == "even":
        gaps = np.ones(count - 1)
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    arrivals: Floats = np.round(times * params.gap_s / params.contention)
    return arrivals


def _losses(params: SearchParams, iterations: Floats, draws: Draws) -> dict[str, Floats]:
    """Coefficients of each job's loss curve, from its start, its limit and how far it gets."""
    if not params.loss_curves:
        return {}
    reach = params.loss_worst - params.loss_best
    limit = params.loss_best + reach * draws.uniform("losses", len(iterations))
    start = 1 / (params.loss_start - limit)
    fall = params.loss_fall / (1 - params.loss_fall)
    return {"loss_a": start * fall / iterations, "loss_b": start, "loss_c": limit}
