"""What a result says, in whole microseconds, for the rules of this package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import polars as pl

from themis.cluster import Cluster
from themis.core_columns import jobs_by_app
from themis.job_speeds import JobSpeeds, job_speeds
from themis.policies import POLICIES
from themis.profiles import COLD_START, ProfileInput, read_profiles
from themis.result import Result
from themis.workload import Workload

__all__ = ["GANG", "WITHOUT_LEASES", "Run", "problems", "us"]

WITHOUT_LEASES = frozenset({"fifo", "fifo_backfill"})
"""Built-in policies under which a job keeps its GPUs until it ends."""

GANG = pl.col("gang_size")


def us(column: str) -> pl.Expr:
    """Return a column of seconds in whole microseconds."""
    return (pl.col(column) * 1e6).round().cast(pl.Int64)


def problems(rows: pl.DataFrame, of: Mapping[str, pl.Expr], *told: str) -> pl.DataFrame:
    """Return the rows for which one of `of` is true, with the first such text and some columns."""
    first = pl.coalesce(pl.when(wrong).then(pl.lit(text)) for text, wrong in of.items())
    return rows.select(*told, problem=first).filter(pl.col("problem").is_not_null())


class Run:
    """A result beside what it was made from, as far as that is known.

    Parameters
    ----------
    result
        The result.
    workload, cluster
        What was played, and on what; None: rules that need them are left out.
    profiles
        Profiles of the run by name, beside the built-in ones.
    """

    def __init__(
        self,
        result: Result,
        workload: Workload | None,
        cluster: Cluster | None,
        profiles: Mapping[str, ProfileInput],
    ) -> None:
        self.result = result
        self.workload = workload
        self.cluster = cluster
        self.profiles = profiles

    @property
    def settings(self) -> Mapping[str, object]:
        """Settings by name; empty where the result does not tell."""
        settings = self.result.manifest.get("settings")
        return settings if isinstance(settings, Mapping) else {}

    def setting_us(self, name: str) -> int:
        """Return a setting in whole microseconds; 0 where the result does not tell."""
        seconds = self.settings.get(name)
        return round(float(seconds) * 1e6) if isinstance(seconds, (int, float)) else 0

    @property
    def is_built_in(self) -> bool:
        """Whether the policy is built in, so that it is known what it does with leases."""
        return any(self.result.policy == policy.name for policy in POLICIES)

    @property
    def has_agents(self) -> bool:
        """Whether agents decided how far jobs run, and on how many GPUs at most."""
        return bool(self.result.manifest.get("agents"))

    @cached_property
    def gpus(self) -> int:
        """Most GPUs that the cluster ever has."""
        cluster = self.result.manifest.get("cluster")
        told = cluster.get("gpus") if isinstance(cluster, Mapping) else None
        most = self.result.usage.select(pl.col("gpus_total").max()).item()
        return max(told if isinstance(told, int) else 0, most or 0)

    @cached_property
    def end_us(self) -> int:
        """When the run ended."""
        told = self.result.manifest.get("end_s")
        if isinstance(told, (int, float)):
            return round(told * 1e6)
        ends = self.result.jobs.select(pl.max_horizontal(us("submit_s"), us("end_s")).max()).item()
        last = self.result.usage.select(us("at_s").max()).item()
        return max(ends or 0, last or 0, 0)

    @cached_property
    def leases(self) -> pl.DataFrame:
        """The leases with `start_us` and `end_us`."""
        return self.result.leases.with_columns(start_us=us("start_s"), end_us=us("end_s"))

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """The jobs with their times, and `works`: it took or could have taken GPUs.

        With the workload also `asked_gpu_us`, its work, and `fastest`, the speed that it counts in.
        """
        jobs = self.result.jobs.with_columns(
            submit_us=us("submit_s"), start_us=us("start_s"), end_us=us("end_s")
        )
        empty = (pl.col("state") == "done") & (pl.col("work_gpu_s") == 0)
        if self.workload is None:
            jobs = jobs.with_columns(fastest=pl.lit(None, pl.Float64))
        else:
            kinds = self.kinds.drop("speeds")
            jobs = jobs.join(kinds, on="job_id", how="left", maintain_order="left")
            empty = pl.col("asked_gpu_us") == 0
        fits = GANG.is_between(1, self.gpus) & (pl.col("state") != "infeasible")
        return jobs.with_columns(works=fits & ~empty)

    @cached_property
    def apps(self) -> pl.DataFrame:
        """The apps with their times.

        `last_us` is the end of an app, or of the run; `gpu_end_us` that of its work for GPUs, null
        where it has none.
        """
        works = self.jobs.filter("works")
        is_open = pl.col("end_us").is_null() & (pl.col("state") != "killed")
        end_us = pl.when(is_open).then(self.end_us).otherwise("end_us").max()
        ends = works.group_by("app_id").agg(gpu_end_us=end_us)
        return (
            self.result.apps.with_columns(
                arrival_us=us("arrival_s"), first_us=us("first_gpu_s"), end_us=us("end_s")
            )
            .join(ends, on="app_id", how="left", maintain_order="left")
            .with_columns(last_us=pl.coalesce("end_us", pl.lit(self.end_us)))
        )

    @cached_property
    def active(self) -> pl.DataFrame:
        """The apps that were active at some time, from `arrival_us` to `gpu_end_us`."""
        arrived = pl.col("arrival_us") <= self.end_us
        return self.apps.filter(arrived & pl.col("gpu_end_us").is_not_null())

    @cached_property
    def held(self) -> pl.DataFrame:
        """GPUs of each app from `at_us` on until its next row, sorted by app and time."""
        return _steps(self.leases, "app_id")

    @cached_property
    def used(self) -> pl.DataFrame:
        """GPUs of all apps from `at_us` on until the next row, sorted by time."""
        return _steps(self.leases)

    @cached_property
    def _speeds(self) -> JobSpeeds | None:
        """Speeds of the workload's jobs in their order; None: one type, or no cluster is known."""
        if self.workload is None or self.cluster is None:
            return None
        return job_speeds(jobs_by_app(self.workload), self.cluster, read_profiles(self.profiles)[1])

    @cached_property
    def kinds(self) -> pl.DataFrame:
        """The jobs of the workload: work, speed of the `fastest` type, row of speeds."""
        if self.workload is None:
            raise AssertionError("invariant: the rule says that it needs the workload")
        jobs = jobs_by_app(self.workload).select("job_id", asked_gpu_us=us("serial_time_s"))
        if self._speeds is None:
            return jobs.with_columns(speeds=pl.lit(0), fastest=pl.lit(None, pl.Float64))
        fastest, row = pl.Series(self._speeds.fastest), pl.Series(self._speeds.row)
        return jobs.with_columns(speeds=row, fastest=fastest)

    def speed(self, rows: pl.Series, types: pl.Series) -> pl.Series:
        """Return speeds on GPU types by number."""
        if self._speeds is None:
            raise AssertionError("invariant: the rule says that it needs workload and cluster")
        return pl.Series(self._speeds.table[rows.to_numpy(), types.to_numpy()])

    @cached_property
    def slowdowns(self) -> pl.DataFrame:
        """S of each job by locality (`s0` to `s3`), and its `checkpoint_us`."""
        if self.workload is None:
            raise AssertionError("invariant: the rule says that it needs the workload")
        known = read_profiles(self.profiles)[0]
        table = pl.DataFrame(
            [(name, *row) for name, row in known.items()],
            schema={"profile": pl.String, **dict.fromkeys(("s0", "s1", "s2", "s3"), pl.Float64)},
            orient="row",
        )
        apps = self.workload.apps.select("app_id", of_app="profile")
        name = pl.coalesce("profile", "of_app")
        jobs = self.workload.jobs.join(apps, on="app_id", how="left", maintain_order="left")
        chosen = pl.when(name.is_in(list(known))).then(name).otherwise(pl.lit(COLD_START))
        return (
            jobs.select("job_id", profile=chosen, checkpoint_us=us("checkpoint_s"))
            .join(table, on="profile", how="left", maintain_order="left")
            .drop("profile")
        )

    @cached_property
    def machines(self) -> pl.DataFrame:
        """machine, rack, GPUs of it (`has`) and of a slot (`slot_gpus`), number of its `type`."""
        if self.cluster is None:
            raise AssertionError("invariant: the rule says that it needs the cluster")
        types = {name: number for number, name in enumerate(self.cluster.gpu_types)}
        number = pl.col("gpu_type").replace_strict(types, return_dtype=pl.Int64)
        return self.cluster.machines.select("machine", "rack", "slot_gpus", has="gpus", type=number)


def _steps(leases: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return the sum of the GPUs of leases after each change."""
    begin = leases.select(*by, at_us="start_us", change=pl.col("gpus"))
    end = leases.select(*by, at_us="end_us", change=-pl.col("gpus"))
    changes = pl.concat([begin, end]).group_by(*by, "at_us").agg(pl.col("change").sum())
    total = pl.col("change").cum_sum()
    return (
        changes.sort(*by, "at_us")
        .with_columns(held=total.over(list(by)) if by else total)
        .select(*by, "at_us", "held")
    )
