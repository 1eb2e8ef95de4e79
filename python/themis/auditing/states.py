"""States and times of apps and jobs."""

from __future__ import annotations

import polars as pl

from themis.auditing.run import GANG, Run, problems
from themis.metrics.completion import APP_STATES, JOB_STATES

__all__ = ["apps_end_with_their_jobs", "apps_have_one_final_state", "jobs_have_one_final_state"]

_JOB = ("job_id", "app_id", "state", "submit_us", "start_us", "end_us", "gang_size", "reason")
_APP = ("app_id", "state", "arrival_us", "first_us", "end_us", "reason")

_state = pl.col("state")
_start = pl.col("start_us")
_end = pl.col("end_us")


def jobs_have_one_final_state(run: Run) -> pl.DataFrame:
    """A job ends in one known state, with the times and the reason that go with it."""
    lives = run.apps.select("app_id", "arrival_us", "last_us")
    jobs = run.jobs.join(lives, on="app_id", how="left", maintain_order="left")
    started = _start.is_not_null()
    never = (_state == "killed") & ~started  # it may have been killed before it was submitted
    open_ended = _state.is_in(["infeasible", "unfinished"]) | never
    at_target = pl.col("reason") == "reached the target loss"
    return problems(
        jobs,
        {
            "no known state": ~_state.is_in(JOB_STATES),
            "there is no such app": pl.col("arrival_us").is_null(),
            "submitted before its app arrives": pl.col("submit_us") < pl.col("arrival_us"),
            "starts before it is submitted": _start < pl.col("submit_us"),
            "ends before it starts": pl.col("end_us") < _start,
            "ends before it is submitted": pl.col("end_us") < pl.col("submit_us"),
            "ends after its app": pl.col("end_us") > pl.col("last_us"),
            "has no end": ~open_ended & _end.is_null(),
            "has an end": _state.is_in(["infeasible", "unfinished"]) & _end.is_not_null(),
            "done without a start": (_state == "done") & ~started,
            "could never start": _state.is_in(["infeasible"]) & started,
            "GPU time without a start": ~started & (pl.col("gpu_s") > 0),
            "has no reason": (_state != "done") & pl.col("reason").is_null(),
            "is done, for a reason": (_state == "done")
            & pl.col("reason").is_not_null()
            & ~(at_target | (pl.col("work_gpu_s") > 0)),
            "runs below its gang": (pl.col("gpus_max") < GANG),
        },
        *_JOB,
    )


def apps_have_one_final_state(run: Run) -> pl.DataFrame:
    """An app ends in one known state, after it arrives, waits from then on, and says why."""
    first = pl.col("first_us")
    queue_us = (pl.col("queue_s") * 1e6).round()
    return problems(
        run.apps,
        {
            "no known state": ~_state.is_in(APP_STATES),
            "ends before it arrives": _end < pl.col("arrival_us"),
            "has GPUs before it arrives": first < pl.col("arrival_us"),
            "has an end": ~_state.is_in(["done", "failed"]) & _end.is_not_null(),
            "has no end": _state.is_in(["done", "failed"]) & _end.is_null(),
            "queue_s is not from arrival to first GPU": queue_us.ne_missing(
                (first - pl.col("arrival_us")).cast(pl.Float64)
            ),
            "has no reason": (_state != "done") & pl.col("reason").is_null(),
        },
        *_APP,
        "queue_s",
    )


def apps_end_with_their_jobs(run: Run) -> pl.DataFrame:
    """An app is done when no job of it is open, and not before the last of them."""
    count = {state: (_state == state).sum().alias(f"jobs_{state}") for state in JOB_STATES}
    refused = pl.col("jobs_infeasible") + pl.col("jobs_rejected")
    of_jobs = run.jobs.group_by("app_id").agg(
        *count.values(), pl.len().alias("all_jobs"), jobs_end_us=_end.max()
    )
    apps = run.apps.join(of_jobs, on="app_id", how="left", maintain_order="left")
    open_jobs = pl.col("jobs_unfinished")
    hopeless = refused == pl.col("all_jobs")
    return problems(
        apps,
        {
            "has no job": pl.col("all_jobs").is_null(),
            "is done, a job is not": (_state == "done") & (open_jobs > 0),
            "is unfinished, all jobs are": (_state == "unfinished") & (open_jobs == 0),
            "ends before a job": _end < pl.col("jobs_end_us"),
            "ends after its last job": (_state == "done")
            & (refused == 0)
            & (_end > pl.col("jobs_end_us")),
            "some job could run": _state.is_in(["infeasible", "rejected"]) & ~hopeless,
            "no job could run": ~_state.is_in(["infeasible", "rejected"]) & hopeless,
            "no job is rejected": (_state == "rejected") & (pl.col("jobs_rejected") == 0),
        },
        *_APP,
        *(f"jobs_{state}" for state in JOB_STATES),
        "jobs_end_us",
    )
