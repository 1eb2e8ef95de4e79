"""The workload: apps and their jobs as two tables, where they came from, and what was done to them.

Every transformation keeps the GPU-seconds of the jobs that stay, and says in `Workload.notes` how
many jobs and GPU-seconds there were before and after.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from themis.errors import TraceError
from themis.traces.report import TraceReport
from themis.traces.schema import apps_from_jobs, canonical

if TYPE_CHECKING:
    from themis.check import CheckReport, ClusterSize

__all__ = ["TraceSource", "Workload"]

WORKLOAD_SCHEMA_VERSION = 1
"""Version of the Parquet files that :meth:`Workload.write` makes."""


@dataclass(frozen=True, eq=False)
class TraceSource:
    """Where a workload came from.

    Parameters
    ----------
    paths
        Files that were read, as given; empty for a generated workload.
    format
        Name of the reader or generator.
    recognised
        Why that reader was taken.
    sha256
        Hexadecimal digest of the bytes of the files in the order of `paths`.
    origin
        ISO time of second 0 where the source has time stamps, else None.
    report
        Accounts of the reading; None for a generated workload.
    """

    paths: tuple[str, ...] = ()
    format: str = "memory"
    recognised: str = "made in memory"
    sha256: str = ""
    origin: str | None = None
    report: TraceReport | None = None

    def with_report(self, report: TraceReport) -> TraceSource:
        """The same source with the accounts of its reading."""
        return replace(self, report=report)

    def with_files(self, paths: tuple[str, ...], sha256: str) -> TraceSource:
        """The same source with the files that were read."""
        return replace(self, paths=paths, sha256=sha256)

    def with_origin(self, origin: str | None) -> TraceSource:
        """The same source with the time of its second 0."""
        return replace(self, origin=origin)


@dataclass(frozen=True, eq=False)
class Workload:
    """Apps and jobs, validated and in canonical order.

    Parameters
    ----------
    apps
        One row an app: app_id, user, tenant, arrival_s, stopping, weight, profile, gpu_types; the
        types and rules are those of :mod:`themis.traces.schema`. Any row order is accepted.
    jobs
        One row a job: job_id, app_id, submit_s, serial_time_s (GPU-seconds at one GPU and perfect
        placement; for a job of 0 GPUs its duration in seconds), gang_size, max_gpus, profile,
        checkpoint_s, status.
    source
        Where they came from.
    notes
        What transformations did, oldest first.

    Raises
    ------
    TraceError
        A table breaks a rule of :func:`themis.traces.schema.canonical`.
    """

    apps: pl.DataFrame
    jobs: pl.DataFrame
    source: TraceSource = field(default_factory=TraceSource)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        apps, jobs = canonical(self.apps, self.jobs)
        object.__setattr__(self, "apps", apps)
        object.__setattr__(self, "jobs", jobs)

    def __repr__(self) -> str:
        return (
            f"Workload({self.source.format}: {self.apps.height} apps, {self.jobs.height} jobs, "
            f"{self.gpu_seconds:.6g} GPU-seconds)"
        )

    @property
    def gpu_seconds(self) -> float:
        """Work of all jobs that take GPUs; the same for any order of the rows."""
        return gpu_seconds(self.jobs)

    def equals(self, other: Workload) -> bool:
        """Whether both tables hold the same rows; sources and notes may differ."""
        return self.apps.equals(other.apps) and self.jobs.equals(other.jobs)

    def check(self, cluster: ClusterSize | None = None) -> CheckReport:
        """What is wrong with the trace, its totals, and with a cluster the load it would offer."""
        from themis.check import check_workload  # noqa: PLC0415 - check knows workloads

        return check_workload(self, cluster)

    def write(self, directory: str | PathLike[str]) -> Path:
        """Write ``apps.parquet`` and ``jobs.parquet``, which the native reader reads back equal.

        The directory is made if it is missing; each file appears whole or not at all.

        Raises
        ------
        TraceError
            The directory cannot be made or written.
        """
        target = Path(directory)
        about = {
            "schema_version": WORKLOAD_SCHEMA_VERSION,
            "format": self.source.format,
            "origin": self.source.origin,
            "notes": list(self.notes),
        }
        metadata = {"themis.workload": json.dumps(about, sort_keys=True)}
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name, frame in (("jobs", self.jobs), ("apps", self.apps)):
                part = target / f".{name}.parquet.{os.getpid()}"
                try:
                    frame.write_parquet(part, metadata=metadata)
                    part.replace(target / f"{name}.parquet")
                finally:
                    part.unlink(missing_ok=True)
        except OSError as error:
            raise TraceError(f"{target}: cannot be written: {error.strerror or error}") from None
        return target


def gpu_seconds(jobs: pl.DataFrame) -> float:
    """GPU-seconds of a jobs table; exactly rounded, so any row order gives the same."""
    work = jobs.filter(pl.col("gang_size") > 0).get_column("serial_time_s")
    return math.fsum(work.to_list())
