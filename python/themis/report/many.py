"""Comparisons of more runs than a page can draw one by one, such as those of sweeps."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from themis.results.compared import Compared

__all__ = ["MANY", "drawn_part"]

MANY = 8
"""Up to so many labels every figure shows every one of them, and tables have a column each."""

_EXTREMES = (
    ("rho_max", False),
    ("app_completion_mean_s", False),
    ("utilisation", True),
    ("rho_max", True),
    ("app_completion_mean_s", True),
)
"""Metrics, and whether the largest is meant: those whose runs are drawn."""


def drawn_part(comparison: Compared) -> Compared:
    """Return the runs that the figures show: all, or of many labels the telling ones.

    Those are the baseline, `themis` where a label is that, and the labels with the least worst rho,
    the least mean completion time and the highest utilisation, and with the largest worst rho and
    mean completion time; each by its median over the seeds, the first of equals.
    """
    if len(comparison.policies) <= MANY:
        return comparison
    table = comparison.table()
    chosen = [comparison.baseline, "themis"]
    for metric, largest in _EXTREMES:
        known = table.filter(pl.col(metric).is_not_null())
        if not known.is_empty():
            ranked = known.sort(metric, descending=largest, maintain_order=True)
            chosen.append(str(ranked.get_column("policy")[0]))
    labels = [label for label in comparison.policies if label in chosen]
    return replace(
        comparison,
        runs=[run for run in comparison.runs if run.label in labels],
        apps=comparison.apps.filter(pl.col("policy").is_in(labels)),
    )
