"""What a run should be asked about: cycles of allocations, and apps that starved, by name."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from themis.metrics.thrash import STARVED, longest_waits, repeats

__all__ = ["notes_of_run"]

_TURNS = 10
_NAMED = 5


def notes_of_run(frames: Mapping[str, pl.DataFrame]) -> list[str]:
    """Return a sentence on the worst cycle, and one on starvation, where there is any."""
    return [*_of_cycles(frames), *_of_starvation(frames)]


def _of_cycles(frames: Mapping[str, pl.DataFrame]) -> list[str]:
    worst = repeats(frames["jobs"], frames["leases"]).filter(pl.col("times") > _TURNS).head(1)
    leases, expired = frames["leases"].lazy(), pl.col("ended_by") == "expired"
    notes = []
    for since_s, until_s, times, states in worst.rows():
        lost = leases.filter(expired, pl.col("end_s").is_between(since_s, until_s))
        apps = lost.select("app_id").unique().collect().to_series().sort()
        notes.append(
            f"a cycle: with nothing submitted or ended, {states} allocations took turns from "
            f"{since_s:g} to {until_s:g} s and came back {times} times, between {_named(apps)}"
        )
    return notes


def _of_starvation(frames: Mapping[str, pl.DataFrame]) -> list[str]:
    waits = longest_waits(frames["apps"], frames["jobs"], frames["leases"], frames["usage"])
    starved = waits.filter(pl.col("ratio") > STARVED).sort("ratio", descending=True)
    if starved.is_empty():
        return []
    _, wait_s, ratio = starved.row(0)
    told = (
        f"{starved.height} of {waits.height} apps starved, without a GPU for more than {STARVED:g} "
        f"times their ideal time in one piece: {_named(starved['app_id'])}; the first for "
        f"{wait_s:g} s, {ratio:.1f} times"
    )
    return [told]


def _named(apps: pl.Series) -> str:
    more = apps.len() - _NAMED
    return ", ".join(apps.head(_NAMED)) + (f" and {more} more" if more > 0 else "")
