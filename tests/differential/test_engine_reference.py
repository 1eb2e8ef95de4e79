"""The engine against a plain simulator that shares no code with it: same start, same end."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.reference import reference_schedule
from tests.differential.reference_shares import Life, Owner, reference_contention
from tests.differential.small import Job, play, spans

from themis.cluster.cluster import Cluster

RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow],
)
TIMES = st.one_of(
    st.sampled_from([0, 0, 5, 10, 10, 20, 30, 60, 100_000]),
    st.integers(0, 400).map(lambda tenths: tenths / 10),
)
WORK = st.one_of(
    st.sampled_from([0, 1, 10, 10, 20, 20, 30, 40, 60, 120]),
    st.integers(1, 2000).map(lambda tenths: tenths / 10),
)


@st.composite
def gang_jobs(draw: st.DrawFn) -> list[Job]:
    """Rigid gangs of up to 9 GPUs in up to 5 apps, far apart or near, some empty or too large."""
    return [
        Job(
            f"j{number}",
            draw(TIMES),
            draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4, 5, 9])),
            draw(WORK),
            app=f"a{draw(st.integers(1, 5))}",
            profile=draw(st.sampled_from([None, "network", "vgg16", "resnet50"])),
        )
        for number in range(draw(st.integers(1, 12)))
    ]


@st.composite
def lone_jobs(draw: st.DrawFn) -> list[Job]:
    """Apps of one rigid job each."""
    gangs = draw(st.sampled_from([[1], [1, 1, 2], [1, 2, 3, 4]]))
    return [
        Job(f"j{number}", draw(TIMES), draw(st.sampled_from(gangs)), draw(WORK))
        for number in range(draw(st.integers(1, 9)))
    ]


@RUNS
@given(
    gang_jobs(),
    st.sampled_from(["1x1", "1x4", "2x2", "2x(1x2)", "2x(2x2)", "1x8/2", "2x(1x4/2+1x3/2)", "3x3"]),
)
def test_fifo_with_gangs_slowdowns_and_apps_of_many_jobs(jobs: list[Job], spec: str) -> None:
    expected = reference_schedule(Cluster.parse(spec), jobs, "fifo")
    assert spans(play(spec, jobs, "fifo")) == expected


@RUNS
@given(gang_jobs(), st.data(), st.sampled_from(["1x1", "1x2", "1x4", "3x1"]))
def test_fifo_with_fractions_of_gpus(jobs: list[Job], data: st.DataObject, spec: str) -> None:
    shares = st.sampled_from([None, 1, 200, 300, 400, 500, 600, 999])
    draw = data.draw
    jobs = [job._replace(gpu_milli=draw(shares)) if job.gpus == 1 else job for job in jobs]
    expected = reference_schedule(Cluster.parse(spec), jobs, "fifo")
    assert spans(play(spec, jobs, "fifo", audit=True)) == expected


@RUNS
@given(lone_jobs(), st.integers(1, 4), st.sampled_from([3.0, 7.0, 10.0, 60.0, 600.0]))
def test_las_with_gangs_on_one_machine(jobs: list[Job], gpus: int, lease_s: float) -> None:
    spec = f"1x{gpus}"
    expected = reference_schedule(Cluster.parse(spec), jobs, "tiresias", lease_s)
    assert spans(play(spec, jobs, "tiresias", lease_s=lease_s)) == expected


@RUNS
@given(lone_jobs(), st.integers(1, 3))
def test_las_of_single_gpu_jobs_on_many_machines(jobs: list[Job], machines: int) -> None:
    ones = [job._replace(gpus=1) for job in jobs]
    spec = f"{machines}x1"
    expected = reference_schedule(Cluster.parse(spec), ones, "tiresias", 10.0)
    assert spans(play(spec, ones, "tiresias", lease_s=10.0)) == expected


OWNERS: dict[str, dict[str | None, Owner] | None] = {
    "plain": None,
    "by weight": {"x": Owner(weight=2.5)},
    "guaranteed": {"x": Owner(guaranteed=0.5), "y": Owner(3.0, 0.2)},
}


@RUNS
@given(
    lone_jobs(),
    st.lists(st.sampled_from([0.1, 0.3, 1.0, 2.5, 1e6]), min_size=9, max_size=9),
    st.lists(st.sampled_from([None, "x", "y"]), min_size=9, max_size=9),
    st.sampled_from(sorted(OWNERS)),
)
def test_contention_of_weights_and_tenants(
    jobs: list[Job], weights: list[float], tenants: list[str | None], kind: str
) -> None:
    schedule = reference_schedule(Cluster.parse("1x4"), jobs, "fifo")
    by_app = dict(zip([job.job_id for job in jobs], weights, strict=False))
    owner = dict(zip([job.job_id for job in jobs], tenants, strict=False))
    lives = {
        name: Life(round(job.submit_s * 1e6), round(end * 1e6), by_app[name], owner[name])
        for job in jobs
        if job.work_gpu_s > 0 and (end := schedule[name := job.job_id][1]) is not None
    }
    given_to = OWNERS[kind]
    tables = None if given_to is None else {name: one._asdict() for name, one in given_to.items()}
    result = play(
        *("1x4", jobs, "fifo"),
        weights=by_app,
        owners={name: tenant for name, tenant in owner.items() if tenant is not None},
        tenants=tables,
    )
    told = {app: n for app, n in result.apps.select("app_id", "n_avg").rows() if n is not None}
    assert told == pytest.approx(reference_contention(lives, given_to), rel=1e-13)
