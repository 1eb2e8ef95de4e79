"""Time and work: every GPU-second is accounted for once, and every job's story adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.audit.facts import App, Facts, Job, Span, us

__all__ = ["CHECKS"]

_JOB_STATES = {"done", "killed", "infeasible", "unfinished"}
_APP_STATES = {"done", "infeasible", "unfinished"}


def _near(one: float, other: float, *, within: float = 1e-6) -> bool:
    return abs(one - other) <= within + 1e-9 * max(abs(one), abs(other))


def gpu_seconds_are_conserved(facts: Facts) -> Iterator[str]:
    total = 0
    for app in facts.apps:
        leased = sum(len(lease.gpus) * (lease.end - lease.start) for lease in app.leases)
        total += leased
        of_jobs = sum(us(job.out["gpu_s"]) for job in app.jobs)
        if not leased == us(app.out["gpu_s"]) == of_jobs:
            yield f"{app.name}: leases {leased}, gpu_s {app.out['gpu_s']}, jobs {of_jobs}"
        names = ("useful_gpu_s", "slowed_gpu_s", "switching_gpu_s", "idle_gpu_s")
        parts = [app.out[name] for name in names]
        if not _near(sum(parts), app.out["gpu_s"]) or min(parts) < 0:
            yield f"{app.name}: gpu_s {app.out['gpu_s']} is not the sum of {parts}"
        work = sum(job.out["work_gpu_s"] for job in app.jobs)
        if not _near(work, app.out["useful_gpu_s"]):
            yield f"{app.name}: useful_gpu_s {app.out['useful_gpu_s']}, work of jobs {work}"
    used = productive = 0
    rows = facts.usage
    untils = [*(us(row["at_s"]) for row in rows[1:]), facts.run_end]
    for row, end in zip(rows, untils, strict=False):
        used += row["gpus_used"] * (end - us(row["at_s"]))
        productive += row["gpus_productive"] * (end - us(row["at_s"]))
    if used != total:
        yield f"usage has {used} GPU-microseconds, leases {total}"
    ran = sum(app.out["useful_gpu_s"] + app.out["slowed_gpu_s"] for app in facts.apps)
    if not _near(productive / 1e6, ran):
        yield f"usage has {productive} productive GPU-microseconds, apps {ran} s"


def use_is_that_of_the_leases(facts: Facts) -> Iterator[str]:
    times = [us(row["at_s"]) for row in facts.usage]
    if any(one >= other for one, other in pairwise(times)):
        yield f"rows of use are not in strict order of time: {times}"
    for row in facts.usage:
        if not 0 <= row["gpus_productive"] <= row["gpus_used"] <= row["gpus_total"]:
            yield f"use out of range: {row}"
        if row["gpus_total"] != facts.cluster.gpus:
            yield f"the cluster has {facts.cluster.gpus} GPUs: {row}"
    for at in facts.instants:
        if at >= facts.run_end:
            break
        active = [app for app in facts.apps if is_active(facts, app, at)]
        held = [app.held(at) for app in active]
        truth = (sum(held), len(active), held.count(0))
        valid = facts.usage_at(at)
        names = ("gpus_used", "active_apps", "waiting_apps")
        told = tuple(valid[name] for name in names) if valid else (0, 0, 0)
        if truth != told:
            yield f"use at {at} is {told} (used, active, waiting), leases and lives say {truth}"


def is_active(facts: Facts, app: App, at: int) -> bool:
    """Whether it has arrived and its work for GPUs, if it has any, is not finished."""
    return app.arrival <= at < facts.gpu_end(app) and any(True for _ in facts.gpu_jobs(app))


def every_job_has_one_final_state(facts: Facts) -> Iterator[str]:
    for kind, known in (("job", _JOB_STATES), ("app", _APP_STATES)):
        table = facts.result.jobs if kind == "job" else facts.result.apps
        counts = Counter(table.get_column("state").to_list())
        if dict(counts) != facts.result.manifest[f"{kind}_states"] or not counts.keys() <= known:
            yield f"{kind}s are {counts}, manifest {facts.result.manifest[f'{kind}_states']}"
    if facts.result.jobs.height != facts.workload.jobs.height:
        yield f"{facts.result.jobs.height} jobs, not {facts.workload.jobs.height}"
    for app in facts.apps:
        for job in app.jobs:
            yield from _state_problems(facts, app, job)


def _state_problems(facts: Facts, app: App, job: Job) -> Iterator[str]:
    state, start, end = job.out["state"], job.start, job.end
    told = f"{job.name} is {state}, {job.submit} to {start} to {end}, work {job.out['work_gpu_s']}"
    if start is not None and start < job.submit:
        yield f"{told}: starts before it is submitted"
    if start is not None and end is not None and end < start:
        yield f"{told}: ends before it starts"
    never = state == "killed" and start is None and job.submit >= app.end
    if (end is None) != (state in {"infeasible", "unfinished"}) and not never:
        yield f"{told}: an end and a state that do not fit"
    if (state == "infeasible") != (job.gang > facts.cluster.gpus) and state == "infeasible":
        yield f"{told}: a gang of {job.gang} fits {facts.cluster.gpus} GPUs"
    if job.gang > facts.cluster.gpus and state == "done":
        yield f"{told}: a gang of {job.gang} on {facts.cluster.gpus} GPUs"
    if state == "killed" and app.stopping in {"all", "fixed"}:
        yield f"{told}: nothing kills jobs of this app"
    at_target = job.out["reason"] == "reached the target loss" and app.target is not None
    if (job.out["reason"] is None) != (state == "done") and not at_target:
        yield f"{told}: reason {job.out['reason']}"
    work = job.work / 1e6 if job.gang else 0.0
    did = job.out["work_gpu_s"]
    whole = state == "done" and not at_target
    if not _near(did, work) if whole else not 0 <= did <= work * (1 + 1e-12):
        yield f"{told}: {work} to do"
    if state == "done" and not job.gang and end != job.submit + round(job.work):
        yield f"{told}: takes no GPUs, runs for {job.work}"


def apps_end_with_their_jobs(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        states = [job.out["state"] for job in app.jobs]
        done = [job.end for job in app.jobs if job.out["state"] == "done" and job.end is not None]
        if app.out["state"] == "done":
            works = any(True for _ in facts.gpu_jobs(app))
            end = (min if app.stopping == "first" else max)(done, default=-1)
            if app.stopping == "first" and works:
                end = facts.gpu_end(app)
            if app.stopping in {"successive_halving", "performance_curve"} and works:
                end = max(end, facts.gpu_end(app))
            if app.stopping != "first" and "infeasible" in states:
                hopeless = [job.submit for job in app.jobs if job.out["state"] == "infeasible"]
                end = max(end, *hopeless)
            if end != app.end or "unfinished" in states:
                yield f"{app.name} is done at {app.end}, its jobs {states} at {done}"
        elif app.out["state"] == "infeasible" and set(states) != {"infeasible"}:
            yield f"{app.name} is infeasible, its jobs {states}"
        elif app.out["state"] == "unfinished" and "unfinished" not in states:
            yield f"{app.name} is unfinished, its jobs {states}"
        moves = [sum(job.out[name] for job in app.jobs) for name in ("preemptions", "migrations")]
        if moves != [app.out["preemptions"], app.out["migrations"]]:
            yield f"{app.name}: preemptions and migrations of its jobs are {moves}"


def lone_jobs_can_be_replayed(facts: Facts) -> Iterator[str]:
    """An app of one job: its leases alone give its progress, switches and end."""
    restart = us(facts.settings["restart_s"])
    for app in facts.apps:
        jobs = list(facts.gpu_jobs(app))
        if len(app.jobs) != 1 or not jobs or not app.spans:
            continue
        job = jobs[0]
        checkpoint = (
            us(facts.settings["checkpoint_s"]) if job.checkpoint is None else job.checkpoint
        )
        before: frozenset[tuple[str, int]] = frozenset()
        works_from, work, switching, preempted, moved = 0, 0.0, 0, 0, 0
        spans = list(app.spans)
        if spans[-1].end < app.end:
            spans.append(Span(spans[-1].end, app.end, frozenset()))
        for number, span in enumerate(spans):
            if span.gpus != before:
                works_from = span.start + (restart + checkpoint if number else 0)
                preempted += bool(before) and not span.gpus
                moved += bool(before) and bool(span.gpus)
            if span.gpus:
                ran = max(0, span.end - max(span.start, works_from))
                work += ran * min(len(span.gpus), job.most) / job.slowdowns[facts.level(span.gpus)]
                switching += len(span.gpus) * (span.end - span.start - ran)
            before = span.gpus
        told = (job.out["work_gpu_s"], app.out["switching_gpu_s"])
        speed = job.most
        if not _near(work / 1e6, told[0], within=2e-6 * speed):
            yield f"{job.name} did {told[0]} GPU-seconds of work, its leases say {work / 1e6}"
        if not _near(switching / 1e6, told[1]):
            yield f"{job.name} switched for {told[1]} GPU-seconds, its leases say {switching / 1e6}"
        if (preempted, moved) != (job.out["preemptions"], job.out["migrations"]):
            yield f"{job.name}: {preempted} preemptions and {moved} migrations in its leases"


CHECKS = (
    gpu_seconds_are_conserved,
    use_is_that_of_the_leases,
    every_job_has_one_final_state,
    apps_end_with_their_jobs,
    lone_jobs_can_be_replayed,
)
