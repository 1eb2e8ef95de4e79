"""How fast jobs run on more GPUs than their gang, reckoned anew from the profiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["paces"]

_Reals = npt.NDArray[np.float64]


def paces(
    scaling: Mapping[str, Mapping[int, float]], profile: pl.Series, gpus: pl.Series, gang: pl.Series
) -> pl.Series:
    """Return the work a second of `gpus` GPUs, where each of the `gang` does 1.

    Parameters
    ----------
    scaling
        Efficiencies by GPUs, of the profiles that are not linear.
    profile
        Name of the profile of each job.
    gpus, gang
        GPUs that it uses, and its gang: Int64.
    """
    found = gpus.to_numpy().astype(np.float64)
    unit = gang.to_numpy().astype(np.float64)
    for name, points in scaling.items():
        which = ((profile == name) & (gpus > 0)).fill_null(value=False).to_numpy()
        if points and which.any():
            found[which] = unit[which] * _pace(points, found[which]) / _pace(points, unit[which])
    return pl.Series(found)


def _pace(points: Mapping[int, float], gpus: _Reals) -> _Reals:
    """Pace in that of one GPU: on straight lines, the last of which goes on."""
    at = np.array([1.0, *points])
    known = np.array([1.0, *(count * eff for count, eff in points.items())])
    slope = (known[-1] - known[-2]) / (at[-1] - at[-2])
    beyond = np.maximum(gpus - at[-1], 0.0)
    pace: _Reals = np.interp(gpus, at, known) + slope * beyond
    return pace
