"""The figures of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
import polars as pl

from themis.metrics.gpu_time import GPU_TIME_PARTS
from themis.report.distributions import (
    completion_figure,
    gain_figure,
    gap_figure,
    offer_figure,
    payment_figure,
    placement_figure,
    rho_figure,
)
from themis.report.effects import effect_figures
from themis.report.look import (
    HEIGHT,
    WIDTH,
    Figure,
    colour,
    first_of_label,
    inline,
    labels_of,
    styled,
    time_unit,
    values,
)
from themis.report.machines import machine_figure
from themis.report.many import drawn_part
from themis.report.palette import PARTS
from themis.report.tables import one_workload
from themis.results.compared import Compared
from themis.results.digest import RunDigest

__all__ = ["Figure", "draw_figures"]

_PANEL = 62
_BETWEEN_PANELS = 26
_FLATTENED = 12.0
_LETTER = 7
_SHORT_NUMBER = "format(datum.value, '~s')"


def draw_figures(comparison: Compared) -> list[Figure]:
    """Draw every figure for which the runs have data.

    Of many labels only some are drawn (:func:`themis.report.many.drawn_part`); the effects of the
    axes of a sweep are those of all runs. The same label has the same colour in all figures. Runs
    that share a label (other seeds) are lines of one colour; time series, machines and GPU time
    show the first run of a label.
    """
    all_runs, comparison = comparison.runs, drawn_part(comparison)
    runs = comparison.runs
    figures = [
        *effect_figures(all_runs),
        rho_figure(runs),
        completion_figure(runs),
        gain_figure(comparison) if one_workload(runs) else None,
        _utilisation(runs),
        _contention(runs),
        _gpu_time(runs),
        placement_figure(runs),
        machine_figure(comparison),
        offer_figure(runs),
        payment_figure(runs),
        gap_figure(runs),
    ]
    return [figure for figure in figures if figure is not None]


def _utilisation(runs: Sequence[RunDigest]) -> Figure | None:
    data, unit = _series(runs)
    if data.is_empty():
        return None
    chart = (
        alt.Chart(inline(data))
        .mark_area(interpolate="step", opacity=0.85)
        .encode(
            x=alt.X("time:Q", title=f"Time since the first arrival ({unit})"),
            y=alt.Y(
                "utilisation:Q",
                title="GPUs held (%)",
                scale=alt.Scale(domain=[0, 100]),
                axis=alt.Axis(values=[0, 50, 100]),
            ),
            color=colour(runs, legend=False),
            facet=alt.Facet(
                "label:N",
                columns=1,
                sort=labels_of(runs),
                title=None,
                header=alt.Header(labelAnchor="start", labelPadding=4, labelFontWeight="bold"),
            ),
        )
        .properties(width=WIDTH, height=max(_PANEL, _share_of_height(len(labels_of(runs)))))
    )
    return Figure(
        "utilisation",
        "GPU utilisation over time",
        "Percentage of the cluster's GPUs held by apps over time, a panel a policy.",
        styled(chart.configure_facet(spacing=8)),
    )


def _contention(runs: Sequence[RunDigest]) -> Figure | None:
    data, unit = _series(runs)
    if data.is_empty():
        return None
    beside = len(labels_of(runs)) * (_PANEL + _BETWEEN_PANELS) - 40
    chart = (
        alt.Chart(inline(data))
        .mark_line(interpolate="step", strokeWidth=1.5)
        .encode(
            x=alt.X("time:Q", title=f"Time since the first arrival ({unit})"),
            y=_contention_axis(data),
            color=colour(runs),
        )
        .properties(width=WIDTH, height=min(max(HEIGHT, beside), 2 * HEIGHT))
    )
    return Figure(
        "contention",
        "Contention over time",
        "Number of apps that have arrived and not finished over time, by policy. Lower is better.",
        styled(chart),
    )


def _gpu_time(runs: Sequence[RunDigest]) -> Figure | None:
    rows = [
        {"label": run.label, "part": title, "rank": rank, "hours": float(held) / 3600.0}
        for run in first_of_label(runs)
        for rank, (part, title) in enumerate(zip(GPU_TIME_PARTS, PARTS, strict=True))
        if (held := run.summary[f"{part}_gpu_s"])
    ]
    if not rows:
        return None
    lines = [line for label in labels_of(runs) for line in label.split(", ")]
    bars, letters = len(lines), max(map(len, lines))
    chart = (
        alt.Chart(values(rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X(
                "hours:Q",
                title="GPU time held (GPU-hours)",
                axis=alt.Axis(tickCount=5, labelExpr=_SHORT_NUMBER),
            ),
            y=alt.Y(
                "label:N",
                title=None,
                sort=labels_of(runs),
                axis=alt.Axis(
                    labelExpr="split(datum.label, ', ')",
                    labelLimit=WIDTH,
                    minExtent=min(_LETTER * letters, WIDTH // 2),
                ),
            ),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=list(PARTS), range=list(PARTS.values())),
                legend=alt.Legend(title=None, orient="top", columns=2),
            ),
            order=alt.Order("rank:Q"),
        )
        .properties(width=WIDTH, height=max(min(HEIGHT - 30, 60 * bars), 25 * bars))
    )
    return Figure(
        "gpu_time",
        "Where the GPU time went",
        "GPU-hours held by apps under each policy, split into useful work, slowdown by "
        "placement, switching and idling inside a gang.",
        styled(chart),
    )


def _series(runs: Sequence[RunDigest]) -> tuple[pl.DataFrame, str]:
    data = pl.concat(
        [
            run.curves.usage.with_columns(pl.lit(run.label).alias("label"))
            for run in first_of_label(runs)
        ]
    )
    unit_s, unit = time_unit(data.get_column("at_s").max())
    return data.select(
        (pl.col("at_s") / unit_s).alias("time"),
        (pl.col("utilisation") * 100).alias("utilisation"),
        "active_apps",
        "label",
    ), unit


def _contention_axis(data: pl.DataFrame) -> alt.Y:
    """Linear, but on a log scale (with zero) where one policy would flatten all others."""
    peaks = data.group_by("label").agg(pl.col("active_apps").max()).get_column("active_apps")
    low, high = float(peaks.to_numpy().min()), float(peaks.to_numpy().max())
    title = "Active apps (arrived, not finished"
    if high <= _FLATTENED * max(low, 1.0):
        return alt.Y("active_apps:Q", title=f"{title})")
    ticks = [0.0, *(10.0**decade for decade in range(math.ceil(math.log10(high)) + 1))]
    return alt.Y(
        "active_apps:Q",
        axis=alt.Axis(title=f"{title}; log scale)", values=ticks, labelExpr=_SHORT_NUMBER),
        scale=alt.Scale(type="symlog", constant=1),
    )


def _share_of_height(panels: int) -> int:
    return HEIGHT // panels - _BETWEEN_PANELS if panels > 1 else HEIGHT
