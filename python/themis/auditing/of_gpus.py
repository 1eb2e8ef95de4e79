"""GPUs and leases: nothing twice, nothing half, nothing outside its time."""

from __future__ import annotations

import polars as pl

from themis.auditing.run import GANG, SHARE, WITHOUT_LEASES, Run, problems, us
from themis.schema.workload import WHOLE_MILLI

__all__ = [
    "apps_stay_below_their_caps",
    "causes_fit_the_policy",
    "gangs_are_whole",
    "jobs_start_with_their_gang",
    "leases_begin_on_gpus_there_are",
    "leases_end_on_time",
    "leases_lie_in_the_life_of_their_app",
    "leases_name_gpus_that_exist",
    "no_gpu_is_used_twice",
]

_LEASE = ("lease_id", "app_id", "machine", "gpu_first", "gpus", "start_us", "end_us")


def no_gpu_is_used_twice(run: Run) -> pl.DataFrame:
    """A GPU is in one lease at a time, or in several that use no more than all of it."""
    begin = run.of_each_gpu.select(
        "machine", "gpu", "lease_id", at_us="start_us", change=pl.col("gpu_milli")
    )
    end = run.of_each_gpu.select(
        "machine", "gpu", "lease_id", at_us="end_us", change=-pl.col("gpu_milli")
    )
    # Every GPU ends with nothing in use, so that one sum runs over all of them.
    changes = pl.concat([begin, end]).sort("machine", "gpu", "at_us", "change")
    used = changes.with_columns(used_milli=pl.col("change").cum_sum())
    return used.filter((pl.col("change") > 0) & (pl.col("used_milli") > WHOLE_MILLI)).drop("change")


