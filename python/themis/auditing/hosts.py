"""What GPUs take of their machines beside themselves: CPU cores and memory."""

from __future__ import annotations

import polars as pl

from themis.auditing.run import Run
from themis.schema.host import OF_MACHINE, needed, there
from themis.schema.workload import WHOLE_MILLI

__all__ = ["machines_have_what_their_gpus_take"]


def machines_have_what_their_gpus_take(run: Run) -> pl.DataFrame:
    """The leases of a machine never take more CPU cores or memory together than it has.

    Leases are the app's: where its jobs of one share need different amounts, the least counts.
    """
    if run.workload is None or run.cluster is None:
        raise AssertionError("invariant: the rule says that it needs workload and cluster")
    jobs = run.workload.jobs.filter(pl.col("gang_size") > 0)
    takes = jobs.select("app_id", gpu_milli=pl.col("gpu_milli").fill_null(WHOLE_MILLI))
    machines = run.cluster.machines.select("machine")
    wrong = []
    for at, resource in enumerate(OF_MACHINE):
        least = takes.with_columns(takes=needed(jobs)[:, at]).group_by("app_id", "gpu_milli").min()
        leases = run.leases.join(least, on=["app_id", "gpu_milli"])
        leases = leases.with_columns(pl.col("takes") * pl.col("gpus") * pl.col("gpu_milli"))
        begin = leases.select("machine", "lease_id", at_us="start_us", change=pl.col("takes"))
        end = leases.select("machine", "lease_id", at_us="end_us", change=-pl.col("takes"))
        # Every machine ends with nothing taken, so that one sum runs over all of them.
        changes = pl.concat([begin, end]).sort("machine", "at_us", "change")
        limits = machines.with_columns(has=there(run.cluster.machines)[:, at] * WHOLE_MILLI)
        taken = changes.with_columns(taken=pl.col("change").cum_sum()).join(
            limits.filter(pl.col("has") >= 0), on="machine", maintain_order="left"
        )
        over = taken.filter((pl.col("change") > 0) & (pl.col("taken") > pl.col("has")))
        wrong.append(over.select("machine", "lease_id", "at_us", resource=pl.lit(resource)))
    return pl.concat(wrong)
