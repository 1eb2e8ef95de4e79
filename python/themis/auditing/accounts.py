"""Accounts: every GPU-second is counted once, and every job's story adds up."""

from __future__ import annotations

import numpy as np
import polars as pl

from themis.auditing.paces import paces
from themis.auditing.run import SHARE, Run, problems, us
from themis.metrics.gpu_time import GPU_TIME_PARTS
from themis.schema.workload import WHOLE_MILLI

__all__ = [
    "counts_add_up",
    "gpu_seconds_add_up",
    "gpu_seconds_of_use_add_up",
    "lone_jobs_did_the_work_of_their_leases",
    "use_is_in_order",
    "use_is_that_of_the_leases",
    "work_is_neither_lost_nor_invented",
]

_PARTS = tuple(f"{part}_gpu_s" for part in GPU_TIME_PARTS)
_RAN = ("useful_gpu_s", "slowed_gpu_s", "lost_gpu_s")
_MOVES = ("preemptions", "migrations", "failures")


def _differ(one: pl.Expr, other: pl.Expr, within: pl.Expr | float = 1e-6) -> pl.Expr:
    most = pl.max_horizontal(one.abs(), other.abs())
    return (one - other).abs() > 1e-9 * most + within


def gpu_seconds_add_up(run: Run) -> pl.DataFrame:
    """The GPU time of an app is that of its leases, of its jobs, and of its parts."""
    # By share, since thousandths of microseconds do not fit in the figures of an app.
    lasts_us = pl.col("end_us") - pl.col("start_us")
    leased = run.leases.group_by("app_id", "gpu_milli").agg(
        leased_us=(pl.col("gpus") * lasts_us).sum()
    )
    leased = leased.group_by("app_id").agg(leased_gpu_us=_in_gpus("leased_us"))
    shares = run.jobs.filter(SHARE).group_by("app_id").agg(shares=pl.len())
    of_jobs = run.jobs.group_by("app_id").agg(
        jobs_gpu_us=us("gpu_s").sum(),
        # In GPU-seconds of the fastest type that each may use; unknown without the workload.
        work_gpu_s=pl.when(pl.col("fastest").is_not_null().all()).then(
            (pl.col("work_gpu_s") / pl.col("fastest")).sum()
        ),
    )
    apps = run.apps.with_columns(gpu_us=us("gpu_s"), parts_gpu_s=pl.sum_horizontal(_PARTS))
    for part in (leased, of_jobs, shares):
        apps = apps.join(part, on="app_id", how="left", maintain_order="left")
    apps = apps.with_columns(pl.col("leased_gpu_us", "jobs_gpu_us", "shares").fill_null(0))
    return problems(
        apps,
        {
            "leases have another GPU time": _off(pl.col("leased_gpu_us")),
            "its jobs have another GPU time": _off(pl.col("jobs_gpu_us")),
            "a part is below 0": pl.min_horizontal(_PARTS) < 0,
            "its parts do not make it up": _differ(pl.col("parts_gpu_s"), pl.col("gpu_s")),
            "its jobs did other work": _differ(pl.col("work_gpu_s"), pl.col("useful_gpu_s")),
        },
        *("app_id", "gpu_us", "leased_gpu_us", "jobs_gpu_us", *_PARTS, "work_gpu_s"),
    )


