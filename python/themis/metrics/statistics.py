"""Sums, means and quantiles that do not depend on row order, threads or platform.

Sums are correctly rounded (`math.fsum`), so any order of the same values gives the same float.
Nothing here returns NaN: a statistic of no values is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = [
    "Floats",
    "bootstrap_interval",
    "exact_sum",
    "jain_index",
    "mean",
    "median_interval",
    "present",
    "quantile",
    "share",
    "weighted_mean",
]

Floats = npt.NDArray[np.float64]

_CHUNK = 65_536
_EXACT_BINOMIAL = 1000
_RESAMPLES = 1000
_FEWEST = 5
_DRAWS_AT_ONCE = 2**21


def present(column: pl.Series) -> Floats:
    """Return the values of `column` that are not null, as float64."""
    return column.drop_nulls().cast(pl.Float64).to_numpy()


def exact_sum(values: Floats) -> float:
    """Sum of `values`, correctly rounded; 0.0 for none."""
    return math.fsum(_scalars(values))


def mean(values: Floats) -> float | None:
    """Arithmetic mean, or None for no values."""
    return exact_sum(values) / values.size if values.size else None


def weighted_mean(values: Floats, weights: Floats) -> float | None:
    """Sum of values x weights over the sum of weights, or None where the weights sum to 0."""
    total = exact_sum(weights)
    return exact_sum(values * weights) / total if total > 0 else None


def quantile(values: Floats, q: float) -> float | None:
    """Quantile `q` in [0, 1] by linear interpolation between order statistics.

    With n values sorted as x_0 .. x_(n-1), position (n - 1) q falls between two of them and the
    result lies on the line between the two (numpy's default). None for no values.
    """
    return float(np.quantile(values, q)) if values.size else None


def share(selected: int, total: int) -> float | None:
    """Return `selected` / `total`, or None where the total is 0."""
    return selected / total if total else None


def jain_index(values: Floats) -> float | None:
    """Jain's index (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything.

    Source: Jain, Chiu, Hawe, DEC-TR-301, 1984. None for no values or only zeros.
    """
    squares = exact_sum(values * values)
    return exact_sum(values) ** 2 / (values.size * squares) if squares > 0 else None


def _scalars(values: Floats) -> Iterator[float]:
    for start in range(0, values.size, _CHUNK):
        yield from values[start : start + _CHUNK].tolist()


def median_interval(values: Floats, confidence: float = 0.95) -> tuple[float | None, float | None]:
    """Order statistics between which the median lies with at least `confidence`.

    Needs no assumption on the distribution: the number of values below the true median is
    binomial with p = 1/2. Exact up to 1,000 values, by the normal approximation beyond. (None,
    None) where there are too few values for such an interval (fewer than 6 at 95 %). Source:
    Hahn, Meeker, Statistical Intervals, section 5.2. The values are taken to be independent.
    """
    n = int(values.size)
    below = _below_count(n, (1.0 - confidence) / 2.0)
    if below < 0:
        return None, None
    ordered = np.sort(values)
    return float(ordered[below]), float(ordered[n - 1 - below])


def _below_count(n: int, tail: float) -> int:
    """Largest k with P(Binomial(n, 1/2) <= k) <= tail, or -1."""
    if n > _EXACT_BINOMIAL:
        z = NormalDist().inv_cdf(tail)
        return math.floor(n / 2 + z * math.sqrt(n) / 2 - 0.5)
    allowed = math.floor(tail * 2**n)
    total, k = 0, -1
    while (total := total + math.comb(n, k + 1)) <= allowed:
        k += 1
    return k


def bootstrap_interval(
    values: Floats, confidence: float = 0.95
) -> tuple[float | None, float | None]:
    """Percentile interval of the mean of `values` over 1,000 resamples.

    The resamples depend on the number of values only, so that the same values in the same order
    give the same interval. (None, None) for fewer than 5 values: too few tell nothing of their
    spread. Source: Efron, Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3. The
    values are taken to be independent.
    """
    n = int(values.size)
    if n < _FEWEST:
        return None, None
    draws = np.random.Generator(np.random.PCG64(n))
    at_once = max(_DRAWS_AT_ONCE // n, 1)
    means = [
        values[draws.integers(0, n, size=(min(at_once, _RESAMPLES - done), n))].mean(axis=1)
        for done in range(0, _RESAMPLES, at_once)
    ]
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail])
    return float(low), float(high)
