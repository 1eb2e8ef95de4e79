"""Metrics over time, made of a few apps and leases at once, against plain loops over seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.metrics import by_app, thrash
from themis.metrics.by_app import app_rows
from themis.metrics.thrash import longest_waits, repeats, thrash_metrics
from themis.metrics.waiting import covered_us

LAST_S = 30
RUNS = settings(derandomize=True, deadline=None, max_examples=150)
IDS = ("a", "b", "an-app-of-a-long-name", "d")
SECONDS = st.integers(0, LAST_S)
LEASES = {
    "app_id": pl.String,
    "machine": pl.String,
    "gpu_first": pl.Int64,
    "gpus": pl.Int64,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "ended_by": pl.String,
}
JOBS = {
    "app_id": pl.String,
    "submit_s": pl.Float64,
    "end_s": pl.Float64,
    "gang_size": pl.Int64,
    "state": pl.String,
}


class Run(NamedTuple):
    apps: pl.DataFrame
    jobs: pl.DataFrame
    leases: pl.DataFrame
    usage: pl.DataFrame


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Apps that all end at `LAST_S`, jobs and leases of any times: no scheduler made them."""
    ids = draw(st.permutations(IDS[: draw(st.integers(1, len(IDS)))]))
    spans = st.tuples(SECONDS, SECONDS).map(sorted)
    jobs = [
        (app, float(since), draw(st.sampled_from([float(until), None])), draw(st.integers(0, 2)))
        for app in draw(st.lists(st.sampled_from(ids), min_size=1, max_size=6))
        for since, until in [draw(spans)]
    ]
    leases = [
        (
            *(app, draw(st.sampled_from("mn")), draw(st.integers(0, 2)), draw(st.integers(1, 2))),
            *(float(since), float(until), draw(st.sampled_from(["expired", "job_end"]))),
        )
        for app in draw(st.lists(st.sampled_from(ids), max_size=12))
        for since, until in [draw(spans)]
    ]
    leases += [(ids[0], "m", 0, 1, float(LAST_S), float(LAST_S), "horizon")]
    return Run(
        apps=pl.DataFrame({"app_id": ids, "arrival_s": 0.0, "end_s": float(LAST_S)}).with_columns(
            state=pl.lit("done"), t_id_s=pl.lit(10.0)
        ),
        jobs=pl.DataFrame([(*job, "done") for job in jobs], schema=JOBS, orient="row"),
        leases=pl.DataFrame(leases, schema=LEASES, orient="row"),
        usage=pl.DataFrame({"at_s": [0.0, float(LAST_S)]}),
    )


@contextmanager
def few_at_once() -> Iterator[None]:
    with (
        patch.object(by_app, "_APPS_AT_ONCE", 2),
        patch.object(by_app, "_IDS_AT_ONCE", 3),
        patch.object(thrash, "_LEASES_AT_ONCE", 3),
    ):
        yield


def holds(run: Run, app: str, second: int) -> bool:
    rows = run.leases.filter(app_id=app).select("start_s", "end_s").iter_rows()
    return any(start <= second < end for start, end in rows)


@RUNS
@given(run=runs())
def test_covered_time_counts_the_seconds_with_a_lease(run: Run) -> None:
    with few_at_once():
        found = covered_us(run.apps["app_id"], run.leases)
    for app, us in zip(run.apps["app_id"], found, strict=True):
        assert us == 1_000_000 * sum(holds(run, app, second) for second in range(LAST_S))


@RUNS
@given(run=runs())
def test_the_longest_wait_is_the_longest_run_of_seconds_without_a_gpu(run: Run) -> None:
    with few_at_once():
        found = longest_waits(*run)
    for app, wait_s in found.select("app_id", "wait_s").iter_rows():
        jobs = run.jobs.filter(pl.col("gang_size") > 0, app_id=app)
        spans = jobs.select("submit_s", pl.col("end_s").fill_null(LAST_S)).rows()
        longest = now = 0
        for second in range(LAST_S):
            wants = any(since <= second < until for since, until in spans)
            now = now + 1 if wants and not holds(run, app, second) else 0
            longest = max(longest, now)
        assert wait_s == (longest or None)


def held_at(run: Run, second: float) -> Counter[tuple[str, str, int]]:
    """Return who holds which GPUs from an instant on, shares of one counted each."""
    held: Counter[tuple[str, str, int]] = Counter()
    for app, machine, first, gpus, start, end, ended_by in run.leases.iter_rows():
        if start <= second and (second < end or ended_by == "horizon"):
            held.update((app, machine, gpu) for gpu in range(first, first + gpus))
    return held


@RUNS
@given(run=runs())
def test_cycles_are_states_that_come_back_while_nothing_is_submitted_or_ends(run: Run) -> None:
    with few_at_once():
        found = repeats(run.jobs, run.leases).rows()
    quiet = sorted({*run.jobs["submit_s"], *run.jobs["end_s"].drop_nulls()})
    expected = []
    for since, until in zip(quiet, [*quiet[1:], LAST_S + 1.0], strict=True):
        instants = [at for at in range(LAST_S + 1) if since <= at < until]
        changed = [at for at in instants if held_at(run, at) != held_at(run, at - 1)]
        states = {frozenset(held_at(run, at).items()) for at in changed}
        if len(states) < len(changed):
            times = len(changed) - len(states)
            expected.append((since, float(changed[-1]), times, len(states)))
    assert found == sorted(expected, key=lambda row: (-row[2], row[0]))
    with few_at_once():
        figures = thrash_metrics(*run)
    lost = run.leases.filter(ended_by="expired").select("app_id", "end_s").unique()
    assert figures["evictions"] == lost.height
    assert figures["repeated_allocations"] == sum(times for _, _, times, _ in expected)
    most = lost.group_by("app_id").len()["len"].max() or 0
    assert figures["evictions_per_app_hour_max"] == most


@pytest.mark.parametrize("values", [2**64, 3, 1])
@given(asked=st.lists(st.sampled_from([*IDS, "x", "y"]), max_size=12), order=st.permutations(IDS))
def test_ids_of_one_hash_are_told_apart(values: int, asked: list[str], order: list[str]) -> None:
    real = pl.Series.hash

    def hashed(series: pl.Series) -> pl.Series:
        return pl.Series([value % values for value in real(series)], dtype=pl.UInt64)

    with few_at_once(), patch.object(pl.Series, "hash", hashed):
        found = app_rows(pl.Series(order), pl.Series(asked, dtype=pl.String))
    assert found.tolist() == [order.index(app) if app in order else -1 for app in asked]
