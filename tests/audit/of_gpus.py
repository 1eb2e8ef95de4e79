"""What built-in policies do with GPUs: nobody waits and nothing stands idle in vain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.audit.facts import App, Facts, Job, us

from themis.auditing.run import WITHOUT_LEASES

__all__ = ["CHECKS"]


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


def nothing_stands_idle_in_vain(facts: Facts) -> Iterator[str]:
    """No waiting gang could have started on the GPUs that a decision left free."""
    halving = any(app.stopping == "successive_halving" for app in facts.apps)
    if halving and facts.result.policy in WITHOUT_LEASES:
        return  # who is first in line is of_searches.py's matter
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
    leases_end_when_somebody_waits,
    nothing_stands_idle_in_vain,
    elastic_jobs_take_what_helps,
)
