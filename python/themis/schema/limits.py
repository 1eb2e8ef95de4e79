"""The largest and smallest numbers that are believed."""

__all__ = ["MAX_GPUS", "MAX_TIME_S", "MAX_WEIGHT", "MIN_WEIGHT"]

MAX_GPUS = 1_000_000
"""Largest gang, cap or quota."""

MAX_TIME_S = 1e11
"""Largest time or duration (3,170 years)."""

MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
"""Least and largest weight of an app or tenant that still divide a cluster."""
