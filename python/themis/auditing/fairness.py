"""Fairness figures from arrivals and ends."""

from __future__ import annotations

import polars as pl

from themis.auditing.run import SHARE, Run, problems, us

__all__ = [
    "auctions_are_in_order",
    "figures_are_finite",
    "rho_is_its_definition",
]


def _differ(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    most = pl.max_horizontal(1.0, one.abs(), other.abs())
    return (one - other).abs() > 1e-9 * most


def rho_is_its_definition(run: Run) -> pl.DataFrame:
    """The figure rho is T_SH / T_ID, at least rho_floor; T_SH is the time that the app took.

    It is a bound for an app that is unfinished; an app without it says why.
    """
    rho, shared, ideal = pl.col("rho"), pl.col("t_sh_s"), pl.col("t_id_s")
    is_open = pl.col("state") == "unfinished"
    took_s = (pl.col("gpu_end_us") - pl.col("arrival_us")) / 1e6
    return problems(
        run.apps,
        {
            "not T_SH / T_ID": _differ(rho, shared / ideal),
            "no rho, and no reason": rho.is_null() & pl.col("reason").is_null(),
            "rho without T_SH and T_ID": rho.is_not_null() & (shared.is_null() | ideal.is_null()),
            "a bound, or not": rho.is_not_null() & (pl.col("rho_is_bound") != is_open),
            "T_SH is not the time that it took": ~is_open & _differ(shared, took_s),
            "T_SH is below the time so far": is_open & (shared < took_s * (1 - 1e-9) - 1e-6),
            "below its floor": ~is_open
            & (rho < pl.col("rho_floor") - 1e-6 / ideal - 1e-9 * (1 + rho)),
            "placement score": ~pl.col("placement_score").is_between(0, 1 + 1e-9),
        },
        *("app_id", "state", "rho", "rho_is_bound", "rho_floor", "t_sh_s", "t_id_s", "reason"),
        *("arrival_us", "gpu_end_us", "placement_score"),
    )


def auctions_are_in_order(run: Run) -> pl.DataFrame:
    """An auction a decision at most: winners are bidders are active, GPUs and bounds add up."""
    auctions = run.result.auctions.with_columns(at_us=us("at_s"))
    objective = pl.col("objective")
    most = run.result.usage["gpus_total"].max()
    # Where fractions share what was granted to each, what that frees is on offer once more.
    again = pl.lit(run.jobs.select(SHARE.any()).item())
    at_us, before_us = pl.col("at_us"), pl.col("at_us").shift()
    slack = 1e-9 * pl.max_horizontal(1.0, objective.abs())
    return problems(
        auctions,
        {
            "the policy holds none": pl.lit(run.result.policy != "themis"),
            "not after the one before": (at_us < before_us) | ((at_us == before_us) & ~again),
            "nothing on offer": pl.col("offered_gpus") < 1,
            "more on offer than exists": pl.col("offered_gpus") > (most if most is not None else 0),
            "more left than offered": ~pl.col("leftover_gpus").is_between(
                0, pl.col("offered_gpus")
            ),
            "more winners than bidders": ~pl.col("winners").is_between(0, pl.col("bidders")),
            "more bidders than apps": pl.col("bidders") > pl.col("active_apps"),
            "c out of order": ~(
                (pl.col("min_c") >= 0)
                & (pl.col("min_c") <= pl.col("mean_c") + 1e-12)
                & (pl.col("mean_c") <= 1 + 1e-12)
            ),
            "above its bound": objective > pl.col("upper_bound") + slack,
            "gap below 0": pl.col("gap") < 0,
        },
        *auctions.columns,
    )


def figures_are_finite(run: Run) -> pl.DataFrame:
    """No figure is infinite or NaN: what is undefined is null."""
    summary = run.result.summary()
    bad = [
        (name, str(value))
        for name, value in summary.items()
        if isinstance(value, float) and not -1e300 < value < 1e300  # noqa: PLR2004 - NaN too
    ]
    return pl.DataFrame(bad, schema={"figure": pl.String, "value": pl.String}, orient="row")
