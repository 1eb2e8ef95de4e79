"""What a result says, in whole microseconds, for the rules of this package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.auditing.room import most_gpus
from themis.boundary.columns import jobs_by_app
from themis.boundary.job_speeds import JobSpeeds, job_speeds
from themis.cluster.cluster import Cluster
from themis.policies.catalogue import POLICIES
from themis.profiles import COLD_START, KnownProfiles, ProfileInput, read_profiles
from themis.results.result import Result
from themis.schema.host import different_needs
from themis.schema.workload import WHOLE_MILLI
from themis.workload.workload import Workload

__all__ = ["GANG", "SHARE", "WITHOUT_LEASES", "Run", "problems", "us"]

WITHOUT_LEASES = frozenset({"fifo", "fifo_backfill"})
"""Built-in policies under which a job keeps its GPUs until it ends."""

GANG = pl.col("gang_size")

SHARE = pl.col("gpu_milli") < WHOLE_MILLI
"""Of a job or a lease: it uses a fraction of a GPU."""

_Whole = npt.NDArray[np.int64]
_Truth = npt.NDArray[np.bool_]


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

    @cached_property
    def known(self) -> KnownProfiles:
        """The profiles by name."""
        return read_profiles(self.profiles)

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

        With the workload also `asked_gpu_us` and `asked_milli`, its work and share, `fastest`, the
        speed that it counts in, and with the cluster too `room`, the most GPUs of its types from
        its submission on.
        """
        jobs = self.result.jobs.with_columns(
            submit_us=us("submit_s"), start_us=us("start_s"), end_us=us("end_s")
        )
        empty = (pl.col("state") == "done") & (pl.col("work_gpu_s") == 0)
        if self.workload is None:
            jobs = jobs.with_columns(fastest=pl.lit(None, pl.Float64), room=pl.lit(None, pl.Int64))
        else:
            kinds = self.kinds.drop("speeds")
            jobs = jobs.join(kinds, on="job_id", how="left", maintain_order="left")
            empty = pl.col("asked_gpu_us") == 0
        jobs = self._within_quotas(jobs)
        room = pl.col("room").fill_null(self.gpus)
        fits = GANG.is_between(1, room) & (pl.col("state") != "infeasible")
        return jobs.with_columns(works=fits & ~empty)

    @cached_property
    def knows_what_is_to_come(self) -> bool:
        """Whether it is known which of the jobs that are submitted after the end could have run."""
        later = (us("submit_s") > self.end_us) & (pl.col("state") == "unfinished")
        return self._speeds is not None or not self.result.jobs.select(later.any()).item()

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

    @property
    def knows_weights(self) -> bool:
        """Whether the weights of the apps are known: all are 1, or there is the workload."""
        told = self.result.manifest.get("workload")
        weighted = told.get("weighted_apps") if isinstance(told, Mapping) else 0
        return self.workload is not None or not weighted

    @cached_property
    def weights(self) -> pl.DataFrame:
        """The apps with their `weight`."""
        if self.workload is None:
            return self.result.apps.select("app_id", weight=1.0)
        return self.workload.apps.select("app_id", "weight")

    @property
    def tenants(self) -> Mapping[str, Mapping[str, object]] | None:
        """What each tenant was given, by name; None where all share as one's."""
        tenants = self.result.manifest.get("tenants")
        return tenants if isinstance(tenants, Mapping) and tenants else None

    @cached_property
    def quotas(self) -> pl.DataFrame:
        """Quotas: `quota` GPUs for a `tenant` from `at_us` on, sorted by both."""
        steps = [
            (name, round(at_s * 1e6), gpus)
            for name, table in (self.tenants or {}).items()
            for at_s, gpus in _list(table.get("quota_gpus"))
        ]
        schema = {"tenant": pl.String, "at_us": pl.Int64, "quota": pl.Int64}
        return pl.DataFrame(steps, schema=schema, orient="row").sort("tenant", "at_us")

    @cached_property
    def held_by_tenant(self) -> pl.DataFrame:
        """GPUs of the apps of each tenant, as `held`."""
        owners = self.result.apps.select("app_id", "tenant")
        owned = self.leases.join(owners, on="app_id", how="left", maintain_order="left")
        return _steps(owned.filter(pl.col("tenant").is_not_null()), "tenant")

    @cached_property
    def held(self) -> pl.DataFrame:
        """GPUs of each app from `at_us` on until its next row, sorted by app and time."""
        return _steps(self.leases, "app_id")

    @cached_property
    def held_by_share(self) -> pl.DataFrame:
        """The same of each app and `gpu_milli`."""
        return _steps(self.leases, "app_id", "gpu_milli")

    @cached_property
    def of_each_gpu(self) -> pl.DataFrame:
        """The leases with a row for each `gpu`."""
        end = pl.col("gpu_first") + pl.col("gpus")
        gpus = self.leases.with_columns(gpu=pl.int_ranges("gpu_first", end))
        return gpus.explode("gpu", empty_as_null=False)

    @cached_property
    def in_use(self) -> pl.DataFrame:
        """Times (start_us, end_us) in which some `gpus` are held, shared ones once."""
        shared = self.of_each_gpu.filter(SHARE).sort("machine", "gpu", "start_us")
        by = ["machine", "gpu"]
        until = pl.col("end_us").cum_max().over(by).shift().over(by)
        begins = (until.is_null() | (pl.col("start_us") > until)).cum_sum()
        times = [pl.col("start_us").min(), pl.col("end_us").max()]
        once = shared.with_columns(stretch=begins).group_by("stretch").agg(*times)
        columns = ("start_us", "end_us", "gpus")
        whole = self.leases.filter(~SHARE).select(columns)
        return pl.concat([whole, once.with_columns(gpus=pl.lit(1, pl.Int64)).select(columns)])

    @cached_property
    def used(self) -> pl.DataFrame:
        """GPUs of all apps from `at_us` on until the next row, sorted by time."""
        return _steps(self.in_use)

    @cached_property
    def _speeds(self) -> JobSpeeds | None:
        """Speeds of the workload's jobs in their order; None: one type, or no cluster is known."""
        if self.workload is None or self.cluster is None:
            return None
        return job_speeds(jobs_by_app(self.workload), self.cluster, self.known.speeds)

    @cached_property
    def kinds(self) -> pl.DataFrame:
        """The jobs of the workload: work, row of speeds, speed of the `fastest` type, `room`."""
        if self.workload is None:
            raise AssertionError("invariant: the rule says that it needs the workload")
        jobs = jobs_by_app(self.workload).select(
            "job_id",
            submit_us=us("submit_s"),
            asked_gpu_us=us("serial_time_s"),
            asked_milli=pl.col("gpu_milli").fill_null(WHOLE_MILLI),
        )
        if self._speeds is None or self.cluster is None:
            unknown = pl.lit(None)
            jobs = jobs.with_columns(
                speeds=0, fastest=unknown.cast(pl.Float64), room=unknown.cast(pl.Int64)
            )
            return jobs.drop("submit_us")
        row = self._speeds.row
        submit_us = jobs["submit_us"].to_numpy()
        room = np.zeros(jobs.height, dtype=np.int64)
        needs, need_of = different_needs(jobs_by_app(self.workload))
        for number, takes in enumerate(needs):
            which = np.flatnonzero(need_of == number)
            since_us, most = most_gpus(self.cluster, self.machines, self._speeds, takes)
            at = np.searchsorted(since_us, submit_us[which], side="right") - 1
            room[which] = most[at, row[which]]
        return jobs.drop("submit_us").with_columns(
            speeds=pl.Series(row), fastest=pl.Series(self._speeds.fastest), room=pl.Series(room)
        )

    def _within_quotas(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Lower the `room` of jobs with `submit_us` to what their tenant may hold from then on."""
        owners = self.result.apps.select("app_id", "tenant")
        steps = self.quotas.reverse().with_columns(most=pl.col("quota").cum_max().over("tenant"))
        steps = steps.select("tenant", "most", submit_us="at_us").sort("submit_us")
        jobs = jobs.join(owners, on="app_id", how="left", maintain_order="left").with_row_index()
        most = jobs.sort("submit_us").join_asof(
            steps, on="submit_us", by="tenant", check_sortedness=False
        )
        room = pl.min_horizontal("room", "most")
        return most.sort("index").with_columns(room=room).drop("index", "tenant", "most")

    def speed(self, rows: pl.Series, types: pl.Series) -> pl.Series:
        """Return speeds on GPU types by number."""
        if self._speeds is None:
            raise AssertionError("invariant: the rule says that it needs workload and cluster")
        return pl.Series(self._speeds.table[rows.to_numpy(), types.to_numpy()])

    def mixes(self, rows: pl.Series) -> pl.Series:
        """Return whether jobs with these rows of speeds run on several GPU types at once."""
        if self._speeds is None:
            raise AssertionError("invariant: the rule says that it needs workload and cluster")
        return pl.Series(self._speeds.mixes[rows.to_numpy()])

    @cached_property
    def slowdowns(self) -> pl.DataFrame:
        """S of each job by locality (`s0` to `s3`), its `profile`, and its `checkpoint_us`."""
        if self.workload is None:
            raise AssertionError("invariant: the rule says that it needs the workload")
        known = self.known.slowdowns
        table = pl.DataFrame(
            [(name, *row) for name, row in known.items()],
            schema={"profile": pl.String, **dict.fromkeys(("s0", "s1", "s2", "s3"), pl.Float64)},
            orient="row",
        )
        apps = self.workload.apps.select("app_id", of_app="profile")
        name = pl.coalesce("profile", "of_app")
        jobs = self.workload.jobs.join(apps, on="app_id", how="left", maintain_order="left")
        chosen = pl.when(name.is_in(list(known))).then(name).otherwise(pl.lit(COLD_START))
        return jobs.select("job_id", profile=chosen, checkpoint_us=us("checkpoint_s")).join(
            table, on="profile", how="left", maintain_order="left"
        )

    @cached_property
    def machines(self) -> pl.DataFrame:
        """machine, rack, GPUs of it (`has`) and of a slot (`slot_gpus`), number of its `type`."""
        if self.cluster is None:
            raise AssertionError("invariant: the rule says that it needs the cluster")
        types = {name: number for number, name in enumerate(self.cluster.gpu_types)}
        number = pl.col("gpu_type").replace_strict(types, return_dtype=pl.Int64)
        return self.cluster.machines.select("machine", "rack", "slot_gpus", has="gpus", type=number)


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


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
