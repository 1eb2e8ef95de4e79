"""What a trace does not show: jobs that ran before it began, after it ended, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import polars as pl

from themis.checking.problems import Problem

__all__ = ["Censoring", "censoring", "running_at"]

_BEFORE = ("began before the trace",)
_AFTER = ("still running at the end", "still running at the snapshot")
_NEVER = ("never scheduled",)


@dataclass(frozen=True)
class Censoring:
    """Jobs at both ends of a trace, of which less is known than of the others.

    Parameters
    ----------
    began_before, still_running, never_ran
        Rows of the source whose start, end, or both lie outside: left out, unless a repair says
        otherwise.
    at_first_instant
        Jobs that are submitted at the very first instant: many of them may have begun before.
    past_last_submission
        Jobs that end after the last submission even if they start when they are submitted.
    past_gpu_s
        GPU-seconds of them that lie after it, at the gang.
    """

    began_before: int
    still_running: int
    never_ran: int
    at_first_instant: int
    past_last_submission: int
    past_gpu_s: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON-able form."""
        return asdict(self)


def censoring(jobs: pl.DataFrame, problems: Iterable[Problem]) -> Censoring:
    """Count what lies outside of what a trace shows, and the jobs at its ends."""
    found = list(problems)
    submit_s = jobs.get_column("submit_s").to_numpy()
    count, past_gpu_s = running_at(jobs, float(submit_s.max()))
    return Censoring(
        began_before=_rows(found, _BEFORE),
        still_running=_rows(found, _AFTER),
        never_ran=_rows(found, _NEVER),
        at_first_instant=int((submit_s == submit_s.min()).sum()),
        past_last_submission=count,
        past_gpu_s=past_gpu_s,
    )


def running_at(jobs: pl.DataFrame, at_s: float) -> tuple[int, float]:
    """Count jobs that run at `at_s` if they start when submitted, and their GPU-seconds after it.

    A job runs at its gang; jobs without GPUs count, but have no GPU-seconds.
    """
    gang = pl.col("gang_size")
    end = pl.col("submit_s") + pl.col("serial_time_s") / gang.clip(1)
    rows = jobs.filter((pl.col("submit_s") <= at_s) & (end > at_s))
    left = rows.select((end - at_s) * gang).to_series()
    return rows.height, math.fsum(left.to_list())


def _rows(problems: Iterable[Problem], names: tuple[str, ...]) -> int:
    return sum(problem.count for problem in problems if problem.name in names)
