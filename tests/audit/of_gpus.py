"""GPUs and leases: nothing twice, nothing half, nothing beyond its time, nothing idle in vain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.audit.facts import App, Facts, Job, Lease, us

__all__ = ["CHECKS"]

WITHOUT_LEASES = frozenset({"fifo", "fifo_backfill"})


def no_gpu_is_used_twice(facts: Facts) -> Iterator[str]:
    by_gpu: dict[tuple[str, int], list[Lease]] = {}
    for lease in facts.leases:
        for gpu in lease.gpus:
            by_gpu.setdefault(gpu, []).append(lease)
    for gpu, leases in by_gpu.items():
        leases.sort(key=lambda lease: (lease.start, lease.end))
        for one, other in pairwise(leases):
            if one.end > other.start:
                yield f"GPU {gpu} has {one} and {other} at once"


def leases_name_gpus_that_exist(facts: Facts) -> Iterator[str]:
    for lease in facts.leases:
        machine, first = lease.gpus[0]
        _, gpus, slot_gpus = facts.machines[machine]
        last = lease.gpus[-1][1]
        slots = {index // slot_gpus for _, index in lease.gpus}
        if not 0 <= first <= last < gpus or slots != {lease.slot}:
            yield f"{lease} is not inside a slot of {machine} ({gpus} GPUs, {slot_gpus} a slot)"
        if not lease.start < lease.end:
            yield f"{lease} takes no time"


def leases_lie_in_the_life_of_their_app(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        for lease in app.leases:
            if not app.arrival <= lease.start < lease.end <= app.end:
                yield f"{lease} outlives {app.name} ({app.arrival} to {app.end})"
        first = min((lease.start for lease in app.leases), default=None)
        stated = app.out["first_gpu_s"]
        if first != (None if stated is None else us(stated)):
            yield f"{app.name}: first_gpu_s is {stated}, its first lease starts at {first}"


def causes_fit_the_policy(facts: Facts) -> Iterator[str]:
    auctions = facts.result.policy == "themis"
    causes = {"auction", "leftover", "renewal"} if auctions else {"policy", "renewal"}
    for lease in facts.leases:
        if lease.cause not in causes or (lease.cause == "renewal") != (lease.renewals > 0):
            yield f"{lease}: cause and renewals do not fit {facts.result.policy}"
        if facts.result.policy in WITHOUT_LEASES and lease.ended_by not in {
            "job_end",
            "app_end",
            "horizon",
        }:
            yield f"{lease}: {facts.result.policy} takes nothing away"


def leases_end_on_time(facts: Facts) -> Iterator[str]:
    """Leases that ran out did so at an end of a lease: unless a payment had cut them."""
    if facts.result.policy in WITHOUT_LEASES or facts.settings["payment"] == "lease":
        return
    length = us(facts.settings["lease_s"])
    for lease in facts.leases:
        if lease.ended_by not in {"expired", "renewal"}:
            continue
        if facts.settings["lease_mode"] == "aligned":
            if lease.end % length:
                yield f"{lease} does not end on a multiple of {length}"
        elif (lease.end - lease.start) % length and not _has_gangs(facts, lease.app):
            yield f"{lease} does not end after a multiple of {length}"


def _has_gangs(facts: Facts, name: str) -> bool:
    """Whether a gang of an app may have lost another part just then: nothing is held half."""
    return any(job.gang > 1 for app in facts.apps if app.name == name for job in app.jobs)


def leases_end_when_somebody_waits(facts: Facts) -> Iterator[str]:
    """A lease that goes on over its end without a renewal, although an app could use more."""
    length = us(facts.settings["lease_s"])
    if facts.result.policy in WITHOUT_LEASES:
        return
    for lease in facts.leases:
        if lease.cause == "renewal" or lease.end - lease.start <= length:
            continue
        aligned = facts.settings["lease_mode"] == "aligned"
        first = (lease.start // length + 1) * length if aligned else lease.start + length
        # A switch as long as a lease is let to its end, and the job to some work.
        switch = us(facts.settings["restart_s"] + facts.settings["checkpoint_s"])
        if switch >= length:
            first += -(-switch // length) * length
        for due in range(first, min(lease.end, first + 20 * length), length):
            for app in facts.apps:
                if _wants_before_and_at(facts, app, due):
                    yield f"{lease} goes on at {due} although {app.name} could use more"


def _wants_before_and_at(facts: Facts, app: App, at: int) -> bool:
    """Whether it could use more than it held, from before an instant until after it."""
    if any(job.end == at for job in app.jobs):
        return False
    if app.stopping == "successive_halving":
        return False  # which of its jobs pause is of_searches.py's matter
    demand = sum(job.most for job in facts.gpu_jobs(app) if job.is_open(at - 1))
    if app.cap is not None:
        demand = min(demand, app.cap - max(job.gang for job in app.jobs) + 1)
    return demand > max(app.held(at - 1), app.held(at))


def gangs_are_whole(facts: Facts) -> Iterator[str]:
    """What an app holds can always be divided into gangs of its open jobs."""
    for app in facts.apps:
        for span in app.spans:
            at = span.start
            jobs = [job for job in facts.gpu_jobs(app) if job.is_open(at)]
            sums = {0}
            for job in jobs:
                halves = app.stopping == "successive_halving"
                most = job.most << (len(app.jobs) if halves else 0)
                more = range(job.gang, min(most, 64) + 1)
                sums |= {total + k for total in sums for k in more if total + k <= 64}
            if len(span.gpus) not in sums:
                yield f"{app.name} holds {len(span.gpus)} GPUs from {at}: no gangs make that up"


def nothing_stands_idle_in_vain(facts: Facts) -> Iterator[str]:
    """No waiting gang could have started on the GPUs that a decision left free."""
    for at, until in pairwise(facts.instants):
        free = facts.cluster.gpus - sum(app.held(at) for app in facts.apps)
        if free == 0 or until == at:
            continue
        waiting = sorted(
            (job.submit, number, job.name, job.gang)
            for number, app in enumerate(facts.apps)
            for job in _surely_waiting(facts, app, at)
        )
        if facts.result.policy in WITHOUT_LEASES:
            waiting = waiting[:1]
        for _, _, job, gang in waiting:
            if gang <= free:
                yield f"{job} (gang of {gang}) waits at {at} while {free} GPUs are free"


def _surely_waiting(facts: Facts, app: App, at: int) -> Iterator[Job]:
    """Open jobs of an app that holds nothing, or jobs that have not started (no leases)."""
    in_line = facts.result.policy in WITHOUT_LEASES
    if (not in_line and app.held(at)) or app.stopping == "successive_halving":
        return
    if in_line and app.cap is not None:
        return
    for job in facts.gpu_jobs(app):
        started = job.start is not None and job.start <= at
        if job.is_open(at) and not (in_line and started):
            yield job


def elastic_jobs_take_what_helps(facts: Facts) -> Iterator[str]:
    """A job that no distance slows has all that it can use, or nothing is free."""
    if facts.result.policy in {*WITHOUT_LEASES, "static"}:
        return  # sizes are those of the start, or end at the share
    lone = [app for app in facts.apps if len(app.jobs) == 1 and max(app.jobs[0].slowdowns) == 1]
    for app in lone:
        for job in facts.gpu_jobs(app):
            for span in app.spans:
                free = facts.cluster.gpus - sum(a.held(span.start) for a in facts.apps)
                if free and 0 < len(span.gpus) < job.most:
                    yield f"{job.name} has {len(span.gpus)} GPUs at {span.start}, {free} are free"


CHECKS = (
    no_gpu_is_used_twice,
    leases_name_gpus_that_exist,
    leases_lie_in_the_life_of_their_app,
    causes_fit_the_policy,
    leases_end_on_time,
    leases_end_when_somebody_waits,
    gangs_are_whole,
    nothing_stands_idle_in_vain,
    elastic_jobs_take_what_helps,
)
