"""Sweeps: one scenario played at every point of a grid, resumable and in parallel."""

from __future__ import annotations

from themis.sweeps.result import Sweep, load_sweep
from themis.sweeps.sweeping import SweepProgress, sweep

__all__ = ["Sweep", "SweepProgress", "load_sweep", "sweep"]
