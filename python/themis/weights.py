"""Weights that still divide a cluster."""

__all__ = ["MAX_WEIGHT", "MIN_WEIGHT"]

MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
"""Least and largest weight of an app or tenant."""
