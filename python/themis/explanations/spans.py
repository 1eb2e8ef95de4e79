"""Spans of time of one app: when it wanted GPUs, when it held some, when it waited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

__all__ = ["Span", "minus", "union", "waits_of"]


class Span(NamedTuple):
    """From one instant to another, in seconds on the workload's clock."""

    from_s: float
    to_s: float

    @property
    def length_s(self) -> float:
        """How long it lasts."""
        return self.to_s - self.from_s


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the times that at least one span covers, as spans that do not touch."""
    merged: list[Span] = []
    for span in sorted(span for span in spans if span.to_s > span.from_s):
        if merged and span.from_s <= merged[-1].to_s:
            merged[-1] = Span(merged[-1].from_s, max(merged[-1].to_s, span.to_s))
        else:
            merged.append(span)
    return merged


def minus(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Return the times that a span covers and none of the others does."""
    left, cuts = [], union(others)
    for span in union(spans):
        start = span.from_s
        for cut in cuts:
            if cut.to_s <= start or cut.from_s >= span.to_s:
                continue
            if cut.from_s > start:
                left.append(Span(start, cut.from_s))
            start = max(start, cut.to_s)
        if start < span.to_s:
            left.append(Span(start, span.to_s))
    return left


def waits_of(jobs: pl.DataFrame, leases: pl.DataFrame, *, run_end_s: float) -> list[Span]:
    """Return when an app had jobs to run and no GPU.

    Parameters
    ----------
    jobs, leases
        Rows of the app.
    run_end_s
        Until when jobs wait that never ended.
    """
    wanting = jobs.filter((pl.col("gang_size") > 0) & (pl.col("state") != "infeasible"))
    wanted = wanting.select("submit_s", pl.col("end_s").fill_null(run_end_s)).iter_rows()
    held = leases.select("start_s", "end_s").iter_rows()
    return minus((Span(*row) for row in wanted), (Span(*row) for row in held))
