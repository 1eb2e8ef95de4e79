"""Ideal times and floors recomputed from the text of the definitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.audit.facts import App, Facts, Job
from tests.audit.of_searches import (
    is_doubling,
    phases_of_median_jobs,
    phases_that_ran,
    share_to_target,
)

__all__ = ["CHECKS", "ideal_s"]


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def ideal_s(
    reading: str, jobs: Sequence[Job], gpus: int, n_avg: float, cap: int | None = None
) -> float:
    """T_ID in seconds of jobs that all run at once, on at most `cap` GPUs."""
    work = sum(job.work for job in jobs) / 1e6
    demand = sum(job.most for job in jobs)
    if cap is not None:
        demand = min(demand, cap)
        jobs = [replace(job, most=min(job.most, cap)) for job in jobs]
    longest = max(job.work / job.most for job in jobs) / 1e6
    if reading == "paper":
        return work / min(gpus, demand) * n_avg
    if reading == "critical_path":
        return max(work / min(gpus, demand), longest) * n_avg
    return max(work / min(gpus / n_avg, demand), longest)


def _alone_s(facts: Facts, app: App, jobs: Sequence[Job]) -> float:
    gpus = facts.cluster.gpus if app.cap is None else min(facts.cluster.gpus, app.cap)
    rates = [facts.best_rate(replace(job, most=min(job.most, gpus))) for job in jobs]
    if app.stopping == "performance_curve" and app.target is not None:
        jobs = [replace(job, work=job.work * share_to_target(app.target, job)) for job in jobs]
    each = [job.work / rate / 1e6 for job, rate in zip(jobs, rates, strict=True)]
    if app.stopping in {"first", "performance_curve"}:
        return min(each)
    work = sum(job.work for job in jobs) / 1e6
    return max(*each, work / min(sum(rates), gpus))


def _ideals(facts: Facts, app: App) -> set[float]:
    """T_ID; two values where a job is submitted just when its app ends."""
    reading, n_avg = facts.settings["t_id"], app.out["n_avg"]
    found = set()
    for late in (False, True):
        jobs = list(facts.gpu_jobs(app))
        if app.stopping == "first":
            end = facts.gpu_end(app) + late
            jobs = [job for job in jobs if job.submit < end or job.start is not None]
            each = [ideal_s(reading, [job], facts.cluster.gpus, n_avg, app.cap) for job in jobs]
            found |= {min(each)} if each else set()
        elif app.stopping == "successive_halving":
            phases = phases_of_median_jobs(app, jobs, doubling=is_doubling(facts))
            if reading == "paper":
                # One sum of work; the widest phase says how many GPUs help.
                widest = max(sum(job.most for job in phase) for phase in phases)
                budget = sum(job.work for phase in phases for job in phase) / 1e6
                caps = [facts.cluster.gpus, widest, *([] if app.cap is None else [app.cap])]
                found.add(budget / min(caps) * n_avg)
            else:
                each = [ideal_s(reading, x, facts.cluster.gpus, n_avg, app.cap) for x in phases]
                found.add(sum(each))
        elif app.stopping == "performance_curve":
            end = facts.gpu_end(app) + late
            jobs = [job for job in jobs if job.submit < end or job.start is not None]
            found.add(ideal_s(reading, jobs, facts.cluster.gpus, n_avg, app.cap))
        elif jobs:
            found.add(ideal_s(reading, jobs, facts.cluster.gpus, n_avg, app.cap))
    return found


def ideal_times_are_those_of_the_definitions(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        out = app.out
        told = f"{app.name} ({out['state']}): rho {out['rho']}, {out['t_sh_s']} / {out['t_id_s']}"
        if not any(facts.gpu_jobs(app)) or app.arrival > facts.run_end:
            if out["rho"] is not None:
                yield f"{told}: has nothing for GPUs to do by then"
        elif out["rho"] is not None and out["state"] == "done":
            yield from _problems_of_done(facts, app, told)
        elif out["rho"] is not None and app.stopping in {"all", "fixed"}:
            yield from _problems_of_a_bound(facts, app, told)


def _problems_of_a_bound(facts: Facts, app: App, told: str) -> Iterator[str]:
    """An unfinished app: the time so far and the rest alone."""
    out = app.out
    jobs = list(facts.gpu_jobs(app))
    ideal = ideal_s(facts.settings["t_id"], jobs, facts.cluster.gpus, out["n_avg"], app.cap)
    left = [job for job in jobs if job.work / 1e6 > job.out["work_gpu_s"]]
    rest = [replace(job, work=job.work - job.out["work_gpu_s"] * 1e6) for job in left]
    so_far = (facts.gpu_end(app) - app.arrival) / 1e6
    total = so_far + (_alone_s(facts, app, rest) if rest else 0)
    if not (_near(out["t_id_s"], ideal) and _near(out["t_sh_s"], total)):
        yield f"{told}: with the rest alone {total} / {ideal}"


def _problems_of_done(facts: Facts, app: App, told: str) -> Iterator[str]:
    out = app.out
    jobs = list(facts.gpu_jobs(app))
    if not _near(out["t_sh_s"], (facts.gpu_end(app) - app.arrival) / 1e6):
        yield f"{told}: needed GPUs for {facts.gpu_end(app) - app.arrival} us"
    if not any(_near(out["t_id_s"], ideal) for ideal in _ideals(facts, app)):
        yield f"{told}: T_ID should be {_ideals(facts, app)}"
    if app.stopping == "successive_halving":
        phases = phases_that_ran(app, jobs, doubling=is_doubling(facts))
        alone = sum(_alone_s(facts, app, phase) for phase in phases)
    else:
        alone = _alone_s(facts, app, jobs)
    if not _near(out["rho_floor"], alone / out["t_id_s"]):
        yield f"{told}: rho_floor {out['rho_floor']}, T_alone {alone}"


CHECKS = (ideal_times_are_those_of_the_definitions,)