def leases_name_gpus_that_exist(run: Run) -> pl.DataFrame:
    """A lease lies within one slot of a machine of the cluster, and takes time."""
    leases = run.leases.join(run.machines, on="machine", how="left", maintain_order="left")
    last = pl.col("gpu_first") + pl.col("gpus") - 1
    slots = [at // pl.col("slot_gpus") for at in (pl.col("gpu_first"), last)]
    return problems(
        leases,
        {
            "the cluster has no such machine": pl.col("has").is_null(),
            "no GPU": pl.col("gpus") < 1,
            "the machine has no such GPU": (pl.col("gpu_first") < 0) | (last >= pl.col("has")),
            "the slot has no such GPU": (slots[0] != pl.col("slot")) | (slots[1] != pl.col("slot")),
            "it takes no time": pl.col("start_us") >= pl.col("end_us"),
        },
        *_LEASE,
    )


def leases_lie_in_the_life_of_their_app(run: Run) -> pl.DataFrame:
    """An app holds GPUs between its arrival and its end only, from first_gpu_s on."""
    lives = run.apps.select("app_id", "arrival_us", "first_us", "last_us")
    leases = run.leases.join(lives, on="app_id", how="left", maintain_order="left")
    wrong = problems(
        leases,
        {
            "there is no such app": pl.col("arrival_us").is_null(),
            "before its app arrived": pl.col("start_us") < pl.col("arrival_us"),
            "before the first GPU of its app": pl.col("first_us").is_null()
            | (pl.col("start_us") < pl.col("first_us")),
            "after the end of its app": pl.col("end_us") > pl.col("last_us"),
        },
        *_LEASE,
    )
    began = run.leases.group_by("app_id").agg(began_us=pl.col("start_us").min())
    firsts = lives.join(began, on="app_id", how="left", maintain_order="left")
    late = problems(
        firsts,
        {"first_gpu_s is not its first lease": pl.col("first_us").ne_missing(pl.col("began_us"))},
        *("app_id", "first_us", "began_us"),
    )
    return pl.concat([wrong, late], how="diagonal")


def causes_fit_the_policy(run: Run) -> pl.DataFrame:
    """Leases begin and end for reasons that the policy can have."""
    auctions = run.result.policy == "themis"
    causes = ["auction", "leftover"] if auctions else ["policy"]
    causes += ["renewal", "reservation", "shared"]
    kept = ["job_end", "app_end", "horizon", "withdrawn", "failure"]
    known = [*kept, "expired", "renewal"]
    ends = kept if run.result.policy in WITHOUT_LEASES else known
    return problems(
        run.leases,
        {
            "the policy has no such cause": ~pl.col("cause").is_in(causes),
            "renewals and cause do not fit": (pl.col("cause") == "renewal")
            != (pl.col("renewals") > 0),
            "no share of a GPU": ~pl.col("gpu_milli").is_between(1, WHOLE_MILLI),
            "the policy ends no lease like that": ~pl.col("ended_by").is_in(ends),
        },
        *_LEASE,
        "cause",
        "renewals",
        "ended_by",
    )


def leases_end_on_time(run: Run) -> pl.DataFrame:
    """A lease that ran out did so at an end of a lease, unless a payment or promise had cut it."""
    length = run.setting_us("lease_s")
    cut = run.settings.get("payment") == "lease" or run.settings.get("reserve_after_s") is not None
    unknown = not run.is_built_in or cut
    if unknown or run.result.policy in WITHOUT_LEASES or not length:
        return run.leases.clear()
    # A guest comes at any time, and leaves with the lease of who holds the GPU.
    own = pl.col("cause") != "shared"
    over = run.leases.filter(own & pl.col("ended_by").is_in(["expired", "renewal"]))
    if run.settings.get("lease_mode") == "aligned":
        late = pl.col("end_us") % length != 0
        return problems(over, {"not at a common end of leases": late}, *_LEASE)
    # Of a gang, GPUs end early when others of it do: nothing is held half. A GPU that passes to a
    # job of another share begins a row within its lease.
    gangs = run.jobs.filter((GANG > 1) | SHARE)["app_id"].unique().implode()
    late = ((pl.col("end_us") - pl.col("start_us")) % length != 0) & ~pl.col("app_id").is_in(gangs)
    return problems(over, {"not after whole leases": late}, *_LEASE)


def leases_begin_on_gpus_there_are(run: Run) -> pl.DataFrame:
    """No lease begins on GPUs that its machine lacks at that time."""
    changes = run.result.capacity.select("machine", us("at_s").alias("at_us"), there="gpus")
    changes = changes.unique(["machine", "at_us"], keep="last", maintain_order=True).sort("at_us")
    leases = run.leases.sort("start_us").join_asof(
        changes,
        left_on="start_us",
        right_on="at_us",
        by="machine",
        check_sortedness=False,
    )
    return leases.filter(pl.col("gpu_first") + pl.col("gpus") > pl.col("there"))


def apps_stay_below_their_caps(run: Run) -> pl.DataFrame:
    """An app never holds more GPUs than its max_gpus."""
    if run.workload is None:
        raise AssertionError("invariant: the rule says that it needs the workload")
    caps = run.workload.apps.select("app_id", "max_gpus")
    held = run.held.join(caps, on="app_id", how="left", maintain_order="left")
    return held.filter(pl.col("held") > pl.col("max_gpus"))


def jobs_start_with_their_gang(run: Run) -> pl.DataFrame:
    """When a job starts, its app holds its gang at least."""
    started = run.jobs.filter(pl.col("start_us").is_not_null() & pl.col("works"))
    started = started.select("job_id", "app_id", "gang_size", at_us="start_us").sort("at_us")
    held = started.join_asof(
        run.held.sort("at_us"), on="at_us", by="app_id", check_sortedness=False
    )
    return held.filter(pl.col("held").fill_null(0) < GANG)


def gangs_are_whole(run: Run) -> pl.DataFrame:
    """What an app holds can be divided among its open jobs, gangs whole, shares as asked for."""
    by = ["app_id", "gpu_milli"]
    jobs = run.jobs.filter("works").select(
        *by, "submit_us", "end_us", "gang_size", most=_most_of_a_job(run)
    )
    lone = jobs.filter(pl.len().over(by) == 1)
    held = run.held_by_share.filter(pl.col("held") > 0)
    of_lone = held.join(lone, on=by)
    is_open = (pl.col("submit_us") <= pl.col("at_us")) & (
        pl.col("end_us").fill_null(run.end_us + 1) > pl.col("at_us")
    )
    fits = pl.col("held").is_between(GANG, pl.col("most"))
    wrong = [of_lone.filter(~(is_open & fits)).select(*by, "at_us", "held")]
    several = jobs.join(lone, on=by, how="anti")
    of_app = several.partition_by(by, as_dict=True)
    for key, spans in (
        held.join(lone, on=by, how="anti")
        .partition_by(by, as_dict=True, maintain_order=True)
        .items()
    ):
        rows = of_app.get(key, several.clear()).drop(by).rows()
        bad = [not _divides(held, at, rows) for _, _, at, held in spans.rows()]
        wrong.append(spans.filter(pl.Series(bad, dtype=pl.Boolean)))
    return pl.concat(wrong)


def _most_of_a_job(run: Run) -> pl.Expr:
    """Most GPUs of a job: as submitted, but where a search may let it have more."""
    if run.workload is None or run.has_agents:
        return pl.lit(2**31)
    halving = run.workload.apps.filter(pl.col("stopping") == "successive_halving")["app_id"]
    searches = pl.col("app_id").is_in(halving.implode())
    return pl.when(searches).then(2**31).otherwise("gpus_max")


def _divides(held: int, at_us: int, jobs: list[tuple[int, int | None, int, int]]) -> bool:
    """Whether gangs of the jobs that are open then make up so many GPUs; bit n of `sums`: n do."""
    sums = 1
    for submit_us, end_us, gang, most in jobs:
        if submit_us <= at_us and (end_us is None or end_us > at_us):
            base = sums
            for gpus in range(gang, min(most, held) + 1):
                sums |= base << gpus
            if sums >> held & 1:
                return True
    return held == 0
