"""Mean differences of the same apps, by hand, and their intervals against other ways."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.errors import ThemisError
from themis.metrics.statistics import bootstrap_interval
from themis.results.differences import differences
from themis.results.paired import cut_off_pairs

Run = tuple[str, str, str, int, float | None, float | None]

RUNS: Sequence[Run] = [
    ("a", "ann", "fifo", 0, 100.0, 1.0),
    ("b", "ann", "fifo", 0, 200.0, 2.0),
    ("c", "bob", "fifo", 0, None, 3.0),
    ("a", "ann", "fifo", 1, 100.0, 1.0),
    ("b", "ann", "fifo", 1, 200.0, 2.0),
    ("c", "bob", "fifo", 1, 50.0, 1.0),
    ("a", "ann", "themis", 0, 60.0, 0.5),
    ("b", "ann", "themis", 0, 230.0, 2.5),
    ("c", "bob", "themis", 0, 10.0, 0.5),
    ("a", "ann", "themis", 1, 80.0, 0.75),
    ("b", "ann", "themis", 1, 230.0, 2.5),
    ("c", "bob", "themis", 1, 40.0, 0.5),
]


def rows(runs: Sequence[Run]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "app_id": app,
                "user": user,
                "tenant": "x",
                "policy": policy,
                "seed": seed,
                "state": "unfinished" if completion is None else "done",
                "completion_s": completion,
                "rho": rho,
            }
            for app, user, policy, seed, completion, rho in runs
        ],
        infer_schema_length=None,
    )


def test_the_mean_is_over_apps_and_an_app_is_the_mean_of_its_seeds() -> None:
    (row,) = differences(rows(RUNS), "fifo").to_dicts()
    # a: (40 + 20) / 2, b: -30, c: 10 (the other seed is cut off under fifo)
    assert (row["policy"], row["apps"], row["cut_off"]) == ("themis", 3, 1)
    assert row["sooner_s"] == pytest.approx((30 - 30 + 10) / 3)
    assert row["rho_change"] == pytest.approx((-0.375 + 0.5 - 0.5) / 3)
    assert (row["sooner_low_s"], row["rho_change_high"]) == (None, None)  # too few apps


def test_users_and_apps_have_rows_of_their_own() -> None:
    users = differences(rows(RUNS), "fifo", by="user")
    assert users.select("user", "apps", "cut_off", "sooner_s").rows() == [
        ("ann", 2, 0, 0.0),
        ("bob", 1, 1, 10.0),
    ]
    apps = differences(rows(RUNS), "fifo", by="app")
    assert apps.select("app_id", "sooner_s").rows() == [("a", 30.0), ("b", -30.0), ("c", 10.0)]
    with pytest.raises(ThemisError, match="by is 'day': expected one of policy, tenant, user, app"):
        differences(rows(RUNS), "fifo", by="day")  # type: ignore[arg-type]


def test_who_never_finishes_is_counted_and_not_averaged() -> None:
    runs = [run for run in RUNS if run[0] == "c" and run[3] == 0]
    (row,) = differences(rows(runs), "fifo").to_dicts()
    assert (row["apps"], row["cut_off"], row["sooner_s"]) == (0, 1, None)
    assert cut_off_pairs(rows(runs), "fifo").get_column("app_id").to_list() == ["c"]


@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(random: object) -> None:
    shuffled = list(RUNS)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = sorted(shuffled, key=lambda run: run[2] != "fifo")  # the order of policies stays
    for by in ("policy", "user", "app"):
        assert differences(rows(again), "fifo", by=by).equals(
            differences(rows(RUNS), "fifo", by=by)
        )


def test_the_interval_is_that_of_all_resamples() -> None:
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    every = [np.mean(resample) for resample in product(values, repeat=5)]
    low, high = np.quantile(every, [0.025, 0.975])
    assert bootstrap_interval(values) == pytest.approx((low, high), rel=0.12)


def test_the_interval_of_many_values_is_the_normal_one() -> None:
    values = np.random.default_rng(5).exponential(3.0, 4000)
    half = NormalDist().inv_cdf(0.975) * values.std() / np.sqrt(values.size)
    expected = (values.mean() - half, values.mean() + half)
    assert bootstrap_interval(values) == pytest.approx(expected, rel=0.01)


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(8)
    covered = 0
    for _ in range(300):
        low, high = bootstrap_interval(draw.normal(2.0, 1.0, 30))
        assert low is not None
        assert high is not None
        covered += low <= 2.0 <= high
    assert 0.89 <= covered / 300 <= 0.98


def test_few_values_have_no_interval() -> None:
    assert bootstrap_interval(np.arange(4.0)) == (None, None)
    assert bootstrap_interval(np.full(5, 7.0)) == (7.0, 7.0)
