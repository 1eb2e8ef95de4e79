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

import numpy as np
import polars as pl

from themis.errors import TraceError
from themis.grouping import burst_apps
from themis.traces.report import TraceReport
from themis.traces.schema import canonical

if TYPE_CHECKING:
    from themis.check import CheckReport
    from themis.offered_load import ClusterSize

__all__ = ["WORKLOAD_SCHEMA_VERSION", "TraceSource", "Workload"]

WORKLOAD_SCHEMA_VERSION = 2
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
        """Return the same source with the accounts of its reading."""
        return replace(self, report=report)

    def with_files(self, paths: tuple[str, ...], sha256: str) -> TraceSource:
        """Return the same source with the files that were read."""
        return replace(self, paths=paths, sha256=sha256)

    def with_origin(self, origin: str | None) -> TraceSource:
        """Return the same source with the time of its second 0."""
        return replace(self, origin=origin)


@dataclass(frozen=True, eq=False)
class Workload:
    """Apps and jobs, validated and in canonical order.

    Parameters
    ----------
    apps
        One row an app: app_id, user, tenant, arrival_s, stopping, weight, profile, gpu_types,
        max_gpus, target_loss; the types and rules are those of :mod:`themis.traces.schema`. Any
        row order is accepted, and columns that may be null may be absent.
    jobs
        One row a job: job_id, app_id, submit_s, serial_time_s (GPU-seconds at one GPU and perfect
        placement; for a job of 0 GPUs its duration in seconds), gang_size, max_gpus, profile,
        checkpoint_s, status, iterations, loss_a, loss_b, loss_c.
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
        """Report what is wrong with the trace, its totals, and its load on a cluster."""
        from themis.check import check_workload  # noqa: PLC0415 - check knows workloads

        return check_workload(self, cluster)

    def scale(self, *, load: float) -> Workload:
        """Change the offered load by moving all submissions closer together or further apart.

        Times are divided by `load`, counted from the first submission; the jobs stay as they are.

        Parameters
        ----------
        load
            Factor of the load: 2.0 submits the same work in half the time.

        Raises
        ------
        TraceError
            `load` is not a positive, finite number.
        """
        if not (load > 0 and math.isfinite(load)):
            raise TraceError(f"scale: load is {load!r}: expected a positive number")
        first = pl.lit(float(self.apps.get_column("arrival_s")[0]))
        apps, jobs = (
            frame.with_columns((first + (pl.col(column) - first) / load).alias(column))
            for frame, column in ((self.apps, "arrival_s"), (self.jobs, "submit_s"))
        )
        return self._derived(apps, jobs, f"scale(load={load:g}): times divided by {load:g}")

    def window(self, *, start_s: float = 0.0, end_s: float = math.inf) -> Workload:
        """Keep the apps that arrive in ``[start_s, end_s)``, whole and on the same clock.

        Raises
        ------
        TraceError
            No app arrives in the window.
        """
        inside = (pl.col("arrival_s") >= start_s) & (pl.col("arrival_s") < end_s)
        what = f"window(start_s={start_s:g}, end_s={end_s:g})"
        return self._of_apps(self.apps.filter(inside), what)

    def sample(self, *, fraction: float, seed: int = 0) -> Workload:
        """Keep each app with probability `fraction`, whole; the rest is left out.

        The same seed keeps the same apps, and a larger fraction keeps them and more.

        Raises
        ------
        TraceError
            `fraction` is outside (0, 1], or no app is kept.
        """
        if not 0 < fraction <= 1:
            raise TraceError(f"sample: fraction is {fraction!r}: expected more than 0, at most 1")
        draws = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        chosen = pl.Series(draws.random(self.apps.height) < fraction)
        what = f"sample(fraction={fraction:g}, seed={seed})"
        return self._of_apps(self.apps.filter(chosen), what)

    def group_into_apps(
        self,
        *,
        gap_s: float = 60.0,
        max_jobs: int = 100,
        keys: Sequence[str] = ("user", "tenant", "gang_size"),
    ) -> Workload:
        """Group single-job apps into apps by bursts of submissions.

        Jobs of equal `keys` belong to one app while each is submitted at most `gap_s` seconds
        after the one before, up to `max_jobs` jobs; then the next app begins. Public traces have
        no tag for hyper-parameter searches; this is the usual stand-in. Missing users (null) count
        as one user.

        Parameters
        ----------
        gap_s
            Longest pause inside an app, seconds.
        max_jobs
            Most jobs an app may have.
        keys
            Columns that tell apps apart: user, tenant, gang_size, max_gpus, profile, status.

        Raises
        ------
        TraceError
            An option is out of range, or an app has several jobs already.
        """
        apps, jobs = burst_apps(self.apps, self.jobs, gap_s=gap_s, max_jobs=max_jobs, keys=keys)
        what = f"group_into_apps(gap_s={gap_s:g}, max_jobs={max_jobs}, keys={', '.join(keys)})"
        return self._derived(apps, jobs, f"{what}: {apps.height} apps of {self.apps.height}")

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

    def _of_apps(self, apps: pl.DataFrame, what: str) -> Workload:
        """Keep these apps with their jobs."""
        if apps.is_empty():
            raise TraceError(f"{what}: none of the {self.apps.height} apps is left")
        jobs = self.jobs.join(apps.select("app_id"), on="app_id", how="semi")
        return self._derived(apps, jobs, f"{what}: {apps.height} apps of {self.apps.height}")

    def _derived(self, apps: pl.DataFrame, jobs: pl.DataFrame, what: str) -> Workload:
        """Make the workload of new tables, with a note of the totals before and after."""
        note = (
            f"{what}; {jobs.height} jobs of {self.jobs.height}, "
            f"{gpu_seconds(jobs):.6f} GPU-seconds of {self.gpu_seconds:.6f}"
        )
        return replace(self, apps=apps, jobs=jobs, notes=(*self.notes, note))


def gpu_seconds(jobs: pl.DataFrame) -> float:
    """GPU-seconds of a jobs table; exactly rounded, so any row order gives the same."""
    work = jobs.filter(pl.col("gang_size") > 0).get_column("serial_time_s")
    return math.fsum(work.to_list())
