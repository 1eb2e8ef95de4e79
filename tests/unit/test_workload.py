"""Workloads: what is refused, and what transformations keep."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

from themis.errors import TraceError
from themis.schema.host import OF_GPU
from themis.schema.workload import APPS, JOBS
from themis.synthetic import generate
from themis.traces import read_trace
from themis.workload.workload import Workload


def workload(*jobs: tuple[str, float, int, str], users: str = "") -> Workload:
    """Single-job apps of (job, submit_s, gang, tenant), each of 10 GPU-seconds."""
    names = [name for name, _, _, _ in jobs]
    apps = pl.DataFrame(
        {
            "app_id": names,
            "user": list(users) if users else [None] * len(jobs),
            "tenant": [tenant for _, _, _, tenant in jobs],
            "arrival_s": [float(submit) for _, submit, _, _ in jobs],
            "stopping": ["all"] * len(jobs),
            "weight": [1.0] * len(jobs),
            "profile": [None] * len(jobs),
            "gpu_types": [None] * len(jobs),
            "max_gpus": [None] * len(jobs),
            "target_loss": [None] * len(jobs),
        },
        schema=APPS,
    )
    table = pl.DataFrame(
        {
            "job_id": names,
            "app_id": names,
            "submit_s": [float(submit) for _, submit, _, _ in jobs],
            "serial_time_s": [10.0] * len(jobs),
            "gang_size": [gang for _, _, gang, _ in jobs],
            "max_gpus": [gang for _, _, gang, _ in jobs],
            "profile": [None] * len(jobs),
            "checkpoint_s": [None] * len(jobs),
            "status": [None] * len(jobs),
            "iterations": [None] * len(jobs),
            "loss_a": [None] * len(jobs),
            "loss_b": [None] * len(jobs),
            "loss_c": [None] * len(jobs),
            "bracket": [None] * len(jobs),
            "gpu_milli": [None] * len(jobs),
            "mixes_types": [None] * len(jobs),
            **{name: [None] * len(jobs) for name in OF_GPU},
        },
        schema=JOBS,
    )
    return Workload(apps=apps, jobs=table)


def members(grouped: Workload) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for job_id, app_id in grouped.jobs.select("job_id", "app_id").iter_rows():
        found.setdefault(app_id, []).append(job_id)
    return found


def test_rows_are_put_in_canonical_order() -> None:
    one = workload(("b", 5, 1, "t"), ("a", 5, 1, "t"), ("c", 0, 1, "t"))
    other = workload(("c", 0, 1, "t"), ("b", 5, 1, "t"), ("a", 5, 1, "t"))
    assert one.jobs["job_id"].to_list() == ["c", "a", "b"]
    assert one.equals(other)
    assert one.apps.schema == pl.Schema(APPS)
    assert one.jobs.schema == pl.Schema(JOBS)
    assert repr(one) == "Workload(memory: 3 apps, 3 jobs, 30 GPU-seconds)"


@pytest.mark.parametrize(
    ("table", "column", "value", "message"),
    [
        ("jobs", "serial_time_s", math.nan, "serial_time_s is nan: expected a number"),
        ("jobs", "serial_time_s", math.inf, "serial_time_s is inf: expected a number"),
        ("jobs", "serial_time_s", -1.0, "serial_time_s is -1.0: expected 0 or more"),
        ("jobs", "serial_time_s", 1e13, "expected a number up to 1e"),
        ("jobs", "submit_s", None, "submit_s is None: expected a value"),
        ("jobs", "gang_size", -1, "gang_size is -1: expected 0 or more"),
        ("jobs", "max_gpus", 1, "max_gpus is 1: expected gang_size or more"),
        ("jobs", "max_gpus", None, "max_gpus is None: expected a value"),
        ("jobs", "max_gpus", 2_000_000, "expected at most 1000000"),
        ("jobs", "checkpoint_s", -1.0, "checkpoint_s is -1.0: expected 0 or more"),
        ("jobs", "checkpoint_s", math.nan, "checkpoint_s is nan"),
        ("jobs", "app_id", "zz", "app_id is 'zz': expected the id of an app"),
        ("jobs", "submit_s", 9.0, "expected the submission of the app's earliest job"),
        ("apps", "arrival_s", 9.0, "expected no later than the app's earliest job"),
        ("apps", "arrival_s", -9.0, "arrival_s is -9.0: expected 0 or more"),
        *(
            ("apps", "weight", bad, f"weight is {bad}: expected a weight from 1e-09 to 1e+09")
            for bad in (0.0, -1.0, 1e10)
        ),
        ("apps", "weight", math.nan, "weight is nan: expected a number"),
        ("apps", "weight", math.inf, "weight is inf: expected a number"),
        ("apps", "stopping", "hyperband", "expected one of all, first, successive_halving"),
        ("apps", "max_gpus", 0, "max_gpus is 0: expected 1 to 1000000, or null"),
        ("apps", "max_gpus", 1, "max_gpus is 1: expected the largest gang of its jobs or more"),
        ("apps", "target_loss", math.nan, "target_loss is nan"),
        ("jobs", "iterations", 0.0, "iterations is 0.0: expected a positive number, or null"),
        ("jobs", "iterations", math.inf, "iterations is inf"),
        ("jobs", "loss_a", -0.1, "loss_a is -0.1: expected 0 or more"),
        ("jobs", "loss_b", 0.0, "loss_b is 0.0: expected a positive number"),
        ("jobs", "bracket", -1, "bracket is -1: expected 0 to 1000000, or null"),
        ("jobs", "gpu_milli", 0, "gpu_milli is 0: expected 1 to 1000, or null"),
        ("jobs", "gpu_milli", 500, "expected 1000, since it is not a job of one GPU"),
        ("jobs", "loss_c", 0.1, "loss_a is None: expected a value, since the job has a loss curve"),
        ("apps", "app_id", "", "expected an id that is not empty"),
    ],
)
def test_bad_value_is_refused_by_name(table: str, column: str, value: object, message: str) -> None:
    good = workload(("a", 0, 2, "t"))
    frames = {"apps": good.apps, "jobs": good.jobs}
    kind = frames[table].schema[column]
    frames[table] = frames[table].with_columns(pl.lit(value, kind).alias(column))
    with pytest.raises(TraceError) as caught:
        Workload(apps=frames["apps"], jobs=frames["jobs"])
    assert message in str(caught.value)
    assert str(caught.value).startswith("workload table ")


def test_bad_tables_are_refused() -> None:
    good = workload(("a", 0, 2, "t"), ("b", 0, 2, "t"))
    with pytest.raises(TraceError, match="column 'gang_size' is missing"):
        Workload(apps=good.apps, jobs=good.jobs.drop("gang_size"))
    with pytest.raises(TraceError, match="column 'colour' is unknown"):
        Workload(apps=good.apps.with_columns(colour=1), jobs=good.jobs)
    with pytest.raises(TraceError, match="column 'gang_size' has type String: expected Int64"):
        Workload(apps=good.apps, jobs=good.jobs.with_columns(pl.col("gang_size").cast(pl.String)))
    with pytest.raises(TraceError, match="job_id is 'a': expected an id that stands once"):
        Workload(apps=good.apps, jobs=good.jobs.with_columns(job_id=pl.lit("a")))
    with pytest.raises(TraceError, match="app_id is 'b': expected an app with at least one job"):
        Workload(apps=good.apps, jobs=good.jobs.head(1))
    with pytest.raises(TraceError, match="'jobs' has no rows"):
        Workload(apps=good.apps, jobs=good.jobs.clear())


def test_columns_that_may_be_null_may_be_absent() -> None:
    full = workload(("a", 0, 2, "t"))
    apps = full.apps.select("app_id", "tenant", "arrival_s", "stopping", "weight")
    jobs = full.jobs.select(
        "job_id", "app_id", "submit_s", "serial_time_s", "gang_size", "max_gpus"
    )
    assert Workload(apps=apps, jobs=jobs).equals(full)


def test_a_loss_curve_needs_iterations() -> None:
    good = workload(("a", 0, 2, "t"))
    curve = {"loss_a": 0.5, "loss_b": 1.0, "loss_c": 0.0}
    with pytest.raises(TraceError, match="iterations is None: expected a value, since the job has"):
        Workload(apps=good.apps, jobs=good.jobs.with_columns(**curve))
    whole = Workload(apps=good.apps, jobs=good.jobs.with_columns(**curve, iterations=100))
    assert whole.jobs.select("iterations", *curve).row(0) == (100.0, 0.5, 1.0, 0.0)


def test_bursts_become_apps() -> None:
    """Gaps of at most 60 s chain; tenant and gang keep apart."""
    jobs = workload(
        ("j1", 0, 1, "t"),
        ("j2", 60, 1, "t"),
        ("j3", 120.5, 1, "t"),
        ("j4", 130, 1, "t"),
        ("j5", 10, 2, "t"),
        ("j6", 10, 1, "s"),
        ("j7", 10, 1, "t"),
    )
    grouped = jobs.group_into_apps()
    assert members(grouped) == {
        "app-000001": ["j1", "j7", "j2"],
        "app-000002": ["j5"],
        "app-000003": ["j6"],
        "app-000004": ["j3", "j4"],
    }
    assert grouped.apps.select("app_id", "tenant", "arrival_s").rows() == [
        ("app-000001", "t", 0.0),
        ("app-000002", "t", 10.0),
        ("app-000003", "s", 10.0),
        ("app-000004", "t", 120.5),
    ]
    assert grouped.gpu_seconds == jobs.gpu_seconds
    [note] = grouped.notes
    assert note == (
        "group_into_apps(gap_s=60, max_jobs=100, keys=user, tenant, gang_size): 4 apps of 7; 7 "
        "jobs of 7, 70.000000 GPU-seconds of 70.000000"
    )


def test_jobs_of_different_apps_rules_are_never_grouped() -> None:
    jobs = workload(("j1", 0, 1, "t"), ("j2", 0, 1, "t"), ("j3", 0, 1, "t"), ("j4", 0, 1, "t"))
    apps = jobs.apps.with_columns(
        max_gpus=pl.Series([4, 4, None, 8]), target_loss=pl.Series([0.1, 0.1, 0.1, 0.1])
    )
    grouped = Workload(apps=apps, jobs=jobs.jobs).group_into_apps()
    assert sorted(members(grouped).values()) == [["j1", "j2"], ["j3"], ["j4"]]
    assert sorted(grouped.apps.select("max_gpus", "target_loss").rows(), key=str) == [
        (4, 0.1), (8, 0.1), (None, 0.1),
    ]  # fmt: skip


def test_cap_splits_a_burst_and_keys_can_be_chosen() -> None:
    jobs = workload(*((f"j{i}", i, 1 + i % 2, "t") for i in range(5)), users="aabab")
    assert list(members(jobs.group_into_apps(keys=(), max_jobs=2)).values()) == [
        ["j0", "j1"],
        ["j2", "j3"],
        ["j4"],
    ]
    by_user = jobs.group_into_apps(keys=("user",))
    assert list(members(by_user).values()) == [["j0", "j1", "j3"], ["j2", "j4"]]
    assert by_user.apps["user"].to_list() == ["a", "b"]


def test_grouping_refuses_what_it_cannot_mean() -> None:
    jobs = workload(("j1", 0, 1, "t"), ("j2", 1, 1, "t"))
    with pytest.raises(TraceError, match="gap_s is -1: expected 0 or more"):
        jobs.group_into_apps(gap_s=-1)
    with pytest.raises(TraceError, match="gap_s is nan"):
        jobs.group_into_apps(gap_s=math.nan)
    with pytest.raises(TraceError, match="max_jobs is 0: expected 1 or more"):
        jobs.group_into_apps(max_jobs=0)
    with pytest.raises(TraceError, match="key 'usr' is unknown"):
        jobs.group_into_apps(keys=("usr",))
    with pytest.raises(TraceError, match="belong to 1 apps already"):
        jobs.group_into_apps().group_into_apps()


def test_scale_moves_submissions_and_keeps_work() -> None:
    jobs = workload(("j1", 100, 1, "t"), ("j2", 300, 1, "t"))
    twice = jobs.scale(load=2.0)
    assert twice.jobs["submit_s"].to_list() == [100.0, 200.0]
    assert twice.gpu_seconds == jobs.gpu_seconds
    assert twice.notes[0].startswith("scale(load=2): times divided by 2; 2 jobs of 2")
    for load in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(TraceError, match="expected a positive number"):
            jobs.scale(load=load)


def test_window_keeps_whole_apps_and_the_clock() -> None:
    jobs = workload(("j1", 0, 1, "t"), ("j2", 10, 1, "t"), ("j3", 20, 1, "t"))
    part = jobs.window(start_s=10, end_s=20)
    assert part.jobs.select("job_id", "submit_s").rows() == [("j2", 10.0)]
    assert part.notes[0].endswith("1 jobs of 3, 10.000000 GPU-seconds of 30.000000")
    with pytest.raises(TraceError, match="none of the 3 apps is left"):
        jobs.window(start_s=30)


def test_sample_is_seeded_and_grows_with_the_fraction() -> None:
    whole = generate("demo", apps=200)
    half = whole.sample(fraction=0.5, seed=4)
    assert half.equals(whole.sample(fraction=0.5, seed=4))
    assert not half.equals(whole.sample(fraction=0.5, seed=5))
    assert 70 < half.apps.height < 130
    more = whole.sample(fraction=0.7, seed=4)
    assert set(half.apps["app_id"]) < set(more.apps["app_id"])
    assert whole.sample(fraction=1).equals(whole)
    for fraction in (0.0, 1.5, math.nan):
        with pytest.raises(TraceError, match="expected more than 0"):
            whole.sample(fraction=fraction)
    with pytest.raises(TraceError, match="none of the 200 apps is left"):
        whole.sample(fraction=1e-12)


def test_write_is_repeatable_and_leaves_no_part_behind(tmp_path: Path) -> None:
    jobs = workload(("j1", 0, 1, "t"))
    jobs.write(tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    jobs.write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert sorted(first) == ["apps.parquet", "jobs.parquet"]
    assert read_trace(tmp_path).equals(jobs)
    with pytest.raises(TraceError, match="cannot be written"):
        jobs.write(tmp_path / "apps.parquet")


def test_fractions_stay_as_they_are_where_others_bend() -> None:
    load = workload(("a", 0, 1, "t"), ("b", 0, 2, "t"))
    milli = pl.when(pl.col("job_id") == "a").then(500).cast(pl.Int64)
    load = Workload(apps=load.apps, jobs=load.jobs.with_columns(gpu_milli=milli))
    bent = load.elastic(max_factor=4).jobs.select("job_id", "gang_size", "max_gpus", "gpu_milli")
    assert bent.rows() == [("a", 1, 1, 500), ("b", 2, 8, None)]


def test_a_search_has_no_fractions() -> None:
    good = workload(("a", 0, 1, "t"))
    jobs = good.jobs.with_columns(gpu_milli=pl.lit(500, pl.Int64))
    apps = good.apps.with_columns(stopping=pl.lit("successive_halving"))
    with pytest.raises(TraceError, match="gpu_milli is 500: expected 1000, since its app searches"):
        Workload(apps=apps, jobs=jobs)
