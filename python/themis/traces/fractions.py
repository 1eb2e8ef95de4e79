"""Jobs that ask for fractions of GPUs: what becomes of them."""

from __future__ import annotations

import numpy as np
import polars as pl

from themis.checking.problems import Problem
from themis.schema.workload import WHOLE_MILLI
from themis.traces.rows import Floats

__all__ = ["FRACTIONS", "ROUNDED_UP", "shares"]

FRACTIONS = ("keep", "round_up", "leave_out")
"""Kept where they are thousandths of one GPU, else whole GPUs; always whole GPUs; or left out."""

ROUNDED_UP = Problem(
    "fraction of a GPU",
    action="kept: takes whole GPUs for its duration",
    repairs=("fraction_of_a_gpu=leave_out",),
)

_DUST = 1e-6


def shares(gang: Floats, asked: Floats) -> pl.Series:
    """Return the thousandths of its one GPU that each job asks for, as whole numbers.

    Null for a job that asks for whole GPUs, for fractions of several, or for a fraction that is no
    whole number of thousandths.
    """
    milli = np.round(asked * WHOLE_MILLI)
    exact = np.abs(milli - asked * WHOLE_MILLI) < _DUST
    kept = (gang == 1) & (milli >= 1) & (milli < WHOLE_MILLI) & exact
    return pl.Series(np.where(kept, milli, np.nan)).fill_nan(None).cast(pl.Int64)
