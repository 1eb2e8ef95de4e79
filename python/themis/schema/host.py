"""Host resources: what machines have beside GPUs, and what GPUs need of them; names and units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = [
    "MAX_HOST",
    "OF_GPU",
    "OF_MACHINE",
    "different_needs",
    "needed",
    "served",
    "there",
]

OF_MACHINE = ("cpu_cores", "memory_gib")
"""Columns of machines; null: as much as one likes."""

OF_GPU = ("cpu_cores_per_gpu", "memory_gib_per_gpu")
"""Columns of jobs; null: nothing."""

MAX_HOST = 100_000.0
"""Most cores or GiB of a machine, and for a GPU."""

Amounts: TypeAlias = npt.NDArray[np.int64]

_UNITS = (1000, 1024)
_DUST = 1e-6


def needed(jobs: pl.DataFrame) -> Amounts:
    """Return what a whole GPU of each job needs: shape (jobs, 2), in thousandths of a core and MiB.

    Rounded down, so that jobs for which a machine is just enough do not exclude each other.
    """
    return np.floor(_scaled(jobs, OF_GPU, 0.0) + _DUST).astype(np.int64)


def there(machines: pl.DataFrame) -> Amounts:
    """Return what each machine has, in the same units; -1 for as much as one likes."""
    return np.rint(_scaled(machines, OF_MACHINE, -1.0)).clip(min=-1).astype(np.int64)


def served(machines: pl.DataFrame, takes: Amounts) -> Amounts:
    """Return of how many of its `gpus` each machine has what they take: shape (machines,).

    `takes` is what one GPU does, in thousandths of the units of :func:`needed`, so that shares of a
    GPU take whole amounts.
    """
    has = there(machines) * 1000
    most = np.full(has.shape, np.iinfo(np.int64).max, dtype=np.int64)
    np.floor_divide(has, np.maximum(takes, 1), out=most, where=(has >= 0) & (takes > 0))
    gpus = machines.get_column("gpus").to_numpy()
    found: Amounts = np.minimum(most.min(axis=1), gpus)
    return found


def different_needs(jobs: pl.DataFrame) -> tuple[Amounts, npt.NDArray[np.int64]]:
    """Return what a GPU of some job takes, as :func:`served` has it, and which of it each does."""
    milli = jobs.get_column("gpu_milli").fill_null(1000).to_numpy()
    takes = needed(jobs) * milli[:, None]
    if not takes.any():
        return np.zeros((1, takes.shape[1]), dtype=np.int64), np.zeros(len(takes), dtype=np.int64)
    different, row = np.unique(takes, axis=0, return_inverse=True)
    return different, row.astype(np.int64)


def _scaled(frame: pl.DataFrame, columns: Sequence[str], absent: float) -> npt.NDArray[np.float64]:
    none = pl.Series([absent], dtype=pl.Float64).new_from_index(0, frame.height)
    known = (frame.get_column(name) if name in frame.columns else none for name in columns)
    each = [column.fill_null(absent).to_numpy() for column in known]
    return np.stack(each, axis=1) * np.array(_UNITS, dtype=np.float64)