def _in_gpus(column: str) -> pl.Expr:
    """Whole microseconds of shares of GPUs."""
    milli = pl.col(column) * pl.col("gpu_milli")
    return (milli // WHOLE_MILLI).sum() + (milli % WHOLE_MILLI).sum() // WHOLE_MILLI


def _off(gpu_us: pl.Expr) -> pl.Expr:
    """Whether it is not the GPU time of an app: exactly, but for rounded times of shares."""
    return (pl.col("gpu_us") - gpu_us).abs() > pl.col("shares")


def work_is_neither_lost_nor_invented(run: Run) -> pl.DataFrame:
    """A job that is done did all of its work, others no more; no work without GPU time."""
    asked = pl.col("asked_gpu_us") / 1e6
    did = pl.col("work_gpu_s")
    at_target = pl.col("reason").is_not_null()
    free = pl.col("gang_size") == 0
    return problems(
        run.jobs,
        {
            "the workload has no such job": pl.col("asked_gpu_us").is_null(),
            "uses another share of its GPU": pl.col("gpu_milli") != pl.col("asked_milli"),
            "it takes no GPUs": free & ((did != 0) | (pl.col("gpu_s") != 0)),
            "done without all of its work": ~free
            & (pl.col("state") == "done")
            & ~at_target
            & _differ(did, asked),
            # Whole microseconds on the fastest type.
            "more work than it has": did
            > asked * (1 + 1e-12) + 1e-6 * pl.col("fastest").fill_null(1),
            "less than none": did < 0,
            "more work than its GPU time": did
            > pl.col("gpu_s") * pl.col("fastest") * (1 + 1e-9) + 1e-6,
        },
        *("job_id", "state", "asked_gpu_us", "work_gpu_s", "gpu_s"),
    )


def use_is_in_order(run: Run) -> pl.DataFrame:
    """Use is in order of time; no more GPUs work than are used, or are used than exist."""
    usage = run.result.usage.with_columns(at_us=us("at_s"))
    ordered = pl.col("at_us") > pl.col("at_us").shift()
    return problems(
        usage,
        {
            "not after the row before": ~ordered,
            "more GPUs work than are used": pl.col("gpus_productive") > pl.col("gpus_used"),
            "more GPUs are used than exist": pl.col("gpus_used") > pl.col("gpus_total"),
            "fewer than none": pl.col("gpus_productive") < 0,
            "more apps wait than are active": pl.col("waiting_apps") > pl.col("active_apps"),
        },
        *usage.columns,
    )


def use_is_that_of_the_leases(run: Run) -> pl.DataFrame:
    """GPUs in use, active and waiting apps are at every instant what leases and lives say."""
    names = ["gpus_used", "active_apps", "waiting_apps"]
    has_some = pl.col("held") > 0
    before = pl.col("held").shift(fill_value=0).over("app_id") > 0
    turns = run.held.with_columns(turn=has_some.cast(pl.Int64) - before.cast(pl.Int64))
    begin = run.active.select(at_us="arrival_us", active_apps=1)
    end = run.active.select(at_us="gpu_end_us", active_apps=-1)
    changes = [
        run.used.select("at_us", gpus_used=pl.col("held").diff().fill_null(pl.col("held"))),
        begin.with_columns(waiting_apps="active_apps"),
        end.with_columns(waiting_apps="active_apps"),
        turns.select("at_us", waiting_apps=-pl.col("turn")),
    ]
    truth = (
        pl.concat(changes, how="diagonal_relaxed")
        .group_by("at_us")
        .agg(pl.col(names).sum())
        .sort("at_us")
        .select("at_us", pl.col(names).cum_sum())
        .filter(pl.col("at_us") < run.end_us)
    )
    told = run.result.usage.select(us("at_s").alias("at_us"), *names).sort("at_us")
    both = truth.join_asof(told, on="at_us", suffix="_told")
    wrong = [pl.col(name) != pl.col(f"{name}_told").fill_null(0) for name in names]
    return both.filter(pl.any_horizontal(wrong))


def gpu_seconds_of_use_add_up(run: Run) -> pl.DataFrame:
    """GPU time of the rows of use is that of the leases; what of it works, that of the apps."""
    usage = run.result.usage.with_columns(at_us=us("at_s"))
    until = pl.col("at_us").shift(-1, fill_value=run.end_us)
    lasts = until - pl.col("at_us")
    used, works = usage.select(
        used=(pl.col("gpus_used") * lasts).sum(), works=(pl.col("gpus_productive") * lasts).sum()
    ).row(0)
    leased = run.in_use.select((pl.col("gpus") * (pl.col("end_us") - pl.col("start_us"))).sum())
    ran_gpu_s = run.apps.select(pl.sum_horizontal(_RAN).sum()).item()
    sums = pl.DataFrame(
        {
            "used_gpu_us": [used],
            "leased_gpu_us": [leased.item()],
            "productive_gpu_s": [works / 1e6],
            "ran_gpu_s": [ran_gpu_s],
        }
    )
    return problems(
        sums,
        {
            "use is not that of the leases": pl.col("used_gpu_us") != pl.col("leased_gpu_us"),
            "working GPU time is not that of the apps": _differ(
                pl.col("productive_gpu_s"), pl.col("ran_gpu_s")
            ),
        },
        *sums.columns,
    )


def counts_add_up(run: Run) -> pl.DataFrame:
    """Apps and jobs are those of the workload, and the manifest counts their final states."""
    rows = []
    for what in ("job", "app"):
        table = run.result.frames[f"{what}s"]
        counts = dict(table.group_by("state").len().sort("state").rows())
        told = run.result.manifest.get(f"{what}_states", counts)
        if counts != told:
            rows.append((f"{what}s by state", str(told), str(counts)))
        if table[f"{what}_id"].n_unique() != table.height:
            rows.append((f"ids of {what}s", "each once", "some twice"))
        if run.workload is not None:
            given = (run.workload.jobs if what == "job" else run.workload.apps)[f"{what}_id"]
            if set(given) != set(table[f"{what}_id"]):
                rows.append((f"{what}s", str(given.len()), str(table.height)))
    moves = run.jobs.group_by("app_id").agg(pl.len().alias("jobs"), pl.col(_MOVES).sum())
    apps = run.apps.join(moves, on="app_id", how="left", suffix="_counted", maintain_order="left")
    for name in ("jobs", *_MOVES):
        wrong = apps.filter(pl.col(name).ne_missing(pl.col(f"{name}_counted")))
        rows += [
            (f"{name} of app {app}", str(told), str(counted))
            for app, told, counted in wrong.select("app_id", name, f"{name}_counted").rows()
        ]
    return pl.DataFrame(
        rows, schema=dict.fromkeys(("what", "told", "found"), pl.String), orient="row"
    )


def lone_jobs_did_the_work_of_their_leases(run: Run) -> pl.DataFrame:
    """The leases of an app of one job give its work, its switches, preemptions and migrations."""
    spans = _spans_of_lone_jobs(run)
    if spans.is_empty():
        return spans
    restart_us, checkpoint_us = run.setting_us("restart_s"), run.setting_us("checkpoint_s")
    same_app = pl.col("app_id") == pl.col("app_id").shift()
    changed = ~same_app.fill_null(value=False) | (pl.col("gpu_set") != pl.col("gpu_set").shift())
    had = pl.when(same_app).then(pl.col("held").shift()).fill_null(0)
    cost_us = restart_us + pl.col("checkpoint_us").fill_null(checkpoint_us)
    start_us = pl.when(changed).then(pl.col("at_us") + pl.when(same_app).then(cost_us).otherwise(0))
    spans = spans.with_columns(
        works_from_us=start_us.forward_fill(),
        preempted=changed & (had > 0) & (pl.col("held") == 0),
        moved=changed & (had > 0) & (pl.col("held") > 0),
    )
    ran_us = (pl.col("until_us") - pl.max_horizontal("at_us", "works_from_us")).clip(0) * (
        pl.col("held") > 0
    )
    share = pl.col("gpu_milli") / WHOLE_MILLI
    rate = pl.col("pace") / pl.col("slowdown") * pl.col("speed").fill_null(0)
    lasts_us = pl.col("until_us") - pl.col("at_us")
    replayed = spans.group_by("app_id", maintain_order=True).agg(
        replayed_gpu_s=(ran_us * rate * share).sum() / 1e6,
        replayed_switching_gpu_s=(pl.col("held") * share * (lasts_us - ran_us)).sum() / 1e6,
        replayed_preemptions=pl.col("preempted").sum(),
        replayed_migrations=pl.col("moved").sum(),
    )
    told = run.jobs.select(
        *("job_id", "app_id", "work_gpu_s", "preemptions", "migrations", "gpus_max", "gpu_milli")
    )
    told = told.join(run.apps.select("app_id", "switching_gpu_s"), on="app_id")
    both = replayed.join(told, on="app_id", maintain_order="left")
    return problems(
        both,
        {
            "other work": _differ(
                pl.col("work_gpu_s"), pl.col("replayed_gpu_s"), 2e-6 * pl.col("gpus_max")
            ),
            "other switches": _differ(
                pl.col("switching_gpu_s"), pl.col("replayed_switching_gpu_s")
            ),
            "other preemptions": pl.col("preemptions") != pl.col("replayed_preemptions"),
            "other migrations": pl.col("migrations") != pl.col("replayed_migrations"),
        },
        *both.columns,
    )


def _spans_of_lone_jobs(run: Run) -> pl.DataFrame:
    """Times in which an app of one job holds the same GPUs, or none, with S of their place."""
    # What became of a job when GPUs left the cluster is not in its leases alone.
    lost = run.leases.filter(pl.col("ended_by").is_in(["withdrawn", "failure"]))["app_id"].unique()
    lone = run.jobs.filter(
        (pl.len().over("app_id") == 1) & pl.col("works") & ~pl.col("app_id").is_in(lost.implode())
    )
    lone = (
        lone.join(run.slowdowns, on="job_id")
        .join(run.kinds, on="job_id")
        .select(
            *("app_id", "gang_size", "gpus_max", "gpu_milli", "checkpoint_us", "speeds"),
            *("profile", "s0", "s1", "s2", "s3"),
        )
    )
    ends = run.apps.select("app_id", "last_us")
    changes = run.held.join(lone.select("app_id"), on="app_id", how="semi").sort("app_id", "at_us")
    until = pl.coalesce(
        pl.when(pl.col("app_id") == pl.col("app_id").shift(-1)).then(pl.col("at_us").shift(-1)),
        "last_us",
    )
    spans = changes.join(ends, on="app_id", maintain_order="left").with_columns(until_us=until)
    spans = spans.filter(pl.col("at_us") < pl.col("last_us"))
    sets = _gpu_sets(run, spans.join(lone.select("app_id", "speeds"), on="app_id"))
    level = (
        pl.when(pl.col("slots") == 1)
        .then("s0")
        .when(pl.col("machines") == 1)
        .then("s1")
        .when(pl.col("racks") == 1)
        .then("s2")
        .otherwise("s3")
    )
    spans = (
        spans.join(sets, on=["app_id", "at_us"], how="left", maintain_order="left")
        .join(lone, on="app_id", maintain_order="left")
        .with_columns(pl.col("gpu_set").fill_null(0), slowdown=level)
        .with_columns(used=pl.min_horizontal("held", "gpus_max"))
    )
    pace = paces(run.known.scaling, *spans["profile", "used", "gang_size"])
    return spans.with_columns(pace=pace)


def _gpu_sets(run: Run, spans: pl.DataFrame) -> pl.DataFrame:
    """Return for each span with GPUs a number that tells their set, and how far they are spread."""
    machines = run.machines.with_row_index("number").with_columns(
        first=pl.col("has").cum_sum() - pl.col("has")
    )
    total = int(machines["has"].sum())
    marks = np.random.Generator(np.random.PCG64(0)).integers(0, 2**64, total, dtype=np.uint64)
    sums = pl.Series("mark", np.concatenate([[np.uint64(0)], np.cumsum(marks, dtype=np.uint64)]))
    leases = run.leases.join(machines, on="machine")
    first = pl.col("first") + pl.col("gpu_first")
    leases = leases.select(
        "app_id",
        "start_us",
        "end_us",
        "rack",
        "number",
        "type",
        slot_id=pl.struct("number", "slot"),
        low=first,
        high=first + pl.col("gpus"),
    )
    covering = spans.select("app_id", "at_us", "speeds").join(leases, on="app_id")
    covering = covering.filter(
        (pl.col("start_us") <= pl.col("at_us")) & (pl.col("at_us") < pl.col("end_us"))
    )
    lows, highs = (sums.gather(covering[name]).to_numpy() for name in ("low", "high"))
    return (
        covering.with_columns(
            mark=pl.Series(highs - lows).reinterpret(signed=True),
            speed=run.speed(covering["speeds"], covering["type"]),
            may_run=run.mixes(covering["speeds"]),
        )
        .group_by("app_id", "at_us")
        .agg(
            gpu_set=pl.col("mark").sum(),
            speed=pl.col("speed").min()
            * (pl.col("may_run").all() | (pl.col("type").n_unique() == 1)),
            slots=pl.col("slot_id").n_unique(),
            machines=pl.col("number").n_unique(),
            racks=pl.col("rack").n_unique(),
        )
    )
