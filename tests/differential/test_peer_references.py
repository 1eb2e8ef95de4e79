"""Backfill and fair sojourn against plain versions of their papers, on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.small import Job, play, spans

RUNS = settings(derandomize=True, deadline=None, max_examples=150)
NO_WEIGHTS: Mapping[str, int] = {}


def easy(gpus: int, jobs: list[Job], factor: int) -> dict[str, float]:
    """Return when each rigid job starts: EASY by a look at every second."""
    line = sorted(jobs, key=lambda job: (job.submit_s, job.job_id))
    running: list[tuple[int, int, int]] = []  # true end, requested end, GPUs
    starts: dict[str, float] = {}

    def begin(job: Job, now: int) -> None:
        length = round(job.work_gpu_s / job.gpus)
        running.append((now + length, now + factor * length, job.gpus))
        starts[job.job_id] = now
        line.remove(job)

    for now in count():
        if not line:
            return starts
        running = [one for one in running if one[0] > now]
        queue = [job for job in line if job.submit_s <= now]
        free = gpus - sum(one[2] for one in running)
        while queue and queue[0].gpus <= free:
            free -= queue[0].gpus
            begin(queue.pop(0), now)
        if not queue:
            continue
        head, *behind = queue
        # The first second at which the head would fit if all ended as requested.
        ends = sorted({max(one[1], now) for one in running})
        then, left = next(
            (end, gpus - sum(one[2] for one in running if one[1] > end))
            for end in ends
            if gpus - sum(one[2] for one in running if one[1] > end) >= head.gpus
        )
        spare = left - head.gpus
        for job in behind:
            over = now + factor * round(job.work_gpu_s / job.gpus) <= then
            if job.gpus <= free and (over or job.gpus <= spare):
                free -= job.gpus
                spare -= 0 if over else job.gpus
                begin(job, now)
    raise AssertionError("unreachable")


@st.composite
def rigid(draw: st.DrawFn) -> tuple[int, list[Job], int]:
    gpus = draw(st.integers(2, 6))
    jobs = [
        Job(f"j{k}", draw(st.integers(0, 12)), gang, gang * draw(st.integers(1, 12)))
        for k in range(draw(st.integers(2, 9)))
        for gang in [draw(st.integers(1, gpus))]
    ]
    return gpus, jobs, draw(st.sampled_from([1, 2, 3]))


@RUNS
@given(rigid())
def test_backfill_is_easy(case: tuple[int, list[Job], int]) -> None:
    gpus, jobs, factor = case
    result = play(f"1x{gpus}", jobs, "fifo_backfill", request_factor=factor)
    assert {job: start for job, (start, _) in spans(result).items()} == easy(gpus, jobs, factor)


def shared_ends(
    jobs: list[Job], until: int, gpus: int = 1, weights: Mapping[str, int] = NO_WEIGHTS
) -> dict[str, Fraction]:
    """Return when jobs end that share GPUs by weight, if only those up to `until` come."""
    left = {job.job_id: Fraction(job.work_gpu_s) for job in jobs if job.submit_s <= until}
    most = {job.job_id: job.gpus for job in jobs}
    arrive = {job.job_id: Fraction(job.submit_s) for job in jobs}
    ends: dict[str, Fraction] = {}
    now = Fraction(0)
    while left:
        here = [name for name in left if arrive[name] <= now]
        later = [arrive[name] for name in left if arrive[name] > now]
        weight = {name: weights.get(name, 1) for name in here}
        parts = {name: Fraction(gpus * weight[name], sum(weight.values())) for name in here}
        rate = {name: min(parts[name], Fraction(most[name])) for name in here}
        to = min([*later, *(now + left[name] / rate[name] for name in here)])
        for name in here:
            left[name] -= (to - now) * rate[name]
            if left[name] == 0:
                ends[name] = to
                del left[name]
        now = to
    return ends


def fair_sojourn(
    jobs: list[Job], lease: int, weights: Mapping[str, int] = NO_WEIGHTS
) -> dict[str, float]:
    """Return when each job ends: at each lease end and end of a job the first in shared time."""
    left = {job.job_id: round(job.work_gpu_s) for job in jobs}
    ends: dict[str, float] = {}
    holder: str | None = None
    for now in count():
        if not left:
            return ends
        waiting = [job.job_id for job in jobs if job.submit_s <= now and job.job_id in left]
        if waiting and (holder is None or now % lease == 0):
            shared = shared_ends(jobs, now, weights=weights)
            arrive = {job.job_id: job.submit_s for job in jobs}
            holder = min(waiting, key=lambda name: (shared[name], arrive[name], name))
        if holder is not None:
            left[holder] -= 1
            if left[holder] == 0:
                ends[holder] = now + 1
                del left[holder]
                holder = None
    raise AssertionError("unreachable")


def fair_sojourn_of_gangs(gpus: int, jobs: list[Job], lease: int) -> dict[str, float]:
    """Return when each gang ends: at lease ends and ends of jobs by the order of shared time."""
    left = {job.job_id: round(job.work_gpu_s) // job.gpus for job in jobs}
    size = {job.job_id: job.gpus for job in jobs}
    arrive = {job.job_id: job.submit_s for job in jobs}
    ends: dict[str, float] = {}
    runs: list[str] = []
    for now in count():
        if not left:
            return ends
        if now % lease == 0:
            runs = []
        shared = shared_ends(jobs, now, gpus)
        waiting = [name for name in left if arrive[name] <= now and name not in runs]
        for name in sorted(waiting, key=lambda name: (shared[name], arrive[name], name)):
            if sum(size[other] for other in [*runs, name]) <= gpus:
                runs.append(name)
        for name in list(runs):
            left[name] -= 1
            if left[name] == 0:
                ends[name] = now + 1
                runs.remove(name)
                del left[name]
    raise AssertionError("unreachable")


@st.composite
def singles(draw: st.DrawFn) -> list[Job]:
    works = draw(st.lists(st.integers(1, 15), min_size=2, max_size=7))
    return [Job(f"j{k}", draw(st.integers(0, 20)), 1, work) for k, work in enumerate(works)]


@RUNS
@given(singles(), st.sampled_from([1, 3, 10]))
def test_fsp_follows_the_ends_of_equal_shares(jobs: list[Job], lease: int) -> None:
    result = play("1x1", jobs, "fsp", lease_s=float(lease))
    ends = {job: end for job, (_, end) in spans(result).items()}
    assert ends == fair_sojourn(jobs, lease)


@RUNS
@given(singles(), st.lists(st.sampled_from([1, 2, 5]), min_size=7, max_size=7))
def test_fsp_follows_the_ends_of_weighted_shares(jobs: list[Job], weights: list[int]) -> None:
    given = {job.job_id: weight for job, weight in zip(jobs, weights, strict=False)}
    floats = {name: float(weight) for name, weight in given.items()}
    result = play("1x1", jobs, "fsp", lease_s=1.0, weights=floats)
    ends = {job: end for job, (_, end) in spans(result).items()}
    assert ends == fair_sojourn(jobs, 1, given)


@RUNS
@given(rigid(), st.sampled_from([1, 3, 10]))
def test_fsp_follows_the_ends_of_equal_shares_of_gangs(
    case: tuple[int, list[Job], int], lease: int
) -> None:
    gpus, jobs, _ = case
    result = play(f"1x{gpus}", jobs, "fsp", lease_s=float(lease))
    ends = {job: end for job, (_, end) in spans(result).items()}
    assert ends == fair_sojourn_of_gangs(gpus, jobs, lease)


@RUNS
@given(singles())
def test_fsp_ends_nobody_later_than_equal_shares(jobs: list[Job]) -> None:
    """Friedman and Henderson's theorem, but for whole leases of a second."""
    result = play("1x1", jobs, "fsp", lease_s=0.001)
    shared = shared_ends(jobs, max(round(job.submit_s) for job in jobs))
    for job, (_, end) in spans(result).items():
        assert end is not None
        assert end <= float(shared[job]) + 0.001 * len(jobs)
