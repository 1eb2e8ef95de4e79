"""How much sooner or later the same apps finish than under the baseline, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from themis.metrics.statistics import Floats, bootstrap_interval, mean, present
from themis.results.paired import Grouping, cut_off_pairs, known_grouping, pair_apps

__all__ = ["differences"]

_SCHEMA = {
    "apps": pl.Int64,
    "cut_off": pl.Int64,
    "sooner_s": pl.Float64,
    "sooner_low_s": pl.Float64,
    "sooner_high_s": pl.Float64,
    "rho_change": pl.Float64,
    "rho_change_low": pl.Float64,
    "rho_change_high": pl.Float64,
}


def differences(apps: pl.DataFrame, baseline: str, by: Grouping = "policy") -> pl.DataFrame:
    """Return mean differences between the same apps under a policy and under the baseline.

    An app's difference is its mean over the seeds, so that runs of one app do not count as
    independent. The 95 % interval of a mean is :func:`themis.metrics.statistics.bootstrap_interval`
    over the apps of the row (over the seeds, by app); null for fewer than 5 values.

    Parameters
    ----------
    apps
        Rows of :func:`themis.results.digest.app_rows` for all runs.
    baseline
        The policy to compare with.
    by
        A row a policy; or a policy and tenant, user or app.

    Returns
    -------
    polars.DataFrame
        policy, the tenant, user or app_id; apps (done under both), cut_off (apps that the horizon
        cut off under one of the two or both, and that the means leave out); sooner_s (mean
        completion time under the baseline minus that under the policy, seconds; above 0 is a
        gain) with sooner_low_s and sooner_high_s; rho_change (mean of rho minus that under the
        baseline; below 0 is a gain) with rho_change_low and rho_change_high.

    Raises
    ------
    ThemisError
        The baseline was not run, or `by` is none of these.
    """
    key = {"policy": None, "app": "app_id"}.get(known_grouping(by), by)
    pairs = pair_apps(apps, baseline).with_columns(
        sooner_s=pl.col("baseline_completion_s") - pl.col("completion_s"),
        rho_change=pl.col("rho") - pl.col("baseline_rho"),
    )
    cut = cut_off_pairs(apps, baseline)
    keys = ["policy"] if key is None else ["policy", key]
    order = apps.get_column("policy").unique(maintain_order=True).to_list()
    rank = pl.col("policy").replace_strict(order, range(len(order)), return_dtype=pl.Int64)
    groups = (
        pl.concat([pairs.select(keys), cut.select(keys)])
        .unique()
        .sort(rank, *keys[1:], nulls_last=True)
    )
    mine = pairs.sort("app_id", "seed").partition_by(keys, as_dict=True)
    counts = cut.unique([*keys, "app_id"]).group_by(keys).len().iter_rows()
    lost = {row[:-1]: int(row[-1]) for row in counts}
    rows = []
    for group in groups.iter_rows():
        of_group = mine.get(group, pairs.clear())
        rows.append((*group, *_row(of_group, lost.get(group, 0), over_seeds=by == "app")))
    return pl.DataFrame(rows, schema={**dict.fromkeys(keys, pl.String), **_SCHEMA}, orient="row")


def _row(pairs: pl.DataFrame, cut_off: int, *, over_seeds: bool) -> Iterator[float | None]:
    """Give the numbers of apps, then mean and interval of each difference."""
    yield pairs.get_column("app_id").n_unique()
    yield cut_off
    for name in ("sooner_s", "rho_change"):
        values = present(pairs.get_column(name)) if over_seeds else _by_app(pairs, name)
        yield mean(values)
        yield from bootstrap_interval(values)


def _by_app(pairs: pl.DataFrame, name: str) -> Floats:
    """Return an app's mean over its seeds; `pairs` are sorted by app."""
    known = pairs.filter(pl.col(name).is_not_null())
    values = present(known.get_column(name))
    starts = known.get_column("app_id").rle_id().to_numpy()
    if not values.size:
        return values
    first: Sequence[int] = np.flatnonzero(np.diff(starts, prepend=-1)).tolist()
    sums = np.add.reduceat(values, first)
    return np.asarray(sums / np.diff([*first, values.size]), dtype=np.float64)
