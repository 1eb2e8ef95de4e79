"""Rows by a key of text, found by the hash of the key.

Tables of millions of rows are grouped and looked up block by block; joining each block with such a
table would take time that grows with the square of the rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["Groups", "Lookup", "grouped"]

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """Rows next to those that share their key.

    Parameters
    ----------
    order
        Rows, those of one key together.
    starts
        Where each key begins in `order`.
    keys
        The keys.
    hashes
        UInt64, hash of each key with `seed`, rising.
    seed
        Of the hash function.
    """

    order: Indices
    starts: Indices
    keys: pl.Series
    hashes: npt.NDArray[np.uint64]
    seed: int


def grouped(keys: pl.Series) -> Groups:
    """Group rows by `keys`, none of which is null."""
    for seed in itertools.count():
        hashes = keys.hash(seed).to_numpy()
        order = np.argsort(hashes)
        hashes, names = hashes[order], keys.gather(order)
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = hashes[1:] != hashes[:-1]
        other = names.ne_missing(names.shift()).to_numpy()
        if (first[1:] == other[1:]).all():  # else two keys have one hash: try another
            break
    starts = np.flatnonzero(first)
    return Groups(order, starts, names.gather(starts), hashes[starts], seed)


class Lookup:
    """Rows of a table by a key that is unique in it."""

    def __init__(self, table: pl.DataFrame, key: str) -> None:
        self._groups = grouped(table.get_column(key))
        self._keys = self._groups.keys.extend_constant(None, 1)
        rows = table.drop(key)[self._groups.order]
        self._rows = rows.vstack(rows.clear(1))

    def of(self, keys: pl.Series) -> pl.DataFrame:
        """Return a row a key, null where the table does not have it."""
        found = self._groups
        hashes = keys.hash(found.seed).to_numpy()
        rising = np.argsort(hashes)  # looked up in order, neighbours are near in memory
        at = np.empty(len(hashes), dtype=np.intp)
        at[rising] = np.searchsorted(found.hashes, hashes[rising])
        same = (self._keys.gather(at) == keys).fill_null(value=False).to_numpy()
        return self._rows[np.where(same, at, len(found.hashes))]
