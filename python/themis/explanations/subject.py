"""Whom an explanation is about: an app or one of its jobs, found in a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from themis.errors import ThemisError
from themis.explanations.spans import Span, waits_of
from themis.nearest import nearest
from themis.results.result import Result

__all__ = ["Subject", "run_end_s", "subject_of"]

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Subject:
    """An app, or a job with its app.

    Parameters
    ----------
    app, job
        Their rows in the result; `job` is None where the app is meant.
    jobs, leases
        Rows of the app.
    waits
        When it waited without a GPU, oldest first.
    """

    app: Row
    job: Row | None
    jobs: pl.DataFrame
    leases: pl.DataFrame
    waits: list[Span]

    @property
    def app_id(self) -> str:
        """The app."""
        return str(self.app["app_id"])

    @property
    def name(self) -> str:
        """What it is called in sentences."""
        return f"app {self.app_id!r}" if self.job is None else f"job {self.job['job_id']!r}"

    @property
    def submitted_s(self) -> float:
        """When it asked for GPUs first."""
        return float(self.app["arrival_s"] if self.job is None else self.job["submit_s"])

    @property
    def start_s(self) -> float | None:
        """When it got its first GPU."""
        start = self.app["first_gpu_s"] if self.job is None else self.job["start_s"]
        return None if start is None else float(start)

    @property
    def state(self) -> str:
        """How it ended."""
        return str((self.job or self.app)["state"])

    @property
    def gangs(self) -> list[int]:
        """The gangs that it needs, smallest first."""
        if self.job is not None:
            return [int(self.job["gang_size"])]
        return sorted(set(self.jobs.get_column("gang_size").to_list()))

    @property
    def longest_wait(self) -> Span | None:
        """The longest wait, the first of several; None if it never waited."""
        return max(self.waits, key=lambda span: span.length_s, default=None)

    def wait_at(self, at_s: float) -> Span | None:
        """Return the wait that an instant falls into; its end counts."""
        return next((span for span in self.waits if span.from_s <= at_s <= span.to_s), None)


def subject_of(result: Result, *, app_id: str | None, job_id: str | None) -> Subject:
    """Find an app or a job in a result.

    Raises
    ------
    ThemisError
        Not exactly one of them is given, or there is none of that name; the message has the
        nearest one.
    """
    if (app_id is None) == (job_id is None):
        found = "neither" if app_id is None else "both"
        raise ThemisError(f"expected either an app or a job to explain, found {found}")
    job = None if job_id is None else _row(result.jobs, "job_id", job_id)
    app = _row(result.apps, "app_id", str(app_id if job is None else job["app_id"]))
    mine = pl.col("app_id") == app["app_id"]
    jobs, leases = result.jobs.filter(mine), result.leases.filter(mine)
    end_s = run_end_s(result)
    if job is None:
        waits = waits_of(jobs, leases, run_end_s=end_s)
    else:
        ended = job["end_s"] if job["end_s"] is not None else end_s
        start_s = job["start_s"] if job["start_s"] is not None else ended
        waits = [Span(job["submit_s"], start_s)] if start_s > job["submit_s"] else []
    return Subject(app, job, jobs, leases, waits)


def run_end_s(result: Result) -> float:
    """Return the last instant of a run: its last change, or its horizon if that cut it off."""
    settings = result.manifest.get("settings")
    horizon_s = settings.get("horizon_s") if isinstance(settings, dict) else None
    ends = [result.usage.get_column("at_s").max(), result.jobs.get_column("end_s").max()]
    if horizon_s is not None and (result.jobs.get_column("state") == "unfinished").any():
        ends.append(horizon_s)
    return max((float(end) for end in ends if isinstance(end, int | float)), default=0.0)


def _row(frame: pl.DataFrame, key: str, value: str) -> Row:
    found = frame.filter(pl.col(key) == value)
    if found.is_empty():
        what = key.removesuffix("_id")
        hint = nearest(value, frame.get_column(key).to_list())
        raise ThemisError(f"{what} {value!r} is not in the result{hint}: {frame.height:,} {what}s")
    row: Row = found.row(0, named=True)
    return row
