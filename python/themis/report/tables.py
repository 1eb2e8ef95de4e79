"""The tables of a report: headline figures, who won and lost, manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from themis.comparison import Comparison
from themis.digest import RunDigest
from themis.metrics.catalogue import CATALOGUE, HEADLINES, Better, Metric, Unit
from themis.paired import default_baseline
from themis.report.wording import worded

__all__ = ["Cell", "Row", "Winners", "flattened", "metric_rows", "winners_of"]

_EXTREMES = 5


@dataclass(frozen=True)
class Cell:
    """One figure as text, and whether it is the best of its row."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Row:
    """One row of a table: its heading, which direction is better, its figures."""

    title: str
    better: Better
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Winners:
    """Pairs against the baseline, by policy and at the extremes by user."""

    baseline: str
    has_users: bool
    rows: Sequence[Row]
    users: Sequence[tuple[str, Sequence[Row]]]


def metric_rows(runs: Sequence[RunDigest], *, headline: bool) -> list[Row]:
    """One row a metric, one figure a label: the median over the label's seeds.

    Parameters
    ----------
    runs
        The runs; those with one label are seeds of one another.
    headline
        The headline metrics that any run has, or all others that any run has.
    """
    labels = list(dict.fromkeys(run.label for run in runs))
    names = HEADLINES if headline else [name for name in CATALOGUE if name not in HEADLINES]
    unfinished = any(run.summary["apps_unfinished"] for run in runs)
    rows = []
    for name in names:
        metric = CATALOGUE[name]
        values = [_median([run.summary[name] for run in runs if run.label == x]) for x in labels]
        if all(value is None for value in values) or (_only_if_any(name) and not any(values)):
            continue
        marks = _best(values, metric, unfinished=unfinished)
        cells = [Cell(worded(v, metric.unit), m) for v, m in zip(values, marks, strict=True)]
        rows.append(Row(metric.title, metric.better, cells))
    return rows


def winners_of(comparison: Comparison) -> Winners | None:
    """Count who finished sooner and later than under the baseline.

    None for a single policy, and for runs on different workloads.
    """
    workloads = {str(run.manifest.get("workload")) for run in comparison.runs}
    if len(workloads) > 1:
        return None
    baseline = default_baseline(comparison.policies)
    frame = comparison.winners(baseline)
    if frame.is_empty():
        return None
    has_users = comparison.apps.get_column("user").null_count() < comparison.apps.height
    rows = [
        Row(
            str(row["policy"]),
            Better.NEITHER,
            [
                *(
                    Cell(worded(row[name], Unit.COUNT))
                    for name in ("apps", "better", "same", "worse")
                ),
                Cell(_ratio(row["ratio_median"], row["ratio_low"], row["ratio_high"])),
                *(
                    Cell(worded(row[f"users_{name}"], Unit.COUNT))
                    for name in ("better", "worse")
                    if has_users
                ),
            ],
        )
        for row in frame.to_dicts()
    ]
    users = comparison.winners(baseline, by="user").filter(
        pl.col("user").is_not_null() & pl.col("ratio_median").is_not_null()
    )
    tables = []
    for policy in frame.get_column("policy"):
        mine = users.filter(pl.col("policy") == policy).sort("ratio_median", "user")
        if mine.height > 1:
            tables.append((str(policy), [_user_row(row) for row in _extremes(mine).to_dicts()]))
    return Winners(baseline, has_users, rows, tables)


def flattened(manifest: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """Key and value pairs of a manifest as text, nested keys joined by dots."""
    pairs: list[tuple[str, str]] = []
    for key, value in manifest.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            pairs.extend(flattened(value, f"{name}."))
        elif isinstance(value, list):
            pairs.append((name, "; ".join(map(str, value)) or "none"))
        else:
            pairs.append((name, "none" if value is None else str(value)))
    return pairs


def _extremes(users: pl.DataFrame) -> pl.DataFrame:
    if users.height <= 2 * _EXTREMES:
        return users
    return pl.concat([users.head(_EXTREMES), users.tail(_EXTREMES)])


def _user_row(row: Mapping[str, object]) -> Row:
    counts = [Cell(f"{row[name]:,}") for name in ("apps", "better", "same", "worse")]
    return Row(
        str(row["user"]), Better.NEITHER, [*counts, Cell(_ratio(row["ratio_median"], None, None))]
    )


def _ratio(median: object, low: object, high: object) -> str:
    if not isinstance(median, float):
        return "\N{EN DASH}"
    text = f"\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}{worded(median, Unit.RATIO)}"
    if isinstance(low, float) and isinstance(high, float):
        text += f" ({worded(low, Unit.RATIO)} to {worded(high, Unit.RATIO)})"
    return text


def _median(values: Sequence[float | int | bool | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return float(np.median(known)) if known else None


def _only_if_any(name: str) -> bool:
    return name in {"apps_unfinished", "apps_infeasible", "rho_bound_max"}


def _best(values: Sequence[float | None], metric: Metric, *, unfinished: bool) -> list[bool]:
    known = [value for value in values if value is not None]
    if metric.better is Better.NEITHER or (metric.finished_only and unfinished) or len(known) < 2:  # noqa: PLR2004 - a contest takes two
        return [False] * len(values)
    best = min(known) if metric.better is Better.LOWER else max(known)
    if min(known) == max(known):
        return [False] * len(values)
    shown = worded(best, metric.unit)
    return [value is not None and worded(value, metric.unit) == shown for value in values]
