"""What happened to an app, row by row, from the tables of a result."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

import polars as pl

from themis.explanations.spans import Span
from themis.explanations.subject import Subject
from themis.report.wording import duration
from themis.results.result import Result
from themis.schema.workload import WHOLE_MILLI

__all__ = [
    "TIMELINE",
    "counted",
    "fates",
    "held_by",
    "holders_of",
    "timeline_of",
    "winners_at",
]

TIMELINE: Mapping[str, type[pl.DataType]] = {
    "at_s": pl.Float64,
    "event": pl.String,
    "gpus": pl.Int64,
    "text": pl.String,
}
"""Columns of a timeline: `gpus` is what the app holds from then on."""

_US = 1_000_000
_CAUSES = {
    "auction": "won in an auction",
    "leftover": "left over from an auction",
    "policy": "granted by the policy",
    "renewal": "granted for another lease",
    "reservation": "set aside for it",
    "shared": "beside another fraction of a GPU",
}
_LOSSES = {
    "expired": "their lease ended",
    "job_end": "a job ended",
    "app_end": "the app ended",
    "horizon": "the run was cut off",
    "withdrawn": "they left the cluster",
    "failure": "they failed",
}
_FATES = {
    "won": "won",
    "paid_all": "the payment took what it won",
    "leftover": "won nothing, but some were left over",
    "not_visible": "not among the worst off",
    "no_useful_bundle": "nothing useful on offer",
    "outbid": "outbid",
}
_IN_GPUS = pl.col("gpus") * pl.col("gpu_milli") / WHOLE_MILLI
_MANY_MACHINES, _MANY_WAITS, _NAMED = 4, 50, 3


class Event(NamedTuple):
    """One row of a timeline; `rank` orders what happens at one instant."""

    at_s: float
    rank: int
    event: str
    text: str


def timeline_of(result: Result, subject: Subject, bids: pl.DataFrame | None) -> pl.DataFrame:
    """Return what happened to a subject, oldest first (columns of :data:`TIMELINE`).

    Parameters
    ----------
    result
        The run.
    subject
        Who.
    bids
        Its part in auctions (:class:`themis.explanations.replay.Watched`), where that is known.
    """
    events = [*_marks(subject), *_moves(subject.leases), *_waiting(result, subject, bids)]
    if bids is not None:
        events += _payments(bids)
    instants, held = _held(subject.leases)
    rows = [
        (event.at_s, event.event, held[bisect_right(instants, event.at_s)], event.text)
        for event in sorted(events)
    ]
    return pl.DataFrame(rows, schema=TIMELINE, orient="row")


def holders_of(result: Result, span: Span, *, without: str | None) -> pl.DataFrame:
    """Return who held the GPUs during a span, most first.

    Parameters
    ----------
    result
        The run.
    span
        Between its first and last instant.
    without
        An app that is left out, if any.

    Returns
    -------
    polars.DataFrame
        app_id, user, arrival_s, rho, gpu_s (held in the span), gpus_mean (over the span), share
        (of all GPUs of the cluster).
    """
    clipped = pl.min_horizontal("end_s", pl.lit(span.to_s)) - pl.max_horizontal(
        "start_s", pl.lit(span.from_s)
    )
    held = (
        result.leases.filter(
            (pl.col("start_s") < span.to_s)
            & (pl.col("end_s") > span.from_s)
            & pl.col("app_id").ne_missing(without)
        )
        .select("app_id", gpu_us=(clipped * _US).round().cast(pl.Int64) * _IN_GPUS)
        .with_columns(pl.col("gpu_us").round().cast(pl.Int64))
        .group_by("app_id")
        .agg(pl.col("gpu_us").sum())  # whole numbers: their sum has no order
        .sort("gpu_us", "app_id", descending=[True, False])
    )
    total = result.usage.get_column("gpus_total").max()
    gpus = total if isinstance(total, int) else 0
    who = result.apps.select("app_id", "user", "arrival_s", "rho")
    gpu_s = pl.col("gpu_us") / _US
    return held.join(who, on="app_id", how="left", maintain_order="left").select(
        "app_id",
        "user",
        "arrival_s",
        "rho",
        gpu_s=gpu_s,
        gpus_mean=gpu_s / span.length_s,
        share=gpu_s / (span.length_s * max(gpus, 1)),
    )


def winners_at(result: Result, at_s: float) -> pl.DataFrame:
    """Return who got GPUs at an instant that it did not hold before: app_id, gpus, cause."""
    begun = result.leases.filter(pl.col("start_s") == at_s)
    return (
        begun.group_by("app_id", "cause")
        .agg(pl.col("gpus").sum())
        .sort("gpus", "app_id", descending=[True, False])
        .select("app_id", "gpus", "cause")
    )


def counted(number: int, what: str) -> str:
    """Return ``1 job`` or ``2 jobs``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _marks(subject: Subject) -> Iterable[Event]:
    app, job = subject.app, subject.job
    gangs = ", ".join(map(str, subject.gangs))
    yield Event(app["arrival_s"], 0, "arrived", f"{counted(app['jobs'], 'job')}, gang {gangs}")
    if job is not None:
        yield Event(job["submit_s"], 1, "submitted", f"job {job['job_id']!r}, gang {gangs}")
        if job["start_s"] is not None:
            yield Event(job["start_s"], 7, "started", f"job {job['job_id']!r}")
        if job["end_s"] is not None:
            yield Event(job["end_s"], 8, "job ended", _ending(job["state"], job["reason"]))
    if app["end_s"] is not None:
        rho = "" if app["rho"] is None else f"; rho {app['rho']:.4g}"
        yield Event(app["end_s"], 9, "ended", f"{_ending(app['state'], app['reason'])}{rho}")
    elif app["state"] != "unfinished":
        yield Event(app["arrival_s"], 9, "ended", _ending(app["state"], app["reason"]))


