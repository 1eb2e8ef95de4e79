"""Who won and who lost: the same apps under two policies, pair by pair."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import polars as pl

from themis.errors import ThemisError
from themis.metrics.statistics import Floats, median_interval, present, quantile

__all__ = [
    "SAME_WITHIN",
    "Grouping",
    "cut_off_pairs",
    "default_baseline",
    "known_grouping",
    "pair_apps",
    "winners",
]

Grouping = Literal["policy", "tenant", "user", "app"]
"""What a row of :func:`winners` stands for."""

SAME_WITHIN = 0.01
"""Completion times within 1 % of each other count as the same."""

_KEYS = ["seed", "app_id"]


def known_grouping(by: str) -> Grouping:
    """Return `by` if it is one of :data:`Grouping`.

    Raises
    ------
    ThemisError
        It is not.
    """
    for known in get_args(Grouping):
        if by == known:
            return known  # type: ignore[no-any-return]
    raise ThemisError(f"by is {by!r}: expected one of {', '.join(get_args(Grouping))}")


def default_baseline(policies: list[str]) -> str:
    """Return what users most likely have today: fifo, or the first policy but themis."""
    if "fifo" in policies:
        return "fifo"
    return next((policy for policy in policies if policy != "themis"), policies[0])


def pair_apps(apps: pl.DataFrame, baseline: str) -> pl.DataFrame:
    """Every app that is done under a policy and under the baseline, side by side.

    Columns: policy, seed, app_id, user, tenant, completion_s, baseline_completion_s, ratio
    (completion_s / baseline_completion_s, below 1 is a win), rho, baseline_rho, outcome (better,
    same, worse; :data:`SAME_WITHIN`).

    Parameters
    ----------
    apps
        Rows of :func:`themis.results.digest.app_rows` for all runs.
    baseline
        The policy to compare with.

    Raises
    ------
    ThemisError
        No run has this policy.
    """
    _check_run(apps, baseline)
    done = apps.filter(pl.col("completion_s").is_not_null())
    reference = done.filter(pl.col("policy") == baseline).select(
        *_KEYS, baseline_completion_s="completion_s", baseline_rho="rho"
    )
    ratio = pl.when(pl.col("baseline_completion_s") > 0).then(
        pl.col("completion_s") / pl.col("baseline_completion_s")
    )
    outcome = (
        pl.when(ratio < 1 - SAME_WITHIN)
        .then(pl.lit("better"))
        .when(ratio > 1 + SAME_WITHIN)
        .then(pl.lit("worse"))
        .otherwise(pl.lit("same"))
    )
    return (
        done.filter(pl.col("policy") != baseline)
        .join(reference, on=_KEYS, how="inner", maintain_order="left", validate="m:1")
        .select(
            "policy",
            "seed",
            "app_id",
            "user",
            "tenant",
            "completion_s",
            "baseline_completion_s",
            ratio.alias("ratio"),
            "rho",
            "baseline_rho",
            outcome.alias("outcome"),
        )
    )


def cut_off_pairs(apps: pl.DataFrame, baseline: str) -> pl.DataFrame:
    """Every app that the horizon cuts off under a policy, under the baseline, or both.

    Columns: policy, seed, app_id, user, tenant. Such an app has no completion time to compare.

    Raises
    ------
    ThemisError
        No run has this policy.
    """
    _check_run(apps, baseline)
    unfinished = pl.col("state") == "unfinished"
    reference = apps.filter(pl.col("policy") == baseline)
    return (
        apps.filter(pl.col("policy") != baseline)
        .join(
            reference.select(*_KEYS, baseline_state="state"),
            on=_KEYS,
            how="inner",
            maintain_order="left",
        )
        .filter(unfinished | (pl.col("baseline_state") == "unfinished"))
        .select("policy", "seed", "app_id", "user", "tenant")
    )


def _check_run(apps: pl.DataFrame, baseline: str) -> None:
    policies = apps.get_column("policy").unique(maintain_order=True).to_list()
    if policies and baseline not in policies:
        raise ThemisError(f"baseline {baseline!r} was not run: expected {', '.join(policies)}")


def winners(apps: pl.DataFrame, baseline: str, by: Grouping = "policy") -> pl.DataFrame:
    """Count who finished sooner and later than under the baseline.

    Parameters
    ----------
    apps
        Rows of :func:`themis.results.digest.app_rows` for all runs.
    baseline
        The policy to compare with.
    by
        A row a policy, a policy and tenant, a policy and user, or (app) :func:`pair_apps` itself.

    Returns
    -------
    polars.DataFrame
        policy, the tenant or user, apps (pairs over all seeds), better, same, worse,
        ratio_median; by policy also ratio_low and ratio_high (95 % interval of that median,
        :func:`themis.metrics.statistics.median_interval`) and users_better, users_same,
        users_worse (users by their own median ratio; apps without a user are left out).
    """
    pairs = pair_apps(apps, baseline)
    if known_grouping(by) == "app":
        return pairs
    order = apps.get_column("policy").unique(maintain_order=True).to_list()
    if by == "policy":
        rows = [_policy_row(policy, pairs) for policy in order if policy != baseline]
        return pl.DataFrame(rows, schema=_POLICY_SCHEMA)
    rank = pl.col("policy").replace_strict(order, range(len(order)), return_dtype=pl.Int64)
    return _tally(pairs, by).sort(rank, by, nulls_last=True)


_POLICY_SCHEMA = {
    "policy": pl.String,
    "apps": pl.Int64,
    "better": pl.Int64,
    "same": pl.Int64,
    "worse": pl.Int64,
    "ratio_median": pl.Float64,
    "ratio_low": pl.Float64,
    "ratio_high": pl.Float64,
    "users_better": pl.Int64,
    "users_same": pl.Int64,
    "users_worse": pl.Int64,
}


def _policy_row(policy: str, pairs: pl.DataFrame) -> dict[str, object]:
    mine = pairs.filter(pl.col("policy") == policy)
    ratios = present(mine.get_column("ratio"))
    low, high = median_interval(ratios)
    per_user = _tally(mine.filter(pl.col("user").is_not_null()), "user")
    users = _outcomes(present(per_user.get_column("ratio_median")))
    counts = {name: int((mine.get_column("outcome") == name).sum()) for name in users}
    return {
        "policy": policy,
        "apps": mine.height,
        **counts,
        "ratio_median": quantile(ratios, 0.5),
        "ratio_low": low,
        "ratio_high": high,
        **{f"users_{name}": count for name, count in users.items()},
    }


def _tally(pairs: pl.DataFrame, key: str) -> pl.DataFrame:
    # Counts and order statistics only: group sums of floats differ from run to run in polars.
    outcome = pl.col("outcome")
    return pairs.group_by("policy", key).agg(
        pl.len().cast(pl.Int64).alias("apps"),
        *((outcome == name).sum().cast(pl.Int64).alias(name) for name in _OUTCOMES),
        pl.col("ratio").median().alias("ratio_median"),
    )


_OUTCOMES = ("better", "same", "worse")


def _outcomes(ratios: Floats) -> dict[str, int]:
    better = int(np.sum(ratios < 1 - SAME_WITHIN))
    worse = int(np.sum(ratios > 1 + SAME_WITHIN))
    return {"better": better, "same": int(ratios.size) - better - worse, "worse": worse}
