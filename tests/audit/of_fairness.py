"""Fairness figures recomputed from arrivals, ends and the text of the definitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from tests.audit.facts import App, Facts, Job
from tests.audit.of_searches import (
    is_doubling,
    phases_of_median_jobs,
    phases_that_ran,
    share_to_target,
)
from tests.audit.of_time import is_active

__all__ = ["CHECKS", "ideal_s", "mean_active"]


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def mean_active(facts: Facts, app: App) -> float:
    """Time-weighted mean number of active apps over its life."""
    area, end = 0, facts.gpu_end(app)
    for other in facts.apps:
        if is_active(facts, other, other.arrival):
            area += max(0, min(end, facts.gpu_end(other)) - max(app.arrival, other.arrival))
    return max(1.0, float(Fraction(area, end - app.arrival)))


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
        elif jobs:
            found.add(ideal_s(reading, jobs, facts.cluster.gpus, n_avg, app.cap))
    return found


def counts_of_active_apps(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        told = app.out["n_avg"]
        if app.arrival > facts.run_end or not any(facts.gpu_jobs(app)):
            if told is not None:
                yield f"{app.name}: n_avg is {told}, it has no work for GPUs by then"
        elif told is None or told < 1:
            yield f"{app.name}: n_avg is {told}"
        elif facts.gpu_end(app) > app.arrival:
            truth = mean_active(facts, app)
            if not _near(told, truth):
                yield f"{app.name}: n_avg is {told}, arrivals and ends say {truth}"


def rho_is_its_definition(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        out = app.out
        jobs = list(facts.gpu_jobs(app))
        told = f"{app.name} ({out['state']}): rho {out['rho']}, {out['t_sh_s']} / {out['t_id_s']}"
        if not jobs or app.arrival > facts.run_end:
            if out["rho"] is not None or out["reason"] is None:
                yield f"{told}: has nothing for GPUs to do by then, reason {out['reason']}"
            continue
        if out["rho"] is None:
            if out["reason"] is None:
                yield f"{told}: no rho and no reason"
            continue
        yield from _problems_of_rho(app, told)
        if out["state"] == "done":
            yield from _problems_of_done(facts, app, told)
        elif app.stopping in {"all", "fixed"}:
            yield from _problems_of_a_bound(facts, app, told)


def _problems_of_rho(app: App, told: str) -> Iterator[str]:
    out = app.out
    if not _near(out["rho"], out["t_sh_s"] / out["t_id_s"]):
        yield told
    if out["rho_is_bound"] != (out["state"] == "unfinished"):
        yield f"{told}: bound {out['rho_is_bound']}"


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
    if out["rho"] < out["rho_floor"] - 1e-6 / out["t_id_s"] - 1e-9:
        yield f"{told}: below its floor {out['rho_floor']}"
    score = out["placement_score"]
    if score is not None and not 0 < score <= 1 + 1e-9:
        yield f"{told}: placement_score {score}"


def queues_start_at_arrival(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        first, queue = app.out["first_gpu_s"], app.out["queue_s"]
        if not _near(queue, None if first is None else first - app.out["arrival_s"]):
            yield f"{app.name}: queue_s is {queue}, first_gpu_s {first}"


def auctions_add_up(facts: Facts) -> Iterator[str]:
    rows = list(facts.result.auctions.iter_rows(named=True))
    if rows and facts.result.policy != "themis":
        yield f"{facts.result.policy} held auctions"
    for row in rows:
        ordered = (
            0 < row["offered_gpus"] <= facts.cluster.gpus
            and 0 <= row["winners"] <= row["bidders"] <= row["active_apps"]
            and 0 <= row["leftover_gpus"] <= row["offered_gpus"]
            and 0 <= row["min_c"] <= row["mean_c"] + 1e-12
            and row["mean_c"] <= 1 + 1e-12
            and row["objective"] <= row["upper_bound"] + 1e-9 * max(1.0, abs(row["objective"]))
            and (row["gap"] is None or row["gap"] >= 0)
        )
        if not ordered:
            yield f"auction out of order: {row}"
    for one, other in pairwise(rows):
        if one["at_s"] >= other["at_s"]:
            yield f"two auctions at {other['at_s']}"


def nothing_is_nan(facts: Facts) -> Iterator[str]:
    for name, table in facts.result.frames.items():
        for column in table.columns:
            values = table.get_column(column)
            if values.dtype.is_float() and not values.drop_nulls().is_finite().all():
                yield f"{name}.{column} has values that are not finite"
    for name, value in facts.result.summary().items():
        if isinstance(value, float) and value != value:  # noqa: PLR0124 - only NaN does this
            yield f"summary: {name} is NaN"


CHECKS = (
    counts_of_active_apps,
    rho_is_its_definition,
    queues_start_at_arrival,
    auctions_add_up,
    nothing_is_nan,
)
