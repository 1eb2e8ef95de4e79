"""What each axis of a sweep does to the headline metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from themis.metrics.catalogue import CATALOGUE, Unit
from themis.report.look import WIDTH, AnyChart, Figure, inline, styled, time_unit
from themis.report.palette import GRID, SERIES_BLUE
from themis.results.digest import RunDigest

__all__ = ["effect_figures"]

_METRICS = ("rho_max", "rho_median", "app_completion_mean_s", "utilisation")
_PANEL = 110
_FEWEST = 3


def effect_figures(runs: Sequence[RunDigest]) -> list[Figure]:
    """Draw a headline metric over the values of each axis, a figure a metric, a panel an axis.

    Thin lines join runs that differ in that axis alone; the thick one is the median over all
    runs with a value.
    """
    axes = _axes(runs)
    if sum(len(values) for values in axes.values()) < _FEWEST:
        return []
    figures = (_figure(name, axes, runs) for name in _METRICS)
    return [figure for figure in figures if figure is not None]


def _axes(runs: Sequence[RunDigest]) -> dict[str, list[str]]:
    """Return the values of each axis but the seed, in order, where there are several."""
    axes: dict[str, list[str]] = {}
    for run in runs:
        for key, value in run.point.items():
            if value not in axes.setdefault(key, []):
                axes[key].append(value)
    return {key: values for key, values in axes.items() if len(values) > 1}


def _figure(
    name: str, axes: Mapping[str, Sequence[str]], runs: Sequence[RunDigest]
) -> Figure | None:
    metric = CATALOGUE[name]
    known = [run for run in runs if run.summary[name] is not None]
    if not known:
        return None
    scale, unit = 1.0, ""
    if metric.unit is Unit.SECONDS:
        unit_s, word = time_unit(max(float(run.summary[name] or 0) for run in known))
        scale, unit = 1 / unit_s, f" ({word})"
    elif metric.unit is Unit.SHARE:
        scale, unit = 100.0, " (%)"
    panels = [
        _panel(key, values, _rows(known, name, key, scale), f"{metric.title}{unit}")
        for key, values in axes.items()
    ]
    return Figure(
        f"effect_{name}",
        f"{metric.title} by axis",
        "Thin lines join runs that differ in that axis and seed alone; the thick one is the median "
        "of all runs with that value.",
        styled(alt.vconcat(*panels, spacing=12)),
    )


def _rows(runs: Sequence[RunDigest], name: str, key: str, scale: float) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "at": run.point[key],
                "value": float(run.summary[name] or 0) * scale,
                "rest": f"{run.seed} "
                + ", ".join(value for other, value in run.point.items() if other != key),
            }
            for run in runs
        ]
    )


def _panel(key: str, values: Sequence[str], rows: pl.DataFrame, title: str) -> AnyChart:
    x = alt.X("at:O", sort=list(values), title=key, axis=alt.Axis(labelAngle=0, labelLimit=90))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    base = alt.Chart(inline(rows)).encode(x=x, y=y)
    thin = base.mark_line(color=GRID, strokeWidth=1, opacity=0.5).encode(detail="rest:N")
    medians = rows.group_by("at", maintain_order=True).agg(pl.col("value").median())
    thick = (
        alt.Chart(inline(medians))
        .mark_line(color=SERIES_BLUE, strokeWidth=2.5, point=alt.OverlayMarkDef(color=SERIES_BLUE))
        .encode(x=x, y=y)
    )
    panel: AnyChart = alt.layer(thin, thick).properties(
        width=WIDTH, height=_PANEL, title=alt.Title(title, anchor="start", fontSize=12)
    )
    return panel
