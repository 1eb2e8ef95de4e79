"""Random clusters of two GPU types: who runs where, who waits for whom, and what names decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import FREE_SWITCHES, Job, spans, workload

import themis
from themis import Cluster
from themis.policies.catalogue import POLICIES
from themis.results.result import Result
from themis.workload.workload import Workload

RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CLUSTERS = ("1x(1x4:a+1x2:b)", "2x(1x2:a+1x2:b)", "1x(2x2:a)+1x(1x4:b/2)", "1x(1x3:a+2x1:b)")
PROFILES = {
    None: {},
    "fast_a": {"scores": [1, 1, 0.8, 0.5], "speeds": {"a": 2.0, "b": 0.5}, "scaling": {2: 0.8}},
    "fast_b": {"scores": [1, 0.9, 0.9, 0.9], "speeds": {"a": 1.0, "b": 1.5}},
}
NAMES = tuple(info.name for info in POLICIES)
TYPES = (None, "a", "b", "a|b", "b|c", "c")


@st.composite
def loads(draw: st.DrawFn, types: tuple[str | None, ...] = TYPES) -> Workload:
    """Up to eight apps of one job, rigid or elastic, some bound to types."""
    listed, bound, mixing = [], [], []
    for number in range(draw(st.integers(1, 8))):
        gang = draw(st.sampled_from([1, 1, 2, 2, 3, 4, 5]))
        work = draw(st.sampled_from([7, 20, 60, 99.5, 400]))
        profile = draw(st.sampled_from(list(PROFILES)))
        at = draw(st.sampled_from([0, 0, 1, 5, 10, 30]))
        most = gang + draw(st.sampled_from([0, 0, 2]))
        listed.append(Job(f"j{number}", at, gang, work, most, profile=profile))
        bound.append(draw(st.sampled_from(types)))
        mixing.append(draw(st.sampled_from([None, True, False, False])))
    load = workload(listed)
    wanted = dict(zip([job.job_id for job in listed], bound, strict=True))
    column = pl.Series([wanted[app] for app in load.apps["app_id"]], dtype=pl.String)
    mixes = dict(zip([job.job_id for job in listed], mixing, strict=True))
    flags = pl.Series([mixes[job] for job in load.jobs["job_id"]], dtype=pl.Boolean)
    return Workload(
        apps=load.apps.with_columns(gpu_types=column),
        jobs=load.jobs.with_columns(mixes_types=flags),
    )


def play(load: Workload, cluster: Cluster, policy: str, rename: Mapping[str, str] = {}) -> Result:
    profiles: dict[str, Any] = {
        name: {
            **table,
            "speeds": {rename.get(k, k): v for k, v in table["speeds"].items()},  # type: ignore[attr-defined]
        }
        for name, table in PROFILES.items()
        if name is not None
    }
    return themis.simulate(
        load, cluster, policy=policy, profiles=profiles, lease_s=20, **FREE_SWITCHES
    )


def assert_one_type_at_a_time(kinds: list[str], leases: pl.DataFrame) -> None:
    spans = list(zip(kinds, leases["start_s"], leases["end_s"], strict=True))
    for kind, start_s, end_s in spans:
        for other, other_start_s, other_end_s in spans:
            assert kind == other or end_s <= other_start_s or other_end_s <= start_s


@RUNS
@given(loads(), st.sampled_from(CLUSTERS), st.sampled_from(NAMES))
def test_jobs_end_on_types_that_they_may_use_or_are_infeasible(
    load: Workload, spec: str, policy: str
) -> None:
    cluster = Cluster.parse(spec)
    result = play(load, cluster, policy)
    sizes = dict(cluster.machines.group_by("gpu_type").agg(pl.col("gpus").sum()).iter_rows())
    wanted = dict(load.apps.select("app_id", "gpu_types").iter_rows())
    allowed = {
        app: set(sizes) & set(words.split("|")) if words else set(sizes)
        for app, words in wanted.items()
    }
    mixes = dict(load.jobs.select("app_id", "mixes_types").iter_rows())
    for app, gang, state in result.jobs.select("app_id", "gang_size", "state").iter_rows():
        most = max if mixes[app] is False else sum
        fits = gang <= most([sizes[kind] for kind in allowed[app]] or [0])
        assert state == ("done" if fits else "infeasible")
    kind_of = dict(cluster.machines.select("machine", "gpu_type").iter_rows())
    for app, machine in result.leases.select("app_id", "machine").iter_rows():
        assert kind_of[machine] in allowed[app]
    for app, leases in result.leases.group_by("app_id"):
        if mixes[str(app[0])] is False:
            assert_one_type_at_a_time([kind_of[m] for m in leases["machine"]], leases)
    done = result.jobs.filter(state="done").join(load.jobs, on="job_id")
    assert ((done["work_gpu_s"] - done["serial_time_s"]).abs() < 1e-3).all()
    rho = result.apps.filter(state="done")
    assert (rho["rho"] >= rho["rho_floor"] * (1 - 1e-9)).all()


@RUNS
@given(
    loads(("a", "b")),
    st.sampled_from(CLUSTERS),
    st.sampled_from(["tiresias", "drf", "srtf", "srsf", "fifo_backfill"]),
)
def test_apps_of_one_type_run_as_if_there_was_no_other(
    load: Workload, spec: str, policy: str
) -> None:
    cluster = Cluster.parse(spec)
    whole = spans(play(load, cluster, policy))
    apart: dict[str, tuple[float | None, float | None]] = {}
    for kind in "ab":
        apps = load.apps.filter(gpu_types=kind)
        if apps.height:
            jobs = load.jobs.filter(pl.col("app_id").is_in(apps["app_id"].to_list()))
            part = Cluster(cluster.machines.filter(gpu_type=kind))
            apart |= spans(play(Workload(apps=apps, jobs=jobs), part, policy))
    assert whole == apart


@RUNS
@given(loads(), st.sampled_from(CLUSTERS), st.sampled_from(NAMES))
def test_names_of_types_decide_nothing(load: Workload, spec: str, policy: str) -> None:
    other = {"a": "z", "b": "k", "c": "c"}
    cluster = Cluster.parse(spec)
    renamed = Cluster(cluster.machines.with_columns(pl.col("gpu_type").replace(other)))
    words = [w and "|".join(other[x] for x in w.split("|")) for w in load.apps["gpu_types"]]
    column = pl.Series(words, dtype=pl.String)
    called = Workload(apps=load.apps.with_columns(gpu_types=column), jobs=load.jobs)
    before, after = play(load, cluster, policy), play(called, renamed, policy, other)
    for table in ("leases", "auctions", "usage"):
        assert getattr(before, table).equals(getattr(after, table))
    same = [name for name in before.apps.columns if name != "reason"]
    assert before.apps.select(same).equals(after.apps.select(same))
