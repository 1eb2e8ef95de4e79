"""The workload: apps and their jobs as two tables, where they came from, and what was done to them.

Every transformation keeps the GPU-seconds of the jobs that stay, and says in `Workload.notes` how
many jobs and GPU-seconds there were before and after.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

import polars as pl

from themis.arguments import path, real
from themis.arguments import seed as checked_seed
from themis.checking.censoring import running_at
from themis.checking.check import CheckReport, ClusterSize, check_tables
from themis.checking.offered_load import offered_load
from themis.checking.source import TraceSource
from themis.errors import TraceError
from themis.notebook import fact_table
from themis.schema.workload import MAX_GPUS, WHOLE_MILLI, canonical, gpu_seconds
from themis.workload.conditions import jobs_where
from themis.workload.files import write_tables
from themis.workload.grouping import burst_apps
from themis.workload.profile_choice import mixed_profiles, profiles_by_model
from themis.workload.sampling import sampled

__all__ = ["TraceSource", "Workload"]


@dataclass(frozen=True, eq=False)
class Workload:
    """Apps and jobs, validated and in canonical order.

    Parameters
    ----------
    apps
        One row an app: app_id, user, tenant, arrival_s, stopping, weight, profile, gpu_types,
        max_gpus, target_loss; the types and rules are those of :mod:`themis.schema.workload`. Any
        row order is accepted, and columns that may be null may be absent.
    jobs
        One row a job: job_id, app_id, submit_s, serial_time_s (GPU-seconds at one GPU and perfect
        placement; for a job of 0 GPUs its duration in seconds), gang_size, max_gpus, profile,
        checkpoint_s, status, iterations, loss_a, loss_b, loss_c,
        bracket.
    source
        Where they came from.
    notes
        What transformations did, oldest first.

    Raises
    ------
    TraceError
        A table breaks a rule of :func:`themis.schema.workload.canonical`.
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

    def _repr_html_(self) -> str:
        arrival_s, gangs = self.apps.get_column("arrival_s"), self.jobs.get_column("gang_size")
        facts = (
            ("apps", self.apps.height),
            ("jobs", self.jobs.height),
            ("users", self.apps.get_column("user").drop_nulls().n_unique()),
            ("GPU-hours of work", self.gpu_seconds / 3600),
            ("first arrival (s)", arrival_s.min()),
            ("last arrival (s)", arrival_s.max()),
            ("smallest gang", gangs.min()),
            ("largest gang", gangs.max()),
        )
        where = ", ".join(self.source.paths) or self.source.format
        return fact_table(f"Themis workload: {where}", facts, remarks=self.notes)

    @property
    def gpu_seconds(self) -> float:
        """Work of all jobs that take GPUs; the same for any order of the rows."""
        return gpu_seconds(self.jobs)

    def equals(self, other: Workload) -> bool:
        """Whether both tables hold the same rows; sources and notes may differ."""
        return self.apps.equals(other.apps) and self.jobs.equals(other.jobs)

    def check(self, cluster: ClusterSize | None = None) -> CheckReport:
        """Report what is wrong with the trace, its totals, and its load on a cluster."""
        return check_tables(self.apps, self.jobs, self.source, self.notes, cluster)

    def scale(self, *, load: float, cluster: ClusterSize | None = None) -> Workload:
        """Change the offered load by moving all submissions closer together or further apart.

        Times are divided by a factor, counted from the first submission; the jobs stay as they
        are.

        Parameters
        ----------
        load
            Without a cluster the factor: 2.0 submits the same work in half the time. With one,
            the offered load that the workload shall have there
            (:func:`themis.checking.offered_load.offered_load`).
        cluster
            Where `load` shall be offered.

        Raises
        ------
        TraceError
            `load` is not a positive, finite number, or all jobs arrive at once, so that no factor
            gives them a load.
        """
        factor = real("scale: load", load, "a positive number", lambda value: 0 < value < math.inf)
        what = f"scale(load={load:g})"
        if cluster is not None:
            factor /= self._load_on(cluster)
            what = f"scale(load={load:g}, cluster={cluster})"
        first = pl.lit(float(self.apps.get_column("arrival_s")[0]))
        apps, jobs = (
            frame.with_columns((first + (pl.col(column) - first) / factor).alias(column))
            for frame, column in ((self.apps, "arrival_s"), (self.jobs, "submit_s"))
        )
        return self._derived(apps, jobs, f"{what}: times divided by {factor:g}")

    def _load_on(self, cluster: ClusterSize) -> float:
        now = offered_load(self.apps, self.jobs, cluster).load
        if not now:
            raise TraceError(
                f"scale: the load on {cluster} is {now!r}: expected jobs with GPUs that arrive at "
                "different times"
            )
        return now

    def window(self, *, start_s: float = 0.0, end_s: float = math.inf) -> Workload:
        """Keep the apps that arrive in ``[start_s, end_s)``, whole and on the same clock.

        Raises
        ------
        TraceError
            No app arrives in the window, or a bound is no number.
        """
        start = real("window: start_s", start_s, "a number of seconds", _is_number)
        end = real("window: end_s", end_s, "a number of seconds", _is_number)
        inside = (pl.col("arrival_s") >= start) & (pl.col("arrival_s") < end)
        what = f"window(start_s={start:g}, end_s={end:g})"
        kept = self._of_apps(self.apps.filter(inside), what)
        before = self.jobs.filter(pl.col("submit_s") < start)
        cut = (
            (running_at(before, start)[0], "left out would still run at its start"),
            (running_at(kept.jobs, end)[0], "kept would still run at its end"),
        )
        said = [f"{count} jobs {what}" for count, what in cut if count]
        return replace(kept, notes=(*kept.notes[:-1], "; ".join([kept.notes[-1], *said])))

    def sample(
        self,
        *,
        fraction: float | None = None,
        n: int | None = None,
        by: str = "app",
        seed: int = 0,
    ) -> Workload:
        """Keep some apps, drawn at random, whole; or all apps of some users or tenants.

        Whether one is kept depends on the seed and its own id only. So a larger sample of the same
        seed contains a smaller one, and a window of a sample is the sample of the window.

        Parameters
        ----------
        fraction
            Probability of each to be kept, in (0, 1].
        n
            Instead: how many are kept.
        by
            What is kept or left out as one: ``"app"``, ``"user"`` or ``"tenant"``. Apps that name
            none count as one user or tenant.
        seed
            From 0 to 2^64 - 1.

        Raises
        ------
        TraceError
            An argument is not one of these, or no app is kept.
        """
        number = checked_seed("sample", seed)
        apps, units = sampled(self.apps, fraction=fraction, n=n, by=by, seed=number)
        size = f"n={n}" if fraction is None else f"fraction={fraction:g}"
        return self._of_apps(apps, f"sample({size}, by={by}, seed={seed}): {units}")

    def filter(self, where: str | pl.Expr) -> Workload:
        """Keep the jobs for which a condition holds; apps without any are left out.

        Parameters
        ----------
        where
            A condition in SQL, such as ``"gang_size <= 8 AND status = 'completed'"``, or a polars
            expression. It may name :data:`themis.workload.conditions.CONDITION_COLUMNS`: columns
            of the job and of its app, ``duration_s`` (seconds at the gang) and ``app_jobs``
            (jobs of its app). A job for which it is null is left out.

        Raises
        ------
        TraceError
            The condition cannot be read or names an unknown column, or no job is left.
        """
        apps, jobs = jobs_where(self.apps, self.jobs, where)
        what = f"filter({where})"
        if jobs.is_empty():
            raise TraceError(f"{what}: none of the {self.jobs.height} jobs is left")
        return self._derived(apps, jobs, f"{what}: {apps.height} apps of {self.apps.height}")

    def rigid(self) -> Workload:
        """Make every job use its gang and no more GPUs."""
        jobs = self.jobs.with_columns(pl.col("gang_size").alias("max_gpus"))
        return self._derived(self.apps, jobs, f"rigid(): {self._changed(jobs)}")

    def elastic(self, *, min_factor: float = 1.0, max_factor: float = 2.0) -> Workload:
        """Let every job run on fewer or more GPUs than its gang, with the same GPU-seconds of work.

        A job of g GPUs then needs ``max(1, ceil(min_factor * g))`` of them at once and can use
        ``max_factor * g``, rounded down; jobs without GPUs or with a fraction of one stay as they
        are.

        Raises
        ------
        TraceError
            `min_factor` is outside (0, 1], or `max_factor` is below 1 or not finite.
        """
        low = real("elastic: min_factor", min_factor, "more than 0, at most 1", _is_share)
        high = real(
            "elastic: max_factor", max_factor, "1 or more", lambda value: 1 <= value <= MAX_GPUS
        )
        gang = pl.col("gang_size")
        bends = (gang > 0) & (pl.col("gpu_milli").fill_null(WHOLE_MILLI) == WHOLE_MILLI)
        # a hundred-millionth makes 0.1 x 30 three GPUs, not four
        least = (gang * low - 1e-8).ceil().clip(1).cast(pl.Int64)
        most = (gang * high + 1e-8).floor().clip(upper_bound=MAX_GPUS).cast(pl.Int64)
        jobs = self.jobs.with_columns(
            pl.when(bends).then(least).otherwise(gang).alias("gang_size"),
            pl.when(bends).then(most).otherwise("max_gpus").alias("max_gpus"),
        )
        what = f"elastic(min_factor={low:g}, max_factor={high:g})"
        return self._derived(self.apps, jobs, f"{what}: {self._changed(jobs)}")

    def _changed(self, jobs: pl.DataFrame) -> str:
        """Say how many jobs have another gang or limit in `jobs`, which has the same order."""
        columns = ["gang_size", "max_gpus"]
        before, after = (frame.select(columns).to_struct() for frame in (self.jobs, jobs))
        count = int((before != after).sum())
        return f"changed {count} jobs"

    def assign_profiles(
        self,
        *,
        mix: Mapping[str, float] | None = None,
        models: Mapping[str, str] | None = None,
        seed: int = 0,
    ) -> Workload:
        """Give apps placement profiles: drawn from a mix, or by the model that the trace names.

        Parameters
        ----------
        mix
            Shares by profile, in any unit: each app, with all its jobs, gets one at random, which
            depends on the seed and its id only.
        models
            Instead: profiles by model name, for the names that the trace has put into ``profile``.
            Built-in profiles are known (:func:`themis.workload.profile_choice.profile_of_model`):
            ``{}`` will often do. Others stay as they are.
        seed
            From 0 to 2^64 - 1.

        Raises
        ------
        TraceError
            Not exactly one of `mix` and `models` is given, or it is no valid mapping.
        """
        number = checked_seed("assign_profiles", seed)
        if (mix is None) == (models is None):
            found = "none of them" if mix is None else "both"
            raise TraceError(
                f"assign_profiles: expected exactly one of mix and models, found {found}"
            )
        if models is None:
            apps = self.apps.with_columns(
                mixed_profiles(self.apps.get_column("app_id"), mix, number).alias("profile")
            )
            jobs = self.jobs.with_columns(pl.lit(None, pl.String).alias("profile"))
            what = f"assign_profiles(mix={mix}, seed={seed}): {apps.height} apps drawn"
            return self._derived(apps, jobs, what)
        apps, jobs = (
            frame.with_columns(
                profiles_by_model(frame.get_column("profile"), models).alias("profile")
            )
            for frame in (self.apps, self.jobs)
        )
        changed = [
            int((~after["profile"].eq_missing(before["profile"])).sum())
            for before, after in ((self.apps, apps), (self.jobs, jobs))
        ]
        what = f"changed {changed[0]} apps and {changed[1]} jobs"
        return self._derived(apps, jobs, f"assign_profiles(models={models}): {what}")

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

    def write(self, directory: str | PathLike[str], *, form: str = "parquet") -> Path:
        """Write tables of apps and jobs, which the native reader reads back equal.

        The directory is made if it is missing; each file appears whole or not at all.

        Parameters
        ----------
        directory
            Gets ``apps.parquet`` and ``jobs.parquet``.
        form
            ``"parquet"``, or ``"csv"`` for ``apps.csv`` and ``jobs.csv``, in which the origin and
            the notes have no place.

        Raises
        ------
        TraceError
            The directory cannot be made or written, or has tables of the other form.
        """
        about = {
            "format": self.source.format,
            "origin": self.source.origin,
            "notes": list(self.notes),
        }
        tables = {"jobs": self.jobs, "apps": self.apps}
        return write_tables(tables, about, path("write: directory", directory), form)

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


def _is_number(value: float) -> bool:
    return not math.isnan(value)


def _is_share(value: float) -> bool:
    return 0 < value <= 1
