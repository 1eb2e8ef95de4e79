from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.metrics.catalogue import CATALOGUE, HEADLINES
from themis.metrics.curves import cumulative_distribution, usage_over_time
from themis.metrics.gpu_time import usage_metrics
from themis.metrics.statistics import (
    exact_sum,
    jain_index,
    mean,
    median_interval,
    quantile,
    weighted_mean,
)
from themis.results.result import Result
from themis.schema.result import TABLES

if TYPE_CHECKING:
    from tests.unit.conftest import MakeResult, MakeTable

FLOATS = st.lists(st.floats(min_value=1e-3, max_value=1e9), min_size=1, max_size=60)
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_tiny_run_has_the_figures_worked_out_by_hand(tiny_result: Result) -> None:
    assert tiny_result.summary() == pytest.approx(
        {
            "apps": 3,
            "apps_done": 2,
            "apps_failed": 0,
            "apps_infeasible": 0,
            "apps_rejected": 0,
            "apps_unfinished": 1,
            "jobs": 3,
            "jobs_done": 2,
            "jobs_killed": 0,
            "jobs_failed": 0,
            "jobs_infeasible": 0,
            "jobs_rejected": 0,
            "jobs_unfinished": 1,
            "rho_apps": 2,
            "rho_max": 2.0,
            "rho_p99": 0.5 + 0.99 * 1.5,
            "rho_p90": 0.5 + 0.90 * 1.5,
            "rho_median": 1.25,
            "rho_mean": 1.25,
            "rho_bounds": 1,
            "rho_bound_max": 4.0,
            "rho_floor_max": 0.5,
            "share_rho_le_1": 0.5,
            "share_rho_le_1_05": 0.5,
            "jain": 2.5**2 / (2 * (0.25 + 4.0)),
            "makespan_s": 210.0,
            "makespan_is_bound": True,
            "app_completion_mean_s": 150.0,
            "app_completion_p50_s": 150.0,
            "app_completion_p95_s": 195.0,
            "app_completion_p99_s": 199.0,
            "job_completion_mean_s": 150.0,
            "job_completion_p50_s": 150.0,
            "job_completion_p95_s": 195.0,
            "job_completion_p99_s": 199.0,
            "queue_mean_s": 20.0,
            "queue_p50_s": 20.0,
            "queue_p95_s": 38.0,
            "queue_p99_s": 39.6,
            "queue_max_s": 40.0,
            "never_started_apps": 1,
            "without_gpus_mean_s": 30.0,
            "without_gpus_p50_s": 30.0,
            "without_gpus_p95_s": 57.0,
            "without_gpus_p99_s": 59.4,
            "preemptions": 2,
            "preemptions_per_app": 2 / 3,
            "migrations": 1,
            "migrations_per_app": 1 / 3,
            "failures": 0,
            "preempted_apps_share": 1 / 3,
            "evictions": 2,
            "evictions_per_app_hour": 2 * 3600 / (100 + 200 + 280),
            "evictions_per_app_hour_max": 2.0,  # over an hour at least
            "repeated_allocations": 1,  # that of 60 s again at 90 s
            "starved_apps": 1,
            "wait_longest_s": 280.0,
            "wait_longest_ratio": 280 / 50,
            "gpu_s": 600.0,
            "useful_gpu_s": 420.0,
            "slowed_gpu_s": 100.0,
            "switching_gpu_s": 60.0,
            "lost_gpu_s": 0.0,
            "idle_gpu_s": 20.0,
            "useful_share": 0.7,
            "placement_score": (0.75 * 400 + 1.0 * 120) / 520,
            "perfectly_placed_apps_share": 0.5,
            "utilisation": (4 * 50 + 8 * 50 + 4 * 110) / (8 * 300),
            "productive_utilisation": (4 * 50 + 6 * 50 + 4 * 110) / (8 * 300),
            "contention_mean": (10 * 1 + 10 * 2 + 30 * 3 + 50 * 3 + 110 * 2 + 90 * 1) / 300,
            "contention_max": 3,
            "auctions": 2,
            "auction_bidders_mean": 1.5,
            "auction_offered_gpus_mean": 6.0,
            "auction_leftover_gpus_mean": 2.0,
            "auction_leftover_share": 1 / 3,
            "auction_c_min": 0.5,
            "auction_c_mean": 0.875,
            "auction_gap_mean": 0.01,
            "auction_gap_max": 0.02,
        },
        rel=1e-12,
    )


def test_a_run_of_nothing_has_nulls_and_zeros_only(make_table: MakeTable) -> None:
    frames = {name: make_table(name, []) for name in TABLES}
    summary = Result(frames=frames, manifest={"policy": "fifo", "seed": 0}).summary()
    counts = ("apps", "jobs", "preemptions", "migrations")
    assert all(summary[name] == 0 for name in counts)
    assert summary["rho_max"] is None
    assert summary["utilisation"] is None
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_no_metric_is_ever_nan(make_result: MakeResult) -> None:
    for result in (make_result(1), make_result(50, auctions=False)):
        for name, value in result.summary().items():
            assert value is None or math.isfinite(value), name


def test_every_metric_is_catalogued_in_order_and_defined_in_the_docs(tiny_result: Result) -> None:
    assert list(CATALOGUE) == list(tiny_result.summary())
    assert set(HEADLINES) <= set(CATALOGUE)
    defined = set(re.findall(r"`([a-z0-9_]+)`", DOCS.read_text(encoding="utf-8")))
    assert set(CATALOGUE) - defined == set()
    columns = {column for schema in TABLES.values() for column in schema}
    assert columns - defined == set()


