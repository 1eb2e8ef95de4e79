"""When jobs and apps end, by the rules of their kinds."""

from __future__ import annotations

from collections.abc import Iterator

from tests.audit.facts import Facts

__all__ = ["CHECKS"]


def jobs_end_as_their_kind_does(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        for job in app.jobs:
            state = job.out["state"]
            told = f"{job.name} is {state}, submitted at {job.submit}, ends at {job.end}"
            if (job.gang > facts.cluster.gpus) != (state == "infeasible") and state != "killed":
                hopeless = job.submit > facts.run_end and state == "unfinished"
                if not hopeless:
                    yield f"{told}: a gang of {job.gang}, {facts.cluster.gpus} GPUs"
            if state == "killed" and app.stopping in {"all", "fixed"}:
                yield f"{told}: nothing kills jobs of this app"
            if state == "done" and not job.gang and job.end != job.submit + round(job.work):
                yield f"{told}: takes no GPUs, runs for {job.work}"


def apps_end_by_their_stopping_rule(facts: Facts) -> Iterator[str]:
    for app in facts.apps:
        if app.out["state"] != "done":
            continue
        states = [job.out["state"] for job in app.jobs]
        done = [job.end for job in app.jobs if job.out["state"] == "done" and job.end is not None]
        works = any(True for _ in facts.gpu_jobs(app))
        end = (min if app.stopping == "first" else max)(done, default=-1)
        if app.stopping == "first" and works:
            end = facts.gpu_end(app)
        if app.stopping in {"successive_halving", "performance_curve"} and works:
            end = max(end, facts.gpu_end(app))
        if app.stopping != "first" and "infeasible" in states:
            hopeless = [job.submit for job in app.jobs if job.out["state"] == "infeasible"]
            end = max(end, *hopeless)
        if end != app.end:
            yield f"{app.name} is done at {app.end}, its jobs {states} at {done}"


CHECKS = (jobs_end_as_their_kind_does, apps_end_by_their_stopping_rule)
