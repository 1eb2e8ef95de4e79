"""Changes that might have started an app sooner, from small to large, tried by playing again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from themis.cluster.cluster import Cluster
from themis.errors import ThemisError
from themis.explanations.replay import Replay
from themis.explanations.subject import Subject
from themis.policies.catalogue import POLICIES
from themis.report.wording import duration
from themis.results.result import Result
from themis.workload.tenants import Tenant
from themis.workload.workload import Workload

__all__ = ["CHANGES", "smallest_change", "tried_changes"]

CHANGES: Mapping[str, type[pl.DataType]] = {
    "kind": pl.String,
    "change": pl.String,
    "start_s": pl.Float64,
    "sooner_s": pl.Float64,
    "refused": pl.String,
}
"""Columns of the tried changes: `start_s` is null where it would not have started sooner."""

_EARLIER_S = (60.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0)
_WEIGHT = 2.0


@dataclass(frozen=True, eq=False)
class _Change:
    """One difference to the run as it was; None stays as it is."""

    kind: str
    text: str
    workload: Workload | None = None
    cluster: Cluster | None = None
    policy: str | None = None
    tenants: Mapping[str, Tenant] | None = None


def tried_changes(
    replay: Replay, subject: Subject, *, until_s: float, tell: Callable[[str], None]
) -> pl.DataFrame:
    """Play the run again with one change at a time and see when the subject would have started.

    The kinds go from what its user can do to what its operator can: an earlier submission (only
    the smallest that helps is kept), half the gang, twice the weight, no quota for its tenant, any
    GPU type, one more machine, another policy.

    Parameters
    ----------
    replay
        The run.
    subject
        Who shall start sooner.
    until_s
        When it did start, or the end of the run: nothing later counts.
    tell
        Called with each change before it is tried.

    Returns
    -------
    polars.DataFrame
        Columns of :data:`CHANGES`, in the order of trying.
    """
    rows: list[dict[str, object]] = []
    helped = set()
    for change in _changes(replay, subject):
        if change.kind == "submission" and change.kind in helped:
            continue
        tell(change.text)
        start_s, refused = _start(replay, change, subject, until_s)
        if start_s is not None:
            helped.add(change.kind)
        sooner_s = None if start_s is None else until_s - start_s
        rows.append(
            dict(zip(CHANGES, (change.kind, change.text, start_s, sooner_s, refused), strict=True))
        )
    return pl.DataFrame(rows, schema=CHANGES)


def smallest_change(changes: pl.DataFrame) -> dict[str, Any] | None:
    """Return the first change that starts the subject sooner, as a row; None where none does."""
    helpful = changes.filter(pl.col("start_s").is_not_null())
    return None if helpful.is_empty() else helpful.row(0, named=True)


def _start(
    replay: Replay, change: _Change, subject: Subject, until_s: float
) -> tuple[float | None, str | None]:
    """Return when the subject would have started, and why that can't be told."""
    try:
        result = replay.play(
            workload=change.workload,
            cluster=change.cluster,
            policy=change.policy,
            tenants=change.tenants,
            until_s=until_s,
        )
    except ThemisError as error:
        return None, str(error)
    start_s = _first_gpu_s(result, subject)
    return (start_s, None) if start_s is not None and start_s < until_s else (None, None)


def _first_gpu_s(result: Result, subject: Subject) -> float | None:
    if subject.job is None:
        frame, key, name, column = result.apps, "app_id", subject.app_id, "first_gpu_s"
    else:
        frame, key, name, column = result.jobs, "job_id", str(subject.job["job_id"]), "start_s"
    value = frame.filter(pl.col(key) == name).get_column(column)[0]
    return None if value is None else float(value)


