"""Why an app or a job waited: what is known of it, as frames, as text, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from themis.auction.outcome import AuctionOutcome
from themis.explanations.changes import smallest_change
from themis.notebook import grid

__all__ = ["Explanation"]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What happened to an app or a job in a run, and why.

    Parameters
    ----------
    app
        Row of the app in the result's table of apps.
    job
        Row of the job, where one was asked for.
    policy, seed
        Of the run.
    why
        Sentences that answer the question.
    timeline
        One row an event: at_s, event, gpus (held from then on), text.
    waits
        When it had jobs to run and no GPU: from_s, to_s, wait_s.
    at_s
        The instant that is explained: that of the deciding auction, or of the decision of a policy
        that holds none. None if nothing was decided.
    winners
        Who got GPUs then that it did not hold before: app_id, gpus, cause.
    holders
        Who held the GPUs during the wait that is explained: app_id, user, arrival_s, rho, gpu_s,
        gpus_mean, share (of all GPUs of the cluster).
    bids
        The part of the app in every auction: at_s, visible, rho_empty, best_rho, best_gpus,
        won_gpus, kept_gpus, leftover_gpus, c, lease_fraction, reason. None where the policy holds
        no auctions, or the run can't be played again.
    auction
        The deciding auction with everybody in it; None as for `bids`.
    changes
        What might have started it sooner, each tried by playing the run again: kind, change,
        start_s (null: not sooner), sooner_s, refused (why it can't be told). None where that was
        not asked for, or can't be done.
    notes
        What can't be told, and why.
    """

    app: Mapping[str, Any]
    job: Mapping[str, Any] | None
    policy: str
    seed: int
    why: Sequence[str]
    timeline: pl.DataFrame
    waits: pl.DataFrame
    at_s: float | None
    winners: pl.DataFrame
    holders: pl.DataFrame
    bids: pl.DataFrame | None
    auction: AuctionOutcome | None
    changes: pl.DataFrame | None
    notes: Sequence[str]

    @property
    def smallest_change(self) -> dict[str, Any] | None:
        """The first change of `changes` that starts it sooner, as a row."""
        return None if self.changes is None else smallest_change(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able: frames as lists of rows."""
        frames = ("timeline", "waits", "winners", "holders", "bids", "changes")
        tables = {name: getattr(self, name) for name in frames}
        return {
            "app": dict(self.app),
            "job": None if self.job is None else dict(self.job),
            "policy": self.policy,
            "seed": self.seed,
            "why": list(self.why),
            "at_s": self.at_s,
            **{name: None if frame is None else frame.to_dicts() for name, frame in tables.items()},
            "auction": None if self.auction is None else self.auction.to_dict(),
            "smallest_change": self.smallest_change,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return "\n".join([f"Explanation of {self._name()}:", *(f"  {line}" for line in self.why)])

    def _repr_html_(self) -> str:
        title = f"{self._name()} under {self.policy}, seed {self.seed}"
        rows = self.timeline.rows()
        return grid(title, self.timeline.columns, rows, remarks=(*self.why, *self.notes))

    def _name(self) -> str:
        if self.job is not None:
            return f"job {self.job['job_id']!r} of app {self.app['app_id']!r}"
        return f"app {self.app['app_id']!r}"
