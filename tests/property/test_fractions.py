"""Random fractions of GPUs: every run passes the audit, and no fraction waits beside room."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import Job, workload

import themis
from themis.cluster.cluster import Cluster
from themis.policies.catalogue import POLICIES
from themis.results.result import Result

NAMES = ["themis", *(policy.name for policy in POLICIES)]


@st.composite
def loads(draw: st.DrawFn) -> list[Job]:
    """Mostly fractions, some whole gangs, in a few apps."""
    times = st.sampled_from([0, 0, 0, 1, 5, 10, 20, 30.5])
    shares = st.sampled_from([1, 100, 250, 400, 500, 600, 999])
    jobs = []
    for number in range(draw(st.integers(1, 14))):
        whole = draw(st.integers(0, 3)) == 0
        gang = draw(st.integers(1, 3)) if whole else 1
        work = draw(st.sampled_from([1, 3, 10, 25, 40.5]))
        app, milli = f"a{draw(st.integers(1, 6))}", None if whole else draw(shares)
        jobs.append(Job(f"j{number}", draw(times), gang, work, app=app, gpu_milli=milli))
    return jobs


def waits_beside_room(result: Result) -> list[tuple[str, float]]:
    """Return (app, second) of apps that hold nothing while a fraction of theirs would fit."""
    last = pl.col("gpu_first") + pl.col("gpus")
    leases = result.leases.with_columns(gpu=pl.int_ranges("gpu_first", last)).explode("gpu")
    apps = result.apps.filter(pl.col("jobs") == 1)
    jobs = result.jobs.filter(
        (pl.col("gpu_milli") < 1000) & pl.col("app_id").is_in(apps["app_id"].implode())
    )
    times = sorted({*leases["start_s"], *leases["end_s"], *result.jobs["submit_s"]})
    wrong = []
    for at_s, _ in pairwise(times):
        held = leases.filter((pl.col("start_s") <= at_s) & (pl.col("end_s") > at_s))
        shared = held.filter(pl.col("gpu_milli") < 1000)
        used = shared.group_by("machine", "gpu").agg(pl.col("gpu_milli").sum())
        least = used["gpu_milli"].min()
        waiting = jobs.filter(
            (pl.col("submit_s") <= at_s)
            & (pl.col("end_s").fill_null(float("inf")) > at_s)
            & ~pl.col("app_id").is_in(held["app_id"].implode())
        )
        if isinstance(least, int):
            fits = waiting.filter(pl.col("gpu_milli") + least <= 1000)
            wrong += [(app, at_s) for app in fits["app_id"]]
    return wrong


@settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    loads(),
    st.sampled_from(["1x1", "1x3", "2x2", "2x(1x2)"]),
    st.fixed_dictionaries(
        {
            "policy": st.sampled_from(NAMES),
            "lease_s": st.sampled_from([5.0, 10.0, 600.0]),
            "lease_mode": st.sampled_from(["aligned", "rolling"]),
            "restart_s": st.sampled_from([0.0, 2.0]),
        }
    ),
)
def test_no_fraction_waits_beside_room(jobs: list[Job], spec: str, options: Any) -> None:  # noqa: ANN401
    result = themis.simulate(workload(jobs), Cluster.parse(spec), audit=True, **options)
    assert waits_beside_room(result) == []
    if len({job.app for job in jobs}) == len(jobs):  # an app of one job each: all is done
        assert set(result.jobs["state"]) <= {"done", "infeasible"}
