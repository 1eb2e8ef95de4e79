"""CPU cores and memory of jobs and machines: what becomes of a trace's columns of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.schema.host import MAX_HOST, OF_GPU
from themis.traces.rows import Floats, RowChecks

__all__ = ["HOST", "Amounts", "amounts", "needs_a_gpu"]

HOST = ("leave_out", "keep")
"""CPU cores and memory are not read, as if every machine had enough; or they are."""

Amounts = Mapping[str, tuple[str, float]]
"""Columns of machines or jobs: the column of the source, and cores or GiB of one unit there."""


def amounts(checks: RowChecks, column: str, unit: float) -> Floats:
    """Read cores or GiB; NaN where there are none."""
    found = checks.number(column, required=False) * unit
    checks.reject(found < 0, "negative amount", column)
    return found


def needs_a_gpu(checks: RowChecks, found: Amounts, gpus: Floats) -> dict[str, pl.Series]:
    """Divide what jobs ask for among the `gpus` that each uses; null where it says nothing."""
    needs = {}
    for name in OF_GPU:
        if name not in found:
            continue
        column, unit = found[name]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(gpus > 0, amounts(checks, column, unit) / gpus, np.nan)
        checks.reject(each > MAX_HOST, "number too large", column)
        needs[name] = pl.Series(each).fill_nan(None)
    return needs
