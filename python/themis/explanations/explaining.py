"""Explain what happened to an app or a job in a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import polars as pl

from themis.cluster.cluster import Cluster
from themis.errors import ThemisError
from themis.explanations.changes import tried_changes
from themis.explanations.explanation import Explanation
from themis.explanations.replay import AUCTION_POLICY, Replay, replay_of
from themis.explanations.sentences import Moment, sentences
from themis.explanations.spans import Span
from themis.explanations.story import holders_of, timeline_of, winners_at
from themis.explanations.subject import Subject, run_end_s, subject_of
from themis.files.atomic_directory import read_json_object
from themis.results.result import Result, load_result
from themis.workload.workload import Workload

__all__ = ["explain"]


def explain(  # noqa: PLR0913 - what, where, and how much of it, all by keyword
    result: Result | str | PathLike[str],
    *,
    app_id: str | None = None,
    job_id: str | None = None,
    at_s: float | None = None,
    what_if: bool = True,
    workload: Workload | None = None,
    cluster: Cluster | None = None,
    tell: Callable[[str], None] | None = None,
) -> Explanation:
    """Explain why an app or a job waited, who won instead, and what would have started it sooner.

    The tables of the result tell what happened. Bids and changes take playing the run again, from
    the scenario in its manifest, or for a result in memory from its own inputs. Where that can't
    be done, `notes` says why.

    Parameters
    ----------
    result
        A result, or the directory of one.
    app_id, job_id
        Which app, or which job.
    at_s
        Explain the decision at this instant or the last one before, in seconds on the workload's
        clock; None: the one that ended its longest wait.
    what_if
        Look for the smallest change that would have started it sooner: some 20 runs, each up to
        its start.
    workload, cluster
        What was played, where neither the result nor its manifest knows.
    tell
        Called with a line before each run.

    Raises
    ------
    ThemisError
        There is no such app or job, the instant is no number, or the directory holds no result.
    """
    if at_s is not None and not math.isfinite(at_s):
        raise ThemisError(f"at_s is {at_s!r}: expected a number of seconds")
    run = result if isinstance(result, Result) else _loaded(Path(result))
    say = tell or _say_nothing
    subject = subject_of(run, app_id=app_id, job_id=job_id)
    span = subject.longest_wait if at_s is None else subject.wait_at(at_s)
    moment_s = _decision(run, subject, span, at_s)
    notes: list[str] = []
    replay = _replay(run, workload, cluster, notes)
    seen = None
    if replay is not None and run.policy == AUCTION_POLICY:
        say("playing the run again to see its auctions")
        seen = replay.watch(subject.app_id, moment_s)
    changes = _changes(run, replay, subject, say) if what_if else None
    moment = Moment(span, moment_s, _holders(run, subject, span), seen)
    winners = winners_at(run, math.inf if moment_s is None else moment_s)
    return Explanation(
        app=subject.app,
        job=subject.job,
        policy=run.policy,
        seed=run.seed,
        why=sentences(run, subject, moment, winners, changes),
        timeline=timeline_of(run, subject, None if seen is None else seen.bids),
        waits=_waits(subject),
        at_s=moment_s,
        winners=winners,
        holders=moment.holders,
        bids=None if seen is None else seen.bids,
        auction=None if seen is None else seen.auction,
        changes=changes,
        notes=notes,
    )


def _loaded(directory: Path) -> Result:
    manifest = directory / "manifest.json"
    if manifest.is_file():
        kind = read_json_object(manifest).get("kind")
        if kind in ("comparison", "sweep"):
            runs = sorted(path.parent.relative_to(directory) for path in _results(directory))
            named = ", ".join(str(directory / run) for run in runs[:5])
            raise ThemisError(f"{directory}: a {kind}: name one of its results, such as {named}")
    return load_result(directory)


def _results(directory: Path) -> list[Path]:
    return [path for path in directory.glob("**/manifest.json") if path.parent != directory]


def _replay(
    run: Result, workload: Workload | None, cluster: Cluster | None, notes: list[str]
) -> Replay | None:
    try:
        return replay_of(run, workload=workload, cluster=cluster)
    except (ThemisError, OSError) as error:
        notes.append(
            f"the run can't be played again: {error}; bids and what would have started it sooner "
            "are left out"
        )
        return None


def _decision(run: Result, subject: Subject, span: Span | None, at_s: float | None) -> float | None:
    """Return the instant of the deciding auction, or of the decision of another policy."""
    until_s = at_s
    if until_s is None:
        until_s = subject.start_s if span is None else span.to_s
    if until_s is None:
        return None
    if run.auctions.is_empty():
        return until_s
    before = run.auctions.filter(pl.col("at_s") <= until_s).get_column("at_s")
    return float(before[-1]) if before.len() else None


def _changes(
    run: Result, replay: Replay | None, subject: Subject, say: Callable[[str], None]
) -> pl.DataFrame | None:
    if replay is None or max(subject.gangs, default=0) == 0:
        return None
    until_s = subject.start_s if subject.start_s is not None else run_end_s(run)
    if until_s <= subject.submitted_s:
        return None  # nothing is sooner than at once
    return tried_changes(replay, subject, until_s=until_s, tell=lambda text: say(f"trying: {text}"))


def _holders(run: Result, subject: Subject, span: Span | None) -> pl.DataFrame:
    nobody = Span(math.inf, math.inf)
    return holders_of(run, span or nobody, without=subject.app_id if subject.job is None else None)


def _waits(subject: Subject) -> pl.DataFrame:
    rows = [(span.from_s, span.to_s, span.length_s) for span in subject.waits]
    schema = {"from_s": pl.Float64, "to_s": pl.Float64, "wait_s": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _say_nothing(_text: str) -> None:
    pass
