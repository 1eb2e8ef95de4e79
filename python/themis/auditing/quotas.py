"""What tenants hold, beside their quotas."""

from __future__ import annotations

import polars as pl

from themis.auditing.run import WITHOUT_LEASES, Run, problems

__all__ = ["tenants_stay_below_their_quotas"]

_ANY = 2**62


def tenants_stay_below_their_quotas(run: Run) -> pl.DataFrame:
    """No lease of a tenant begins while it holds more than its quota; what is above ends in time.

    Where a quota shrinks, leases go on to their next end, and no further.
    """
    quotas = run.quotas.with_columns(since_us="at_us")
    held = run.held_by_tenant.filter(pl.col("tenant").is_in(quotas["tenant"].implode()))
    times = pl.concat([table.select("tenant", "at_us") for table in (held, quotas)])
    until = pl.col("at_us").shift(-1, fill_value=run.end_us).over("tenant")
    spans = times.unique().sort("tenant", "at_us").with_columns(until_us=until)
    for table in (held, quotas):
        spans = spans.join_asof(
            table.sort("at_us", maintain_order=True),
            on="at_us",
            by="tenant",
            check_sortedness=False,
        )
    begun = run.leases.join(run.apps.select("app_id", "tenant"), on="app_id")
    begun = begun.select("tenant", at_us="start_us", begins=True).unique()
    spans = spans.join(begun, on=["tenant", "at_us"], how="left", maintain_order="left")
    above = pl.col("held") > pl.col("quota")
    drains_us = _drains_us(run)
    late = pl.col("until_us") > pl.col("since_us") + (_ANY if drains_us is None else drains_us)
    return problems(
        spans,
        {
            "a lease begins above the quota": above & pl.col("begins"),
            "above the quota for longer than a lease": above & late,
        },
        *("tenant", "at_us", "until_us", "held", "quota"),
    )


def _drains_us(run: Run) -> int | None:
    """Return the time in which leases above a quota end; None where that is not bounded."""
    lease_us = run.setting_us("lease_s")
    if not run.is_built_in or run.result.policy in WITHOUT_LEASES or run.workload is None:
        return None
    own_s = run.workload.jobs.select(pl.col("checkpoint_s").max()).item() or 0.0
    switch_us = run.setting_us("restart_s") + max(run.setting_us("checkpoint_s"), own_s * 1e6)
    cut = run.settings.get("payment") == "lease"
    shortest_us = min(lease_us, run.setting_us("min_lease_s")) if cut else lease_us
    # Leases shorter than a switch would never let a job work: they go on.
    return lease_us if switch_us < shortest_us else None