def _ending(state: str, reason: str | None) -> str:
    return state if reason is None else f"{state}: {reason}"


def _moves(leases: pl.DataFrame) -> Iterable[Event]:
    """GPUs gained and lost; both at one instant is a move."""
    for at_s in sorted({*leases["start_s"], *leases["end_s"]}):
        gained = leases.filter(pl.col("start_s") == at_s)
        lost = leases.filter(pl.col("end_s") == at_s)
        taken = lost.filter(pl.col("ended_by") == "expired")
        if not gained.is_empty() and not taken.is_empty():
            text = f"from {_places(taken)} to {_places(gained)}"
            yield Event(at_s, 6, "moved", f"{text}; {_causes(gained)}")
            lost = lost.filter(pl.col("ended_by") != "expired")
        elif not gained.is_empty():
            yield Event(at_s, 6, "got GPUs", f"{_places(gained)}; {_causes(gained)}")
        for (ended_by,), rows in lost.group_by("ended_by", maintain_order=True):
            if ended_by == "renewal":
                continue  # the same GPUs go on under another lease
            event = "preempted" if ended_by == "expired" else "released"
            text = f"{_places(rows)}; {_LOSSES.get(str(ended_by), str(ended_by))}"
            yield Event(at_s, 2, event, text)


def _places(leases: pl.DataFrame) -> str:
    held = leases.select(_IN_GPUS.sum().round(3)).item()
    gpus = counted(int(held), "GPU") if held == int(held) else f"{held:g} GPUs"
    machines = sorted(set(leases["machine"]))
    if len(machines) > _MANY_MACHINES:
        return f"{gpus} on {len(machines)} machines"
    return f"{gpus} on {', '.join(machines)}"


def _causes(leases: pl.DataFrame) -> str:
    return " and ".join(_CAUSES.get(cause, cause) for cause in sorted(set(leases["cause"])))


def _waiting(result: Result, subject: Subject, bids: pl.DataFrame | None) -> Iterable[Event]:
    for span in subject.waits:
        text = f"{duration(span.length_s, gap=' ')} without a GPU"
        if len(subject.waits) <= _MANY_WAITS:
            text += f"; {held_by(holders_of(result, span, without=subject.app_id))}"
        if bids is not None:
            text += f"; {fates(bids, span)}"
        yield Event(span.from_s, 3, "waits", text)


def held_by(holders: pl.DataFrame) -> str:
    """Say who held the GPUs, the largest holders by name (rows of :func:`holders_of`)."""
    if holders.is_empty():
        return "nobody else held a GPU"
    share = min(sum(holders.get_column("share").to_list()), 1.0)
    named = [f"{row['app_id']!r} ({row['share']:.0%})" for row in holders.head(_NAMED).to_dicts()]
    more = holders.height - _NAMED
    rest = f" and {counted(more, 'other app')}" if more > 0 else ""
    return f"{share:.0%} of the GPUs were held by {', '.join(named)}{rest}"


def fates(bids: pl.DataFrame, span: Span) -> str:
    """Say how an app fared in the auctions of a wait, before the one that ended it."""
    inside = bids.filter(pl.col("at_s").is_between(span.from_s, span.to_s, closed="left"))
    reasons = inside["reason"].to_list()
    if not reasons:
        return "in no auction"
    told = (f"{_FATES[reason]} in {reasons.count(reason)}" for reason in dict.fromkeys(reasons))
    return f"in {counted(len(reasons), 'auction')}: {', '.join(told)}"


def _payments(bids: pl.DataFrame) -> Iterable[Event]:
    for bid in bids.filter(pl.col("won_gpus") > 0).to_dicts():
        won, kept = bid["won_gpus"], bid["kept_gpus"]
        text = f"won {counted(won, 'GPU')}, rho {_rho(bid['rho_empty'])} without them; "
        text += f"c = {bid['c']:.4g}: keeps {'all' if kept == won else kept}"
        if bid["lease_fraction"] < 1:
            text += f" for {bid['lease_fraction']:.4g} of a lease"
        yield Event(bid["at_s"], 5, "paid" if bid["c"] < 1 else "won", text)


def _rho(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:.4g}"


def _held(leases: pl.DataFrame) -> tuple[list[float], list[int]]:
    """Return when GPUs were gained or lost, and how many were held before and after each."""
    gained = leases.select("start_s", "gpus").iter_rows()
    lost = leases.select("end_s", "gpus").iter_rows()
    changes = sorted([*gained, *((at_s, -gpus) for at_s, gpus in lost)])
    held = accumulate((gpus for _, gpus in changes), initial=0)
    return [at_s for at_s, _ in changes], list(held)
