"""docs/schema.md: the columns of workloads and results, from the code that checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from themis.schema.limits import MAX_WEIGHT, MIN_WEIGHT
from themis.schema.result import RESULT_SCHEMA_VERSION, TABLES
from themis.schema.workload import (
    APPS,
    JOBS,
    MAX_GPUS,
    MAX_WORK_GPU_S,
    NULLABLE,
    STATUSES,
    STOPPING,
    WORKLOAD_SCHEMA_VERSION,
)

__all__ = ["schema_page"]

_APPS = {
    "app_id": "each once",
    "user": "who asked for it",
    "tenant": "group, virtual cluster or organisation of the user",
    "arrival_s": "submission of its earliest job, s",
    "stopping": f"what ends it: {', '.join(STOPPING)}",
    "weight": f"2 deserves twice the share of 1; {MIN_WEIGHT:g} to {MAX_WEIGHT:g}",
    "profile": "placement profile of its jobs, unless they name one",
    "gpu_types": "types that it can use, `A\\|B`; null: any",
    "max_gpus": f"cap on the GPUs of all its jobs, 1 to {MAX_GPUS:,}; null: none",
    "target_loss": "loss at which a search by loss is content",
}
_JOBS = {
    "job_id": "each once",
    "app_id": "its app",
    "submit_s": "submission, s, 0 or more",
    "serial_time_s": "work in GPU-seconds, at one GPU and perfect placement, at most "
    f"{MAX_WORK_GPU_S:g}; of a job without GPUs its duration, s",
    "gang_size": f"GPUs that it needs at once, 0 to {MAX_GPUS:,}",
    "max_gpus": "GPUs that it can use, the gang or more",
    "profile": "its placement profile",
    "checkpoint_s": "time to save its state, s; null: the setting",
    "status": f"how it ended in the source: {', '.join(STATUSES)}",
    "iterations": "iterations of its whole work, above 0",
    "loss_a": "loss after k iterations is 1 / (loss_a k + loss_b) + loss_c",
    "loss_b": "above 0",
    "loss_c": "loss that it tends to",
    "gpu_milli": "thousandths of its one GPU that it uses, 1 to 1000; null: all",
    "mixes_types": "whether it runs on several GPU types at once, at the slowest; null: true",
    "cpu_cores_per_gpu": "CPU cores that each of its GPUs needs of its machine; null: none",
    "memory_gib_per_gpu": "GiB of memory that each of its GPUs needs of its machine; null: none",
    "bracket": "jobs of one bracket of an app halve among themselves (HyperBand); null: 0",
}
_RESULT = {
    "app_id": "the app",
    "user": "as in the workload",
    "tenant": "as in the workload",
    "arrival_s": "arrival, s",
    "first_gpu_s": "first GPU, s; null: never",
    "end_s": "end, s; null: not ended",
    "state": "final state: for apps done, failed, infeasible, rejected, unfinished; for jobs done, "
    "killed, failed, infeasible, rejected, unfinished",
    "reason": "why, where it is not done or has no rho",
    "jobs": "its jobs",
    "gpu_s": "GPU-seconds held",
    "useful_gpu_s": "the part that did the work",
    "slowed_gpu_s": "the part lost to placement",
    "switching_gpu_s": "the part of checkpoints and restarts",
    "lost_gpu_s": "the part whose work failures undid",
    "idle_gpu_s": "the part that could not work",
    "n_avg": "1 over its fair share meanwhile, mean: with equal weights the active apps",
    "gpus_avg": "GPUs that the cluster had meanwhile, mean",
    "t_id_s": "ideal time with 1 / n_avg of the cluster, s",
    "t_sh_s": "time from arrival to end, s",
    "rho": "t_sh_s / t_id_s; null: none, see reason",
    "rho_is_bound": "cut off by the horizon: rho is a lower bound",
    "rho_floor": "least rho that any schedule could give it",
    "queue_s": "from arrival to the first GPU, s",
    "preemptions": "times that it lost GPUs to another while it ran",
    "migrations": "times that it went on with other GPUs",
    "promised_s": "first start that it was promised, s; null: none was",
    "failures": "times that GPUs failed under it",
    "placement_score": "mean 1/S over running GPU time; null: never ran",
    "lied": "whether its bids were lies (setting `liars`)",
    "lie_gain_s": "T_SH of the same run without lies, less its own; null: nobody lied",
    "job_id": "the job",
    "submit_s": "submission, s",
    "start_s": "start, s; null: never",
    "gang_size": "GPUs that it needs at once",
    "gpus_max": "most GPUs that it can use",
    "gpu_milli": "thousandths of each GPU that are used; below 1000 where fractions share it",
    "work_gpu_s": "work done, GPU-seconds at perfect placement",
    "lease_id": "numbered by grant",
    "machine": "name of the machine",
    "slot": "slot in the machine, from 0",
    "gpu_first": "first of its GPUs in the machine, from 0",
    "gpus": "GPUs, one after the other",
    "cause": "of a lease: auction, leftover, policy, renewal, reservation or shared (room beside "
    "another fraction of a GPU); of a change: "
    "planned, evicted, failure or repair",
    "renewals": "renewals in this row",
    "ended_by": "job_end, app_end, expired, withdrawn, failure, horizon or renewal",
    "auction_id": "numbered by time",
    "at_s": "time, s",
    "offered_gpus": "GPUs on offer",
    "active_apps": "apps that have arrived and not ended",
    "bidders": "apps that bid",
    "winners": "apps that won",
    "leftover_gpus": "GPUs that no winner kept",
    "min_c": "smallest factor c that a winner keeps; null: no winner",
    "mean_c": "their mean",
    "objective": "sum of log 1/rho over the bidders",
    "upper_bound": "certified bound of it",
    "gap": "between the two, a share of the geometric mean of 1/rho",
    "gpus_total": "GPUs that exist",
    "gpus_used": "GPUs held, each counted whole",
    "gpus_productive": "GPUs that work, neither switching nor idle; of shared ones the shares",
    "waiting_apps": "active apps without a GPU",
}
_ROWS = {
    "apps": "One row an app.",
    "jobs": "One row a job.",
    "leases": "One row a run of neighbouring GPUs of a machine, leased to an app.",
    "auctions": "One row an auction; none for policies without auctions.",
    "usage": "One row a change, valid until the next.",
    "capacity": "One row a change of what a machine has; it has all of its GPUs before the first.",
}


def schema_page() -> str:
    """Return docs/schema.md.

    Raises
    ------
    KeyError
        A column has no meaning here.
    """
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Schemas"
    yield ""
    yield "Written by `make schema` from the code that checks these tables. Times are seconds on"
    yield "the workload's clock, ids are text. What may be null may be absent from a workload."
    yield ""
    yield f"## Workloads (version {WORKLOAD_SCHEMA_VERSION})"
    for name, columns, meanings in (("apps", APPS, _APPS), ("jobs", JOBS, _JOBS)):
        yield from _table(name, columns, meanings, NULLABLE[name])
    yield ""
    yield f"## Results (version {RESULT_SCHEMA_VERSION})"
    yield ""
    yield "Numbers and texts that do not exist are null, never NaN."
    for name, columns in TABLES.items():
        yield from _table(name, columns, _RESULT, None)


def _table(
    name: str,
    columns: Mapping[str, pl.DataType],
    meanings: Mapping[str, str],
    nullable: frozenset[str] | None,
) -> Iterator[str]:
    yield ""
    yield f"### {name}"
    yield ""
    yield _ROWS[name]
    yield ""
    yield "| column | type | null |  |" if nullable is not None else "| column | type |  |"
    yield "|---|---|---|---|" if nullable is not None else "|---|---|---|"
    for column, kind in columns.items():
        cells = [f"`{column}`", str(kind)]
        if nullable is not None:
            cells.append("may be" if column in nullable else "never")
        yield f"| {' | '.join([*cells, meanings[column]])} |"
