"""Properties of transformations: work stays with its jobs, rows may stand in any order."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.checking.offered_load import offered_load
from themis.cluster.cluster import Cluster
from themis.errors import TraceError
from themis.profiles import PROFILES
from themis.schema.workload import JOBS, apps_from_jobs
from themis.workload.transforms import apply_transforms, parse_transforms
from themis.workload.workload import Workload

Job = tuple[int, int, int, int, str | None, str | None]
CLUSTER = Cluster.parse("4x8")

jobs_of_apps = st.lists(
    st.tuples(
        st.integers(0, 8),  # app
        st.integers(0, 500),  # submission, s
        st.sampled_from([0, 1, 2, 3, 8, 30]),  # gang
        st.integers(0, 1000),  # duration, s
        st.sampled_from(["ann", "bob", "cai", None]),  # user of the app, by its first job
        st.sampled_from(["VGG-16", "ResNet-50 (batch size 32)", "mine", None]),
    ),
    min_size=1,
    max_size=25,
)

STEPS: dict[str, Callable[[Workload], Workload]] = {
    "scale:load=2.5": lambda w: w.scale(load=2.5),
    "window:start_s=100,end_s=400": lambda w: w.window(start_s=100, end_s=400),
    "sample:fraction=0.6,seed=3": lambda w: w.sample(fraction=0.6, seed=3),
    "sample:n=1,by=user": lambda w: w.sample(n=1, by="user"),
    "filter:where=gang_size IN (1, 8) OR user = 'ann'": lambda w: w.filter(
        pl.col("gang_size").is_in([1, 8]) | (pl.col("user") == "ann")
    ),
    "rigid": lambda w: w.rigid(),
    "elastic:min_factor=0.3,max_factor=3": lambda w: w.elastic(min_factor=0.3, max_factor=3),
    "assign_profiles:mix={vgg16=1, compute=2}": lambda w: w.assign_profiles(
        mix={"vgg16": 1, "compute": 2}
    ),
    "assign_profiles:models={mine='network'}": lambda w: w.assign_profiles(
        models={"mine": "network"}
    ),
}


def table(jobs: list[Job]) -> pl.DataFrame:
    users: dict[int, str | None] = {}
    rows = []
    for number, (app, submit, gang, duration, user, model) in enumerate(jobs):
        rows.append(
            {
                "job_id": f"j{number:02}",
                "app_id": f"a{app}",
                "submit_s": float(submit),
                "serial_time_s": float(duration * max(gang, 1)),
                "gang_size": gang,
                "max_gpus": gang,
                "profile": model,
                "checkpoint_s": None,
                "status": None,
                "user": users.setdefault(app, user),
            }
        )
    return pl.DataFrame(rows, schema={**JOBS, "user": pl.String()})


def made(rows: pl.DataFrame) -> Workload:
    return Workload(apps=apps_from_jobs(rows), jobs=rows.select(list(JOBS)))


def done(step: Callable[[Workload], Workload], workload: Workload) -> Workload | None:
    try:
        return step(workload)
    except TraceError:
        return None


def same(one: Workload | None, other: Workload | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.equals(other)


@settings(max_examples=200)
@given(text=st.sampled_from(list(STEPS)), jobs=jobs_of_apps, data=st.data())
def test_work_stays_and_the_order_of_rows_does_not_matter(
    text: str, jobs: list[Job], data: st.DataObject
) -> None:
    rows = table(jobs)
    workload = made(rows)
    after = done(STEPS[text], workload)
    places = data.draw(st.permutations(range(len(jobs))))
    assert same(after, done(STEPS[text], made(rows[list(places)])))
    if after is None:
        return
    work = dict(workload.jobs.select("job_id", "serial_time_s").iter_rows())
    cpu = set(workload.jobs.filter(pl.col("gang_size") == 0)["job_id"])
    left = dict(after.jobs.select("job_id", "serial_time_s").iter_rows())
    assert left.items() <= work.items()
    assert set(after.jobs.filter(pl.col("gang_size") == 0)["job_id"]) == cpu & set(left)
    assert after.gpu_seconds == math.fsum(work[name] for name in left if name not in cpu)
    totals = (
        f"; {len(left)} jobs of {len(work)}, {after.gpu_seconds:.6f} GPU-seconds of "
        f"{workload.gpu_seconds:.6f}"
    )
    assert f"{totals};" in f"{after.notes[-1]};"  # a window says more after them


@given(jobs=jobs_of_apps, chosen=st.lists(st.sampled_from(list(STEPS)), max_size=3))
def test_texts_mean_the_methods(jobs: list[Job], chosen: list[str]) -> None:
    def by_text(workload: Workload) -> Workload:
        return apply_transforms(workload, parse_transforms(chosen), cluster=None, seed=0)

    def by_method(workload: Workload) -> Workload:
        for text in chosen:
            workload = STEPS[text](workload)
        return workload

    workload = made(table(jobs))
    assert same(done(by_text, workload), done(by_method, workload))


@given(
    jobs=jobs_of_apps,
    first=st.sampled_from(["sample:fraction=0.6,seed=3", "window:start_s=100,end_s=400"]),
    second=st.sampled_from(
        ["sample:fraction=0.6,seed=3", "elastic:min_factor=0.3,max_factor=3", "rigid"]
        + [text for text in STEPS if text.startswith(("assign", "window"))]
    ),
)
def test_selections_of_whole_apps_may_change_places(
    jobs: list[Job], first: str, second: str
) -> None:
    workload = made(table(jobs))
    one, other = STEPS[first], STEPS[second]
    assert same(done(lambda w: other(one(w)), workload), done(lambda w: one(other(w)), workload))


@given(jobs=jobs_of_apps, seed=st.integers(0, 2**64 - 1), by=st.sampled_from(["app", "user"]))
def test_a_larger_sample_contains_a_smaller_one(jobs: list[Job], seed: int, by: str) -> None:
    workload = made(table(jobs))
    column = "app_id" if by == "app" else "user"
    units = set(workload.apps[column])
    if units == {None}:
        with pytest.raises(TraceError, match="no app of this workload names a user"):
            workload.sample(n=1, by=by, seed=seed)
        return
    last: set[object] = set()
    for n in range(1, len(units) + 1):
        sample = workload.sample(n=n, by=by, seed=seed)
        kept = set(sample.apps[column])
        assert (len(kept), kept > last) == (n, True)
        assert sample.apps.equals(
            workload.apps.filter(
                pl.col(column).map_elements(kept.__contains__, pl.Boolean, skip_nulls=False)
            )
        )
        last = kept


@given(jobs=jobs_of_apps, tenths=st.tuples(st.integers(1, 10), st.integers(10, 45)))
def test_elastic_jobs_have_the_limits_of_exact_arithmetic(
    jobs: list[Job], tenths: tuple[int, int]
) -> None:
    low, high = tenths
    after = made(table(jobs)).elastic(min_factor=low / 10, max_factor=high / 10)
    gangs = {f"j{number:02}": job[2] for number, job in enumerate(jobs)}
    for name, least, most in after.jobs.select("job_id", "gang_size", "max_gpus").iter_rows():
        gang = gangs[name]
        assert least == (max(1, math.ceil(Fraction(low * gang, 10))) if gang else 0)
        assert most == math.floor(Fraction(high * gang, 10))
    assert after.rigid().jobs["max_gpus"].equals(after.jobs["gang_size"])


@given(jobs=jobs_of_apps, least=st.integers(0, 30), longest_s=st.integers(0, 1000))
def test_filter_is_a_loop_over_jobs(jobs: list[Job], least: int, longest_s: int) -> None:
    workload = made(table(jobs))
    sizes = [sum(other[0] == job[0] for other in jobs) for job in jobs]
    expected = {
        f"j{number:02}"
        for number, job in enumerate(jobs)
        if job[2] >= least and job[3] <= longest_s and sizes[number] > 1
    }
    where = f"gang_size >= {least} AND duration_s <= {longest_s} AND app_jobs > 1"
    if not expected:
        with pytest.raises(TraceError, match="none of the"):
            workload.filter(where)
        return
    after = workload.filter(where)
    assert set(after.jobs["job_id"]) == expected
    first = {
        app: min(
            job[1] for n, job in enumerate(jobs) if f"a{job[0]}" == app and f"j{n:02}" in expected
        )
        for app in after.apps["app_id"]
    }
    assert dict(after.apps.select("app_id", "arrival_s").iter_rows()) == first
    twice = done(
        lambda w: w.filter(f"gang_size >= {least}").filter(f"duration_s <= {longest_s}"), workload
    )
    assert same(
        twice,
        done(lambda w: w.filter(f"gang_size >= {least} AND duration_s <= {longest_s}"), workload),
    )


@given(jobs=jobs_of_apps, load=st.sampled_from([0.1, 0.9, 3.0]))
def test_the_load_on_a_cluster_is_what_was_asked_for(jobs: list[Job], load: float) -> None:
    workload = made(table(jobs))
    if not offered_load(workload.apps, workload.jobs, CLUSTER).load:
        with pytest.raises(TraceError, match="expected jobs with GPUs that arrive at different"):
            workload.scale(load=load, cluster=CLUSTER)
        return
    after = workload.scale(load=load, cluster=CLUSTER)
    assert offered_load(after.apps, after.jobs, CLUSTER).load == pytest.approx(load)
    back = after.scale(load=2).scale(load=0.5)
    assert back.jobs["submit_s"].to_list() == pytest.approx(after.jobs["submit_s"].to_list())


@given(jobs=jobs_of_apps)
def test_model_names_find_built_in_profiles(jobs: list[Job]) -> None:
    workload = made(table(jobs))
    after = workload.assign_profiles(models={})
    known = {"VGG-16": "vgg16", "ResNet-50 (batch size 32)": "resnet50"}
    before = dict(workload.jobs.select("job_id", "profile").iter_rows())
    for name, profile in after.jobs.select("job_id", "profile").iter_rows():
        assert profile == known.get(before[name], before[name])
    drawn = workload.assign_profiles(mix={"vgg16": 1, "network": 0}, seed=5)
    assert set(drawn.apps["profile"]) == {"vgg16"} < set(PROFILES)
    assert drawn.jobs["profile"].null_count() == drawn.jobs.height