def _changes(replay: Replay, subject: Subject) -> Iterator[_Change]:
    workload, app_id = replay.inputs.workload, subject.app_id
    first_s = workload.apps.get_column("arrival_s")[0]
    room_s = subject.app["arrival_s"] - first_s  # nothing is known of the time before
    for earlier_s in sorted({min(step_s, room_s) for step_s in _EARLIER_S} - {0.0}):
        text = f"submitted {duration(earlier_s, gap=' ')} earlier"
        yield _Change("submission", text, workload=_earlier(workload, app_id, earlier_s))
    if max(subject.gangs) > 1:
        halved = _jobs_of(
            workload, app_id, gang_size=(pl.col("gang_size") + pl.col("gang_size").clip(0, 1)) // 2
        )
        yield _Change("gang", "gangs of half the size", workload=halved)
    mine = pl.col("app_id") == app_id
    weight = pl.when(mine).then(pl.col("weight") * _WEIGHT).otherwise("weight")
    heavier = replace(workload, apps=workload.apps.with_columns(weight))
    yield _Change("weight", "twice the weight", workload=heavier)
    yield from _no_quota(replay.inputs.tenants, workload.apps.filter(mine)["tenant"][0])
    if workload.apps.filter(mine).get_column("gpu_types")[0] is not None:
        types = pl.when(~mine).then(pl.col("gpu_types")).alias("gpu_types")
        anywhere = replace(workload, apps=workload.apps.with_columns(types))
        yield _Change("type", "any GPU type", workload=anywhere)
    yield from _more_machines(replay.inputs.cluster)
    for policy in POLICIES:
        if policy.name != replay.policy:
            yield _Change("policy", f"policy {policy.name}", policy=policy.name)


def _no_quota(tenants: Mapping[str, Tenant], owner: str | None) -> Iterator[_Change]:
    own = tenants.get(owner or "")
    if own is not None and own.quota_gpus is not None:
        free = {**tenants, str(owner): own.model_copy(update={"quota_gpus": None})}
        yield _Change("quota", "no quota for its tenant", tenants=free)


def _earlier(workload: Workload, app_id: str, by_s: float) -> Workload:
    mine = pl.col("app_id") == app_id
    apps, jobs = (
        frame.with_columns(pl.when(mine).then(pl.col(at) - by_s).otherwise(at).alias(at))
        for frame, at in ((workload.apps, "arrival_s"), (workload.jobs, "submit_s"))
    )
    return replace(workload, apps=apps, jobs=jobs)


def _jobs_of(workload: Workload, app_id: str, **changed: pl.Expr) -> Workload:
    mine = pl.col("app_id") == app_id
    columns = {
        name: pl.when(mine).then(value).otherwise(name).alias(name)
        for name, value in changed.items()
    }
    return replace(workload, jobs=workload.jobs.with_columns(**columns))


def _more_machines(cluster: Cluster) -> Iterator[_Change]:
    """One more machine of each GPU type, of its most frequent shape, in the rack of the last."""
    machines = cluster.machines
    for gpu_type in cluster.gpu_types:
        alike = machines.filter(pl.col("gpu_type") == gpu_type)
        shapes = alike.group_by("gpus", "slot_gpus").len()
        shape = shapes.sort("len", "gpus", "slot_gpus", descending=True).row(0, named=True)
        model = alike.filter(
            (pl.col("gpus") == shape["gpus"]) & (pl.col("slot_gpus") == shape["slot_gpus"])
        ).tail(1)
        name = "one more"
        while name in machines.get_column("machine"):
            name += " more"
        more = model.with_columns(pl.lit(name).alias("machine"))
        of_type = f" of type {gpu_type}" if len(cluster.gpu_types) > 1 else ""
        yield _Change(
            "machine",
            f"one more machine{of_type} ({shape['gpus']} GPUs)",
            cluster=replace(cluster, machines=_beside(machines, model, more)),
        )


def _beside(machines: pl.DataFrame, model: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    """Put a machine after the last one of its model's rack: racks stay together."""
    rack = (machines.get_column("rack") == model.get_column("rack")[0]).arg_true()
    at = int(rack[-1]) + 1
    return pl.concat([machines[:at], more, machines[at:]])
