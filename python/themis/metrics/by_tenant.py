"""What each tenant got, and how fairly its apps were treated."""

from __future__ import annotations

import polars as pl

from themis.metrics.statistics import exact_sum, mean, present, quantile

__all__ = ["TENANTS", "tenant_table"]

TENANTS: dict[str, pl.DataType] = {
    "tenant": pl.String(),
    "apps": pl.Int64(),
    "apps_done": pl.Int64(),
    "gpu_s": pl.Float64(),
    "gpu_share": pl.Float64(),
    "rho_max": pl.Float64(),
    "rho_median": pl.Float64(),
    "rho_mean": pl.Float64(),
    "app_completion_mean_s": pl.Float64(),
}
"""Columns of the table of tenants."""


def tenant_table(apps: pl.DataFrame) -> pl.DataFrame:
    """Return a row a tenant, by name; apps without one come last, as one.

    Parameters
    ----------
    apps
        Rows of one run with tenant, state, gpu_s, rho, rho_is_bound and completion_s (null unless
        done): see :func:`themis.results.digest.app_rows`.

    Returns
    -------
    polars.DataFrame
        Columns of :data:`TENANTS`: apps in all and done, GPU time held in GPU-seconds and its part
        of that of all apps, rho of finished apps (bounds left out), and the mean completion time of
        those that are done; null where there is none.
    """
    # Alone, since its parts are copies.
    apps = apps.select("tenant", "state", "gpu_s", "rho", "rho_is_bound", "completion_s")
    all_gpu_s = exact_sum(present(apps.get_column("gpu_s")))
    rows = []
    for (tenant,), mine in apps.partition_by("tenant", as_dict=True).items():
        finished = mine.filter(~pl.col("rho_is_bound").fill_null(value=False))
        rho = present(finished.get_column("rho"))
        gpu_s = exact_sum(present(mine.get_column("gpu_s")))
        rows.append(
            {
                "tenant": tenant,
                "apps": mine.height,
                "apps_done": int((mine.get_column("state") == "done").sum()),
                "gpu_s": gpu_s,
                "gpu_share": gpu_s / all_gpu_s if all_gpu_s > 0 else None,
                "rho_max": quantile(rho, 1.0),
                "rho_median": quantile(rho, 0.5),
                "rho_mean": mean(rho),
                "app_completion_mean_s": mean(present(mine.get_column("completion_s"))),
            }
        )
    return pl.DataFrame(rows, schema=TENANTS).sort("tenant", nulls_last=True)
