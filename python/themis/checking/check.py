"""What is wrong with a trace, what it holds, and what it would ask of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from themis.checking.censoring import Censoring, censoring
from themis.checking.offered_load import ClusterSize, LoadReport, offered_load
from themis.checking.problems import Problem
from themis.checking.source import TraceSource
from themis.schema.workload import gpu_seconds

__all__ = ["CheckReport", "ClusterSize", "check_tables"]

_SHOWN_IDS = 5


@dataclass(frozen=True)
class CheckReport:
    """Accounts of a workload: what came in, what came out, what was left out and why.

    Parameters
    ----------
    paths, format, recognised, sha256
        The files, their format, why it was taken, and the digest of their bytes.
    rows
        Rows of the source: ``rows == jobs_read + rejected``.
    row_word
        What the numbers in `problems` count: ``"line"``, ``"entry"`` or ``"row"``.
    jobs_read
        Jobs that the reader made.
    rejected
        Rows that became no job.
    problems
        Classes of trouble, with first lines and values, and what the reader did.
    gpu_s_rows, gpu_s_read
        GPU-seconds of all rows that could be read, and of the jobs that the reader made.
    jobs, apps, users, tenants
        How many the workload has now.
    gpu_s
        GPU-seconds of the workload now; differs from `gpu_s_read` only by what `notes` say.
    origin
        ISO time of second 0, if the source has time stamps.
    first_s, last_s
        First and last submission, seconds.
    gangs
        (GPUs, jobs) for each size of gang, ascending.
    elastic_jobs
        Jobs that can use more than their gang.
    notes
        What the reader and transformations decided.
    censoring
        Jobs at both ends of the trace, of which less is known.
    load
        What the workload asks of the cluster, if one was given.
    """

    paths: tuple[str, ...]
    format: str
    recognised: str
    sha256: str
    rows: int
    row_word: str
    jobs_read: int
    rejected: int
    problems: tuple[Problem, ...]
    gpu_s_rows: float
    gpu_s_read: float
    jobs: int
    apps: int
    users: int
    tenants: int
    gpu_s: float
    origin: str | None
    first_s: float
    last_s: float
    gangs: tuple[tuple[int, int], ...]
    elastic_jobs: int
    notes: tuple[str, ...]
    censoring: Censoring
    load: LoadReport | None

    @property
    def passed(self) -> bool:
        """Whether nothing is in trouble but what the caller chose a repair for, and all can run."""
        settled = all(problem.settled for problem in self.problems)
        return settled and not (self.load and self.load.infeasible)

    @property
    def clean(self) -> bool:
        """Whether every row became a job and no job is infeasible."""
        return self.rejected == 0 and not (self.load and self.load.infeasible)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON-able form: no NaN, null where there is nothing."""
        return {
            "paths": list(self.paths),
            "format": self.format,
            "recognised": self.recognised,
            "sha256": self.sha256 or None,
            "rows": self.rows,
            "row_word": self.row_word,
            "jobs_read": self.jobs_read,
            "rejected": self.rejected,
            "problems": [problem.to_dict() for problem in self.problems],
            "gpu_s_rows": self.gpu_s_rows,
            "gpu_s_read": self.gpu_s_read,
            "jobs": self.jobs,
            "apps": self.apps,
            "users": self.users,
            "tenants": self.tenants,
            "gpu_s": self.gpu_s,
            "origin": self.origin,
            "first_s": self.first_s,
            "last_s": self.last_s,
            "span_s": self.last_s - self.first_s,
            "gangs": [{"gpus": gpus, "jobs": jobs} for gpus, jobs in self.gangs],
            "elastic_jobs": self.elastic_jobs,
            "notes": list(self.notes),
            "clean": self.clean,
            "passed": self.passed,
            "censoring": self.censoring.to_dict(),
            "load": None if self.load is None else self.load.to_dict(),
        }

    def to_text(self) -> str:
        """Return the report as lines to read."""
        return "\n".join(self._lines()) + "\n"

    def accounts(self) -> tuple[str, ...]:
        """Return the report without its classes of trouble, as lines to read."""
        return tuple(self._accounts())

    def _lines(self) -> Iterator[str]:
        yield f"{', '.join(self.paths) or 'workload'}: {self.format} ({self.recognised})"
        yield self._rows()
        for problem in self.problems:
            yield "  " + _problem_text(problem, self.row_word)
        if not self.problems:
            yield "  no problems found"
        yield from list(self._accounts())[1:]

    def _rows(self) -> str:
        return (
            f"{_count(self.rows, self.row_word)} -> {_count(self.jobs_read, 'job')}, "
            f"{self.rejected:,} left out"
        )

    def _accounts(self) -> Iterator[str]:
        yield self._rows()
        yield (
            f"work: {self.gpu_s_rows:,.0f} GPU-seconds in the rows, {self.gpu_s_read:,.0f} in the "
            f"jobs read, {self.gpu_s:,.0f} in the workload"
        )
        yield (
            f"workload: {_count(self.apps, 'app')}, {_count(self.jobs, 'job')}, "
            f"{_count(self.users, 'user')}, {_count(self.tenants, 'tenant')}"
        )
        since = f", second 0 is {self.origin}" if self.origin else ""
        span_s = self.last_s - self.first_s
        yield f"submissions: {self.first_s:,.0f} s to {self.last_s:,.0f} s{_days(span_s)}{since}"
        shares = ", ".join(f"{gpus}: {jobs:,}" for gpus, jobs in self.gangs[:16])
        more = f" and {len(self.gangs) - 16} more sizes" if len(self.gangs) > 16 else ""  # noqa: PLR2004
        yield f"GPUs a gang: {shares}{more}"
        if self.elastic_jobs:
            yield f"elastic: {_count(self.elastic_jobs, 'job')} can use more than the gang"
        yield from _censoring_lines(self.censoring, self.row_word)
        for note in self.notes:
            yield f"note: {note}"
        if self.load is not None:
            yield from _load_lines(self.load)


