"""Properties of generated searches, for any parameters."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.synthetic import generate


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    jobs_per_app=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    apps=st.none() | st.integers(1, 15),
    gangs=st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True),
    mean=st.none() | st.floats(0.5, 50),
    network=st.none() | st.floats(0, 1),
    arrivals=st.sampled_from(["poisson", "even", "together"]),
    seed=st.integers(0, 2**70),
)
def test_counts_work_and_order(  # noqa: PLR0917 - one parameter each
    jobs_per_app: list[int],
    apps: int | None,
    gangs: list[int],
    mean: float | None,
    network: float | None,
    arrivals: str,
    seed: int,
) -> None:
    workload = generate(
        "search",
        seed,
        jobs_per_app=jobs_per_app,
        apps=apps,
        gangs=gangs,
        mean_job_gpu_h=mean,
        network_share=network,
        arrivals=arrivals,
        elastic_factor=2,
    )
    frame, jobs = workload.apps, workload.jobs
    wanted = apps or len(jobs_per_app)
    assert frame.height == wanted
    # the numbers of jobs are dealt: nobody is dealt twice more often than another
    found = Counter(jobs.group_by("app_id").len()["len"].to_list())
    rounds, rest = divmod(wanted, len(jobs_per_app))
    for size, times in Counter(jobs_per_app).items():
        assert rounds * times <= found[size] <= (rounds + (rest > 0)) * times
    # gangs are those asked for, one an app, and no share is off by more than the largest app
    assert set(jobs["gang_size"]) <= set(gangs)
    assert (jobs.group_by("app_id").agg(pl.col("gang_size").n_unique())["gang_size"] == 1).all()
    for gang in gangs:
        off = abs(int((jobs["gang_size"] == gang).sum()) - jobs.height / len(gangs))
        assert off <= max(jobs_per_app)
    assert (jobs["max_gpus"] == 2 * jobs["gang_size"]).all()
    # durations are whole seconds, and the mean is what was asked for but for rounding
    durations = jobs["serial_time_s"] / jobs["gang_size"]
    assert (durations == durations.round()).all()
    assert (durations >= 1).all()
    if mean is not None:
        assert workload.gpu_seconds / jobs.height / 3600 == pytest.approx(mean, abs=8 / 3600)
    if network is not None:
        assert abs(int((frame["profile"] == "network").sum()) - network * wanted) <= 1
    assert frame["arrival_s"][0] == 0.0
    assert frame["app_id"].to_list() == sorted(frame["app_id"].to_list())
    assert (jobs["iterations"] == jobs["iterations"].round()).all()
