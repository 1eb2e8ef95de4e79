"""Searches: how far halving lets each job run, caps on apps, targets; in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from tests.audit.facts import App, Facts, Job

__all__ = [
    "CHECKS",
    "is_doubling",
    "phases_of_median_jobs",
    "phases_that_ran",
    "share_to_target",
]


def is_doubling(facts: Facts) -> bool:
    """Whether jobs can use twice as many GPUs in every phase."""
    return bool(facts.settings["phase_cap"] == "doubling")


def _sizes(count: int) -> list[int]:
    """Jobs in each phase: halves, rounded up, down to one."""
    sizes = [count]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def _cut(job: Job, done: int, phases: int) -> Fraction:
    """GPU-microseconds that a job has done after so many phases."""
    if done == phases:
        return Fraction(job.work)
    share = Fraction(2**done - 1, 2**phases - 1)
    if job.iterations is None:
        return share * Fraction(job.work)
    every = Fraction(job.iterations)
    return (
        Fraction(job.work)
        * min(max(Fraction(math.floor(share * every)), Fraction(done)), every)
        / every
    )


def _loss(job: Job, work: Fraction) -> float:
    """Loss once so much work is done; the worst where nobody knows."""
    if job.loss is None or job.iterations is None:
        return math.inf
    a, b, c = job.loss
    return 1 / (a * float(Fraction(job.iterations) * work / Fraction(job.work)) + b) + c


def _fields(app: App, jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs in each phase."""
    del app
    sizes = _sizes(len(jobs))
    field = list(jobs)
    found = [field]
    for number, size in enumerate(sizes[1:], start=1):
        ranked = sorted(
            range(len(field)),
            key=lambda k: (_loss(field[k], _cut(field[k], number, len(sizes))), k),
        )
        field = [field[k] for k in sorted(ranked[:size])]
        found.append(field)
    return found


def _in_phase(job: Job, number: int, phases: int, *, doubling: bool) -> Job:
    """A job as it is in one phase: its work there, and the GPUs that it can use."""
    work = _cut(job, number + 1, phases) - _cut(job, number, phases)
    return replace(job, work=float(work), most=job.most << (number if doubling else 0))


def phases_that_ran(app: App, jobs: Sequence[Job], *, doubling: bool) -> list[list[Job]]:
    """The jobs of each phase of a finished search."""
    fields = _fields(app, jobs)
    return [
        [_in_phase(job, number, len(fields), doubling=doubling) for job in field]
        for number, field in enumerate(fields)
    ]


def phases_of_median_jobs(app: App, jobs: Sequence[Job], *, doubling: bool) -> list[list[Job]]:
    """The phases as planned: the first with all jobs, later ones with as many median jobs."""
    del app
    sizes = _sizes(len(jobs))
    median = sorted(jobs, key=lambda job: job.work)[(len(jobs) - 1) // 2]
    first = [_in_phase(job, 0, len(sizes), doubling=doubling) for job in jobs]
    later = [
        [_in_phase(median, number, len(sizes), doubling=doubling)] * size
        for number, size in enumerate(sizes)
        if number
    ]
    return [first, *later]


def share_to_target(target: float, job: Job) -> float:
    """The share of its work after which a job's loss is the target; 1 where it never is."""
    if job.loss is None or job.iterations is None:
        return 1.0
    a, b, c = job.loss
    if target <= c:
        return 1.0
    more = 1 / (target - c) - b
    if more <= 0:
        return 0.0
    return min(1.0, more / a / job.iterations) if a > 0 else 1.0


def halving_drops_the_worse_half(facts: Facts) -> Iterator[str]:
    """Work of every job of a finished halving search, and who is done."""
    for app in facts.apps:
        if app.stopping != "successive_halving" or app.out["state"] != "done":
            continue
        jobs = list(facts.gpu_jobs(app))
        fields = _fields(app, jobs)
        for job in jobs:
            ran = sum(job in field for field in fields)
            work = float(_cut(job, ran, len(fields))) / 1e6
            did, state = job.out["work_gpu_s"], job.out["state"]
            if abs(did - work) > 1e-6 + 1e-9 * work:
                yield f"{job.name} did {did} GPU-seconds; its {ran} phases have {work}"
            if (state == "done") != (work == job.work / 1e6):
                yield f"{job.name} is {state} after {work} of {job.work / 1e6} GPU-seconds"


def targets_are_reached(facts: Facts) -> Iterator[str]:
    """A job that reached its target did the work for it; who ran on past it was not looked at."""
    for app in facts.apps:
        for job in app.jobs:
            if job.out["reason"] == "reached the target loss":
                need = share_to_target(app.target or 0, job) * job.work / 1e6
                if job.out["work_gpu_s"] < need * (1 - 1e-9) - 1e-6:
                    yield f"{job.name} did {job.out['work_gpu_s']} of {need} GPU-seconds"


CHECKS = (halving_drops_the_worse_half, targets_are_reached)
