"""The tables of a report: headline figures, who won and lost, manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from themis.metrics.by_tenant import tenant_table
from themis.metrics.catalogue import CATALOGUE, HEADLINES, Better, Metric, Unit
from themis.report.wording import worded
from themis.results.compared import Compared
from themis.results.digest import RunDigest

__all__ = [
    "Cell",
    "Row",
    "Winners",
    "cut_off_rows",
    "flattened",
    "metric_rows",
    "one_workload",
    "tenant_rows",
    "winners_of",
]

_EXTREMES = 5
_FEWEST_TENANTS, _MOST_TENANTS = 2, 50
_TENANT_UNITS = {
    "apps": Unit.COUNT,
    "gpu_s": Unit.GPU_SECONDS,
    "gpu_share": Unit.SHARE,
    **dict.fromkeys(("rho_max", "rho_median", "rho_mean"), Unit.RATIO),
    "app_completion_mean_s": Unit.SECONDS,
}


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
    """Pairs against the baseline, by policy and at the extremes by user and by app."""

    baseline: str
    has_users: bool
    rows: Sequence[Row]
    gains: Sequence[Row]
    users: Sequence[tuple[str, Sequence[Row]]]
    apps: Sequence[tuple[str, Sequence[Row]]]


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


def winners_of(comparison: Compared, *, extremes: Sequence[str]) -> Winners | None:
    """Count who finished sooner and later than under the baseline; name users and apps for some.

    None for a single policy, and for runs on different workloads.
    """
    if not one_workload(comparison.runs):
        return None
    frame = comparison.winners()
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
    policies = [policy for policy in frame.get_column("policy") if policy in extremes]
    users = comparison.winners(by="user").filter(pl.col("user").is_not_null())
    return Winners(
        comparison.baseline,
        has_users,
        rows,
        [_gain_row(row) for row in comparison.differences().to_dicts()],
        _by_policy(policies, users, "user", _user_row),
        _by_policy(policies, comparison.winners(by="app"), "app_id", _app_row),
    )


def cut_off_rows(runs: Sequence[RunDigest]) -> list[Row]:
    """Say what the horizon cuts off, a row a run that it cuts; none where every app is done."""
    rows = []
    for run in runs:
        summary = run.summary
        if not summary["apps_unfinished"]:
            continue
        title = f"{run.label}, seed {run.seed}" if run.seed else run.label
        cells = [
            Cell(f"{summary['apps_unfinished']:,} of {summary['apps']:,}"),
            Cell(worded(summary["jobs_unfinished"], Unit.COUNT)),
            Cell(worded(summary["rho_max"], Unit.RATIO)),
            Cell(worded(summary["rho_bound_max"], Unit.RATIO)),
        ]
        rows.append(Row(title, Better.NEITHER, cells))
    return rows


def tenant_rows(comparison: Compared) -> list[tuple[str, list[Row]]]:
    """Return the tenants of each policy's first run, those with most GPU time; none for one tenant.

    The cells are apps, GPU time, share of it, largest, median and mean rho, mean completion time.
    """
    apps = comparison.apps
    if apps.get_column("tenant").n_unique() < _FEWEST_TENANTS:
        return []
    tables = []
    for policy, seed in {run.label: run.seed for run in reversed(comparison.runs)}.items():
        of_run = apps.filter(pl.col("policy") == policy, pl.col("seed") == seed)
        largest = tenant_table(of_run).sort("gpu_s", descending=True, maintain_order=True)
        rows = [_tenant_row(row) for row in largest.head(_MOST_TENANTS).to_dicts()]
        tables.append((policy, rows))
    return tables[::-1]


def _tenant_row(row: Mapping[str, Any]) -> Row:
    name = row["tenant"]
    cells = [Cell(worded(row[column], unit)) for column, unit in _TENANT_UNITS.items()]
    return Row("(none)" if name is None else str(name), Better.NEITHER, cells)


def one_workload(runs: Sequence[RunDigest]) -> bool:
    """Whether all runs played the same workload, so that their apps can be paired."""
    return len({str(run.manifest.get("workload")) for run in runs}) == 1


def _by_policy(
    policies: Sequence[str],
    frame: pl.DataFrame,
    key: str,
    word: Callable[[Mapping[str, object]], Row],
) -> list[tuple[str, list[Row]]]:
    """Return the extremes of each policy, from the largest gain to the largest loss."""
    ratio = "ratio" if "ratio" in frame.columns else "ratio_median"
    known = frame.filter(pl.col(ratio).is_not_null()).sort(ratio, key)
    tables = [(policy, known.filter(pl.col("policy") == policy)) for policy in policies]
    return [
        (policy, [word(row) for row in _extremes(mine).to_dicts()])
        for policy, mine in tables
        if mine.height > 1
    ]


def _gain_row(row: Mapping[str, object]) -> Row:
    """Means of the same apps, with their intervals, and whom the horizon cut off."""
    gain = _interval(row, "sooner{}_s", Unit.SECONDS)
    change = _interval(row, "rho_change{}", Unit.RATIO)
    counts = [Cell(f"{row[name]:,}") for name in ("apps", "cut_off")]
    return Row(str(row["policy"]), Better.NEITHER, [*counts, Cell(gain), Cell(change)])


def _interval(row: Mapping[str, object], name: str, unit: Unit) -> str:
    mean, low, high = (row[name.format(end)] for end in ("", "_low", "_high"))
    if not isinstance(mean, float):
        return "\N{EN DASH}"
    if not (isinstance(low, float) and isinstance(high, float)):
        return _signed(mean, unit)
    return f"{_signed(mean, unit)} ({_signed(low, unit)} to {_signed(high, unit)})"


def _signed(value: float, unit: Unit) -> str:
    sign = "\N{MINUS SIGN}" if value < 0 else "+" if value > 0 else ""
    return sign + worded(abs(value), unit)


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


def _app_row(row: Mapping[str, object]) -> Row:
    user = "" if row["user"] is None else f" ({row['user']})"
    ratio = Cell(_ratio(row["ratio"], None, None))
    times = [_cell(row[name], Unit.SECONDS) for name in ("completion_s", "baseline_completion_s")]
    rho = [_cell(row[name], Unit.RATIO) for name in ("rho", "baseline_rho")]
    return Row(f"{row['app_id']}{user}", Better.NEITHER, [*times, ratio, *rho])


def _cell(value: object, unit: Unit) -> Cell:
    return Cell(worded(value if isinstance(value, float) else None, unit))


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
