"""What jobs and leases say of their apps, over time, for some of the apps at once.

A run of a million jobs has millions of rows: whatever is made of all of them at the same time takes
as much memory as the result itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["Changes", "Integers", "Spans", "app_rows", "changes", "us"]

_APPS_AT_ONCE = 1 << 15  # their numbers fit into 16 bits, which are sorted in linear time
_IDS_AT_ONCE = 1 << 17

Integers = npt.NDArray[np.integer[Any]]


class Spans(NamedTuple):
    """Rows that say how much of something an app has, from when, until when.

    Parameters
    ----------
    app
        Row of the app of each, -1 where there is none: :func:`app_rows`.
    rows
        A table of as many rows.
    since_us, until_us, amount
        Microseconds and whole numbers, of that table; nothing has no end.
    """

    app: Integers
    rows: pl.DataFrame
    since_us: pl.Expr
    until_us: pl.Expr
    amount: pl.Expr


class Changes(NamedTuple):
    """Changes of what apps have, by app and time; what one gets it gives back: they sum up to 0."""

    app: Integers
    at_us: Integers
    amount: Integers


def us(column: str) -> pl.Expr:
    """Whole microseconds of a column of seconds."""
    return (pl.col(column) * 1e6).round().cast(pl.Int64)


def app_rows(app_ids: pl.Series, ids: pl.Series) -> Integers:
    """Return where in `app_ids`, each of which stands once, each of `ids` stands; -1: nowhere.

    By their hashes: a join of the ids of a million apps takes 170 MiB.
    """
    run = ids.rle_id().to_numpy().view(np.int32)
    if run.size and run[-1] + 1 == app_ids.len():
        begins = np.flatnonzero(np.diff(run, prepend=-1))
        if ids.gather(begins).equals(app_ids):  # they stand app by app
            return run
    del run
    found = np.full(ids.len(), -1, dtype=np.int32)
    hashes = app_ids.hash().to_numpy()
    order = np.argsort(hashes).astype(np.int32)
    hashes = hashes[order]
    for first in range(0, ids.len() if app_ids.len() else 0, _IDS_AT_ONCE):
        asked = ids.slice(first, _IDS_AT_ONCE)
        wanted = asked.hash().to_numpy()
        by_hash = np.argsort(wanted)  # what is looked up in order is found sooner
        place = np.zeros(wanted.size, dtype=np.int64)
        place[by_hash] = np.searchsorted(hashes, wanted[by_hash])
        place[place == hashes.size] = 0
        row = order[place]
        same = (app_ids.gather(row) == asked).to_numpy()
        row[~same] = -1
        for at in np.flatnonzero(~same & (hashes[place] == wanted)):  # the hash of several apps
            there = app_ids.index_of(asked[int(at)])
            row[at] = -1 if there is None else there
        found[first : first + _IDS_AT_ONCE] = row
    return found


def changes(apps: int, *spans: Spans) -> Iterator[Changes]:
    """Give the changes of all spans, together, for some of so many apps after the others."""
    for first in range(0, apps, _APPS_AT_ONCE):
        columns = [column for of in spans for column in _ends(of, first)]
        app, at_us, amount = (np.concatenate(column) for column in zip(*columns, strict=True))
        by_time = np.argsort(at_us, kind="stable")
        number = (app[by_time] - first).astype(np.uint16)
        order = by_time[np.argsort(number, kind="stable")]
        yield Changes(app[order], at_us[order], amount[order])


def _ends(spans: Spans, first: int) -> tuple[tuple[Integers, ...], ...]:
    """Return app, instant and change where spans of some apps begin, and where they end."""
    mine = np.flatnonzero((spans.app >= first) & (spans.app < first + _APPS_AT_ONCE))
    rows = spans.rows[mine].select(
        since=spans.since_us, until=spans.until_us, amount=spans.amount.cast(pl.Int64)
    )
    since, until, amount = (column.to_numpy() for column in rows.iter_columns())
    app = spans.app[mine]
    return (app, since, amount), (app, until, -amount)