def check_tables(
    apps: pl.DataFrame,
    jobs: pl.DataFrame,
    source: TraceSource,
    notes: tuple[str, ...],
    cluster: ClusterSize | None,
) -> CheckReport:
    """Report on a workload's tables and, with a cluster, on the load that they offer."""
    report, gpu_s = source.report, gpu_seconds(jobs)
    gangs = jobs.group_by("gang_size").agg(pl.len().cast(pl.Int64).alias("jobs")).sort("gang_size")
    submit_s = jobs.get_column("submit_s").to_numpy()
    return CheckReport(
        paths=source.paths,
        format=source.format,
        recognised=source.recognised,
        sha256=source.sha256,
        rows=report.rows if report else jobs.height,
        row_word=report.row_word if report else "row",
        jobs_read=report.jobs if report else jobs.height,
        rejected=report.rejected.height if report else 0,
        problems=report.problems if report else (),
        gpu_s_rows=report.gpu_s_rows if report else gpu_s,
        gpu_s_read=report.gpu_s_jobs if report else gpu_s,
        jobs=jobs.height,
        apps=apps.height,
        users=apps.get_column("user").drop_nulls().n_unique(),
        tenants=apps.get_column("tenant").drop_nulls().n_unique(),
        gpu_s=gpu_s,
        origin=source.origin,
        first_s=float(submit_s.min()),
        last_s=float(submit_s.max()),
        gangs=tuple((int(gpus), int(count)) for gpus, count in gangs.iter_rows()),
        elastic_jobs=jobs.filter(pl.col("max_gpus") > pl.col("gang_size")).height,
        notes=(*(report.notes if report else ()), *notes),
        censoring=censoring(jobs, report.problems if report else ()),
        load=None if cluster is None else offered_load(apps, jobs, cluster),
    )


def _count(number: int, word: str) -> str:
    plural = word[:-1] + "ies" if word.endswith("y") else word + "s"
    return f"{number:,} {word if number == 1 else plural}"


def _days(seconds: float) -> str:
    return f" ({seconds / 86400:,.1f} days)"


def _problem_text(problem: Problem, row_word: str) -> str:
    where = f" in {problem.column}" if problem.column else ""
    values = f" ({', '.join(repr(value) for value in problem.values)})" if problem.values else ""
    more = ", ..." if problem.count > len(problem.lines) else ""
    word = _count(len(problem.lines), row_word).split(" ", 1)[1]
    lines = ", ".join(problem.places) + more
    text = f"{problem.count:,} x {problem.name}{where}: {word} {lines}{values}; {problem.action}"
    return f"{text}; or {' or '.join(problem.repairs)}" if problem.repairs else text


def _censoring_lines(found: Censoring, row_word: str) -> Iterator[str]:
    cut = (
        (found.began_before, "began before the trace"),
        (found.still_running, "still ran at its end"),
        (found.never_ran, "never ran"),
    )
    said = [f"{_count(count, row_word)} {what}" for count, what in cut if count]
    if said:
        yield f"not seen whole: {', '.join(said)}"
    yield (
        f"ends: {_count(found.at_first_instant, 'job')} at the first instant; "
        f"{_count(found.past_last_submission, 'job')} past the last submission, for "
        f"{found.past_gpu_s:,.0f} GPU-seconds more"
    )


def _load_lines(load: LoadReport) -> Iterator[str]:
    yield f"cluster: {load.cluster}, {_count(load.gpus, 'GPU')}"
    for part in load.types:
        figure = "all jobs arrive at once" if part.load is None else f"{part.load:.2f}"
        peak = ""
        if len(part.over_time) > 1:
            high = max(part.over_time)
            at_s = load.bins_from_s + part.over_time.index(high) * load.bin_s
            peak = f"; most in {load.bin_s:,.0f} s: {high:.2f}, from {at_s:,.0f} s"
        yield f"offered load, {part.gpu_types} ({_count(part.gpus, 'GPU')}): {figure}{peak}"
    for limit in load.host:
        figure = "all jobs arrive at once" if limit.load is None else f"{limit.load:.2f}"
        yield f"offered load, {limit.resource} ({limit.there:,.0f}): {figure}"
    if load.load is not None and not load.drains:
        yield (
            "the backlog cannot drain while jobs arrive: averages over a horizon depend on the "
            f"horizon; at least {load.drain_s:,.0f} s{_days(load.drain_s)} of full use stay "
            "after the last arrival"
        )
    else:
        yield f"the backlog can drain; at least {load.drain_s:,.0f} s stay after the last arrival"
    if load.infeasible:
        shown = ", ".join(load.infeasible[:_SHOWN_IDS])
        more = ", ..." if len(load.infeasible) > _SHOWN_IDS else ""
        beside = ", or than its CPU cores or memory allow" if load.host else ""
        yield (
            f"{_count(len(load.infeasible), 'job')} can never run (gang larger than the "
            f"cluster{beside}, {load.infeasible_gpu_s:,.0f} GPU-seconds): {shown}{more}"
        )
