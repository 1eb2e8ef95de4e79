"""Random numbers that are the same everywhere, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["Draws", "Floats", "Indexes", "deal", "ids", "log_logistic", "pick"]

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]


class Draws:
    """Uniform numbers in [0, 1), one stream a purpose.

    Parameters
    ----------
    seed
        Not negative.
    streams
        Names of the purposes. Their order decides; new ones go to the end.
    """

    def __init__(self, seed: int, streams: Sequence[str]) -> None:
        children = np.random.SeedSequence(seed).spawn(len(streams))
        self._streams = {
            name: np.random.PCG64(child) for name, child in zip(streams, children, strict=True)
        }

    def uniform(self, stream: str, count: int) -> Floats:
        """Return the next numbers of a stream."""
        words = self._streams[stream].random_raw(count)
        numbers: Floats = (np.asarray(words, dtype=np.uint64) >> np.uint64(11)).astype(np.float64)
        return np.ldexp(numbers, -53)

    def order(self, stream: str, count: int) -> Indexes:
        """Return the numbers below `count` in a random order."""
        shuffled: Indexes = np.argsort(self.uniform(stream, count), kind="stable")
        return shuffled


def pick(shares: Sequence[float] | Floats, uniform: Floats) -> Indexes:
    """Index of the share that each uniform number falls into."""
    edges = np.cumsum(np.asarray(shares, dtype=np.float64))
    found = np.searchsorted(edges / edges[-1], uniform, side="right")
    return np.minimum(found, len(edges) - 1)


def deal(shares: Sequence[float], weights: Indexes, order: Indexes) -> Indexes:
    """Give every item to a share so that the shares come out as well as they can.

    Each item, in the order given, goes to the share that lacks most of its part of the weight;
    ties go to the first such share. Returns the share of each item.
    """
    lacking = np.asarray(shares, dtype=np.float64) / sum(shares) * float(weights.sum())
    dealt = np.zeros(len(weights), dtype=np.int64)
    for item in order:
        dealt[item] = int(np.argmax(lacking))
        lacking[dealt[item]] -= weights[item]
    return dealt


def log_logistic(uniform: Floats, spread: float) -> Floats:
    """Quantiles with median 1, without the outermost hundredths."""
    inner = 0.01 + 0.98 * uniform
    factors: Floats = (inner / (1 - inner)) ** spread
    return factors


def ids(word: str, index: Indexes, count: int) -> pl.Series:
    """``word-01`` and so on, zero-padded so that text order is number order."""
    width = max(2, len(str(count)))
    number = pl.Series(index + 1).cast(pl.String).str.zfill(width)
    return pl.select(pl.lit(f"{word}-") + number).to_series()
