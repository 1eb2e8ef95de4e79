"""The answer in words: how long it waited, for whom, and what would have helped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from themis.explanations.changes import smallest_change
from themis.explanations.replay import Watched
from themis.explanations.spans import Span
from themis.explanations.story import counted, fates, held_by
from themis.explanations.subject import Subject, run_end_s
from themis.policies.catalogue import POLICIES
from themis.report.wording import duration
from themis.results.result import Result

__all__ = ["Moment", "sentences"]

_NAMED = 3


class Moment(NamedTuple):
    """What is explained: a wait, the decision at its end, and what is known of both."""

    span: Span | None
    at_s: float | None
    holders: pl.DataFrame
    seen: Watched | None


def sentences(
    run: Result,
    subject: Subject,
    moment: Moment,
    winners: pl.DataFrame,
    changes: pl.DataFrame | None,
) -> list[str]:
    """Return the answer, a line a thought."""
    lines = [_life(subject)]
    if moment.span is None:
        lines.append("It never waited." if not subject.waits else "It was not waiting then.")
    else:
        lines.append(_wait(run, subject, moment.span))
        lines.append(f"Meanwhile {held_by(moment.holders)}.")
        lines += _quota(run, subject, moment.span)
    lines.append(_rule(run))
    lines += _decided(run, subject, moment, winners)
    if changes is not None:
        lines.append(_smallest(changes))
    return lines


def _life(subject: Subject) -> str:
    start_s, row = subject.start_s, subject.job or subject.app
    first = "never got a GPU" if start_s is None else f"first GPU {_at(start_s)}"
    end = "" if row["end_s"] is None else f" {_at(row['end_s'])}"
    ending = f"{row['state']}{end}"
    reason = f" ({row['reason']})" if row["reason"] is not None else ""
    rho = subject.app["rho"]
    fair = (
        "" if rho is None else f"; rho {rho:.4g}{' or more' if subject.app['rho_is_bound'] else ''}"
    )
    gangs = " or ".join(map(str, subject.gangs)) + (" GPU" if subject.gangs == [1] else " GPUs")
    return (
        f"{subject.name} needs {gangs} at once: submitted {_at(subject.submitted_s)}, "
        f"{first}, {ending}{reason}{fair}."
    )


def _wait(run: Result, subject: Subject, span: Span) -> str:
    which = "Longest wait" if span == subject.longest_wait else "The wait"
    if len(subject.waits) > 1:
        which += f" of {len(subject.waits)}"
    open_end = " (the end of the run)" if span.to_s >= run_end_s(run) else ""
    when = f"from {_clock(span.from_s)} to {_clock(span.to_s)}{open_end}"
    return f"{which}: {duration(span.length_s, gap=' ')}, {when}."


def _quota(run: Result, subject: Subject, span: Span) -> Iterator[str]:
    """Say what its tenant held of its quota when it began to wait."""
    tenant = subject.app["tenant"]
    given = run.manifest.get("tenants")
    table = given.get(tenant) if isinstance(given, dict) else None
    steps = (table or {}).get("quota_gpus") or ()
    now = [gpus for since_s, gpus in steps if since_s <= span.from_s]
    if now:
        mine = run.apps.filter(pl.col("tenant") == tenant).get_column("app_id")
        held = run.leases.filter(
            pl.col("app_id").is_in(mine.implode()),
            pl.col("start_s") <= span.from_s,
            pl.col("end_s") > span.from_s,
        )
        gpus = counted(int(held.get_column("gpus").sum()), "GPU")
        yield f"Tenant {tenant!r} then held {gpus} of a quota of {now[-1]}."


def _rule(run: Result) -> str:
    known = {policy.name: policy.description for policy in POLICIES}
    rule = known.get(run.policy, "a policy of its own")
    return f"Rule of {run.policy}: {rule}."


def _decided(run: Result, subject: Subject, moment: Moment, winners: pl.DataFrame) -> Iterator[str]:
    if moment.seen is not None and moment.span is not None:
        yield f"Before it was served its app took part {fates(moment.seen.bids, moment.span)}."
    if moment.at_s is None:
        yield "Nothing had been decided by then."
        return
    auctions = run.auctions.filter(pl.col("at_s") == moment.at_s)
    new = [
        f"{row['app_id']!r} ({counted(row['gpus'], 'GPU')})"
        for row in winners.head(_NAMED).to_dicts()
    ]
    more = f" and {winners.height - _NAMED} more" if winners.height > _NAMED else ""
    got = f"new GPUs went to {', '.join(new)}{more}" if new else "no GPU changed hands"
    if auctions.is_empty():
        yield f"Decision {_at(moment.at_s)}: {got}."
        return
    row = auctions.row(0, named=True)
    yield (
        f"Auction {_at(moment.at_s)}: {counted(row['offered_gpus'], 'GPU')} on offer, "
        f"{counted(row['active_apps'], 'active app')}, {counted(row['bidders'], 'bidder')}, "
        f"{counted(row['winners'], 'winner')}; {got}."
    )
    outcome = None if moment.seen is None else moment.seen.auction
    if outcome is not None:
        mine = outcome.reasons.filter(pl.col("app_id") == subject.app_id)
        fate = mine.get_column("explanation")[0] if mine.height else "was not asking for GPUs"
        yield f"In it app {subject.app_id!r}: {fate}."


def _smallest(changes: pl.DataFrame) -> str:
    best = smallest_change(changes)
    if best is None:
        return "None of the changes that were tried would have started it sooner."
    return (
        f"Smallest change that would have started it sooner: {best['change']}: "
        f"{_at(best['start_s'])}, {duration(best['sooner_s'], gap=' ')} sooner."
    )


def _at(seconds: float) -> str:
    return f"at {_clock(seconds)}"


def _clock(seconds: float) -> str:
    """Return seconds on the workload's clock to the millisecond, without idle zeros."""
    text = f"{seconds:,.3f}".rstrip("0").rstrip(".")
    return f"{text} s"
