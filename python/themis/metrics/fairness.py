"""How fairly the apps were treated: statistics of rho."""

from __future__ import annotations

import polars as pl

from themis.metrics.statistics import jain_index, mean, present, quantile, share

__all__ = ["fairness_metrics"]

_AT_MOST_1 = 1.0 + 1e-9
_AT_MOST_1_05 = 1.05 + 1e-9


def fairness_metrics(apps: pl.DataFrame) -> dict[str, float | int | None]:
    """Statistics of rho over finished apps, and of its lower bounds over unfinished ones.

    An app without a rho (no GPU work, infeasible, zero ideal time) counts in neither. Source:
    Mahajan et al., NSDI 2020, sections 3.2 and 8.
    """
    known = apps.select("rho", "rho_is_bound", "rho_floor").filter(pl.col("rho").is_not_null())
    is_bound = pl.col("rho_is_bound").fill_null(value=False)
    rho = present(known.filter(~is_bound).get_column("rho"))
    bounds = present(known.filter(is_bound).get_column("rho"))
    floors = present(known.filter(~is_bound).get_column("rho_floor"))
    return {
        "rho_apps": int(rho.size),
        "rho_max": quantile(rho, 1.0),
        "rho_p99": quantile(rho, 0.99),
        "rho_p90": quantile(rho, 0.90),
        "rho_median": quantile(rho, 0.50),
        "rho_mean": mean(rho),
        "rho_bounds": int(bounds.size),
        "rho_bound_max": quantile(bounds, 1.0),
        "rho_floor_max": quantile(floors, 1.0),
        "share_rho_le_1": share(int((rho <= _AT_MOST_1).sum()), rho.size),
        "share_rho_le_1_05": share(int((rho <= _AT_MOST_1_05).sum()), rho.size),
        "jain": jain_index(rho),
    }