def test_row_order_and_chunks_change_no_bit(make_result: MakeResult) -> None:
    result = make_result(500)
    shuffled = {
        name: frame if name == "usage" else frame.sample(fraction=1.0, shuffle=True, seed=3)
        for name, frame in result.frames.items()
    }
    split = {
        name: pl.concat([frame.head(7), frame.slice(7)], rechunk=False)
        for name, frame in shuffled.items()
    }
    again = Result(frames=split, manifest=result.manifest)
    assert again.summary() == result.summary()


def test_unfinished_apps_do_not_flatter_rho(tiny_result: Result) -> None:
    apps = tiny_result.apps.with_columns(rho_is_bound=pl.lit(value=True))
    frames = {**tiny_result.frames, "apps": apps}
    summary = Result(frames=frames, manifest=tiny_result.manifest).summary()
    assert summary["rho_apps"] == 0
    assert summary["rho_max"] is None
    assert summary["share_rho_le_1"] is None
    assert summary["rho_bounds"] == 3
    assert summary["rho_bound_max"] == 4.0


def test_usage_is_weighted_by_time_and_cut_to_the_span(make_table: MakeTable) -> None:
    usage = make_table(
        "usage",
        [
            dict(zip(TABLES["usage"], row, strict=True))
            for row in [(0.0, 4, 4, 4, 9, 0), (10.0, 4, 2, 1, 1, 0), (10.0, 4, 0, 0, 7, 0)]
        ],
    )
    assert usage_metrics(usage, 5.0, 15.0) == {
        "utilisation": 0.5,
        "productive_utilisation": 0.5,
        "contention_mean": 8.0,
        "contention_max": 9,
    }
    assert usage_metrics(usage, 12.0, 20.0)["contention_max"] == 7
    assert usage_metrics(usage, 5.0, 5.0)["utilisation"] is None
    assert usage_metrics(usage, None, 5.0)["contention_mean"] is None


@given(FLOATS)
def test_sums_do_not_depend_on_order(values: list[float]) -> None:
    array = np.array(values)
    assert exact_sum(array) == exact_sum(array[::-1]) == math.fsum(values)


@given(FLOATS)
def test_jain_lies_between_one_nth_and_one(values: list[float]) -> None:
    index = jain_index(np.array(values))
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


@given(FLOATS, st.floats(min_value=0, max_value=1))
def test_quantiles_are_between_the_extremes(values: list[float], q: float) -> None:
    found = quantile(np.array(values), q)
    assert found is not None
    assert min(values) <= found <= max(values)


def test_statistics_of_nothing_are_none() -> None:
    nothing = np.array([])
    assert mean(nothing) is None
    assert quantile(nothing, 0.5) is None
    assert jain_index(nothing) is None
    assert jain_index(np.zeros(3)) is None
    assert weighted_mean(np.ones(2), np.zeros(2)) is None
    assert median_interval(nothing) == (None, None)


def test_the_median_interval_is_the_sign_test() -> None:
    assert median_interval(np.arange(5.0)) == (None, None)
    assert median_interval(np.arange(6.0)) == (0.0, 5.0)
    # Ten values: 95 % needs the second and ninth (coverage 0.979), the third gives 0.891 only.
    assert median_interval(np.arange(10.0)) == (1.0, 8.0)
    exact_low, exact_high = median_interval(np.arange(1000.0))
    low, high = median_interval(np.arange(1001.0))
    assert exact_low is not None
    assert exact_high is not None
    assert low == pytest.approx(exact_low, abs=1)
    assert high == pytest.approx(exact_high, abs=2)


@given(FLOATS)
def test_a_distribution_of_few_values_is_exact(values: list[float]) -> None:
    frame = cumulative_distribution(np.array(values))
    for value, share in frame.iter_rows():
        assert share == pytest.approx(np.mean(np.array(values) <= value))
    assert frame.get_column("share").item(-1) == 1.0


def test_a_distribution_of_many_values_is_thinned_to_exact_points() -> None:
    values = np.random.default_rng(1).lognormal(0, 2, 50_000)
    frame = cumulative_distribution(values)
    assert 300 < frame.height <= 400
    value, share = frame.get_column("value").to_numpy(), frame.get_column("share").to_numpy()
    assert value[0] == values.min()
    assert value[-1] == values.max()
    assert np.isin(value, values).all()
    assert share == pytest.approx(np.searchsorted(np.sort(values), value, "right") / values.size)
    assert max(later - earlier for earlier, later in pairwise(share)) < 0.005


def test_a_time_series_keeps_the_integral(make_result: MakeResult) -> None:
    result = make_result(2000)
    start, end = result.apps["arrival_s"].min(), result.apps["end_s"].max()
    assert isinstance(start, float)
    assert isinstance(end, float)
    series = usage_over_time(result.usage, start, end)
    assert series.height == 300
    summary = result.summary()
    assert series["utilisation"].mean() == pytest.approx(summary["utilisation"])
    assert series["active_apps"].mean() == pytest.approx(summary["contention_mean"])
    assert 0 <= series["at_s"][0] < series["at_s"][-1] <= end - start


def test_a_time_series_starts_late_and_ends_level(make_table: MakeTable) -> None:
    row = dict(zip(TABLES["usage"], (5.0, 2, 1, 1, 1, 0), strict=True))
    series = usage_over_time(make_table("usage", [row]), 0.0, 10.0, bins=4)
    assert series["active_apps"].to_list() == [0.0, 0.0, 1.0, 1.0]
    assert series["utilisation"].to_list() == [0.0, 0.0, 0.5, 0.5]
    assert usage_over_time(make_table("usage", []), 0.0, 10.0).is_empty()
    assert usage_over_time(make_table("usage", [row]), 3.0, 3.0).is_empty()
