"""The charts of a report, as Altair charts of one size and one look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from themis.digest import RunDigest
from themis.metrics.gpu_time import GPU_TIME_PARTS
from themis.report.palette import GRID, INK, PARTS, policy_colours

__all__ = ["Figure", "draw_figures"]

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart

_WIDTH = 340
_HEIGHT = 230
_PANEL = 62
_FEW_DECADES = 3
_LEGEND_LETTERS = 52
_UNITS = ((86_400.0 * 2, 86_400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"))


@dataclass(frozen=True)
class Figure:
    """One chart: a file name without suffix, a heading, what it shows in words, the chart."""

    name: str
    title: str
    description: str
    chart: AnyChart


def draw_figures(runs: Sequence[RunDigest]) -> list[Figure]:
    """Draw every figure for which the runs have data.

    The same label has the same colour in all of them. Runs that share a label (other seeds) are
    lines of one colour; time series and GPU time show the first run of a label.
    """
    figures = [
        _rho(runs),
        _completion(runs),
        _utilisation(runs),
        _contention(runs),
        _gpu_time(runs),
        _offers(runs),
        _payments(runs),
        _gaps(runs),
    ]
    return [figure for figure in figures if figure is not None]


def _rho(runs: Sequence[RunDigest]) -> Figure | None:
    data = _distribution(runs, lambda run: run.curves.rho, log=True)
    if data.is_empty():
        return None
    axis = _log_axis("Finish-time fairness rho (log scale)", data)
    fair = _rule(1.0, "fair share")
    return Figure(
        "rho",
        "Finish-time fairness",
        "Share of finished apps with a rho at or below each value, by policy. Left is better; "
        "at most 1 means no slower than with a fair share of the cluster.",
        _styled(alt.layer(fair, _steps(data, runs, axis, log=True))),
    )


def _completion(runs: Sequence[RunDigest]) -> Figure | None:
    data = _distribution(runs, lambda run: run.curves.app_completion_s, log=True)
    if data.is_empty():
        return None
    unit_s, unit = _time_unit(data.get_column("value").median())
    data = data.with_columns(pl.col("value") / unit_s)
    axis = _log_axis(f"App completion time ({unit}, log scale)", data)
    return Figure(
        "completion",
        "App completion time",
        "Share of finished apps that took at most each time from arrival to end, by policy. "
        "Left is better.",
        _styled(_steps(data, runs, axis, log=True)),
    )


def _utilisation(runs: Sequence[RunDigest]) -> Figure | None:
    data, unit = _series(runs)
    if data.is_empty():
        return None
    chart = (
        alt.Chart(_inline(data))
        .mark_area(interpolate="step", opacity=0.85)
        .encode(
            x=alt.X("time:Q", title=f"Time since the first arrival ({unit})"),
            y=alt.Y(
                "utilisation:Q",
                title="GPUs held (%)",
                scale=alt.Scale(domain=[0, 100]),
                axis=alt.Axis(values=[0, 50, 100]),
            ),
            color=_colour(runs, legend=False),
            facet=alt.Facet(
                "label:N",
                columns=1,
                sort=_labels(runs),
                title=None,
                header=alt.Header(labelAnchor="start", labelPadding=2, labelFontWeight="bold"),
            ),
        )
        .properties(width=_WIDTH, height=_PANEL)
    )
    return Figure(
        "utilisation",
        "GPU utilisation over time",
        "Percentage of the cluster's GPUs held by apps over time, a panel a policy.",
        _styled(chart.configure_facet(spacing=8)),
    )


def _contention(runs: Sequence[RunDigest]) -> Figure | None:
    data, unit = _series(runs)
    if data.is_empty():
        return None
    panels = len(_labels(runs))
    chart = (
        alt.Chart(_inline(data))
        .mark_line(interpolate="step", strokeWidth=1.5)
        .encode(
            x=alt.X("time:Q", title=f"Time since the first arrival ({unit})"),
            y=alt.Y("active_apps:Q", title="Active apps (arrived, not finished)"),
            color=_colour(runs),
        )
        .properties(width=_WIDTH, height=max(_HEIGHT, panels * (_PANEL + 26) - 40))
    )
    return Figure(
        "contention",
        "Contention over time",
        "Number of apps that have arrived and not finished over time, by policy. Lower is better.",
        _styled(chart),
    )


def _gpu_time(runs: Sequence[RunDigest]) -> Figure | None:
    rows = [
        {"label": run.label, "part": title, "rank": rank, "hours": float(held) / 3600.0}
        for run in _first_of_label(runs)
        for rank, (part, title) in enumerate(zip(GPU_TIME_PARTS, PARTS, strict=True))
        if (held := run.summary[f"{part}_gpu_s"])
    ]
    if not rows:
        return None
    chart = (
        alt.Chart(_values(rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X("hours:Q", title="GPU time held (GPU-hours)", axis=alt.Axis(tickCount=5)),
            y=alt.Y("label:N", title=None, sort=_labels(runs)),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=list(PARTS), range=list(PARTS.values())),
                legend=alt.Legend(title=None, orient="top", columns=2),
            ),
            order=alt.Order("rank:Q"),
        )
        .properties(width=_WIDTH, height=_HEIGHT - 30)
    )
    return Figure(
        "gpu_time",
        "Where the GPU time went",
        "GPU-hours held by apps under each policy, split into useful work, slowdown by "
        "placement, switching and idling inside a gang.",
        _styled(chart),
    )


def _offers(runs: Sequence[RunDigest]) -> Figure | None:
    data = _distribution(runs, lambda run: run.curves.offered_gpus)
    return _auction_figure(
        runs, data, "offers", ("Offer size", "GPUs offered in an auction", "an offer")
    )


def _payments(runs: Sequence[RunDigest]) -> Figure | None:
    data = _distribution(runs, lambda run: run.curves.mean_c)
    return _auction_figure(
        runs,
        data,
        "payments",
        (
            "Hidden payments",
            "Mean payment factor c of an auction (1 = no payment)",
            "a mean payment factor",
        ),
    )


def _gaps(runs: Sequence[RunDigest]) -> Figure | None:
    data = _distribution(runs, lambda run: run.curves.gap)
    data = data.with_columns(pl.col("value") * 100)
    return _auction_figure(
        runs, data, "gaps", ("Certified gap", "Gap to the upper bound (%)", "a certified gap")
    )


def _auction_figure(
    runs: Sequence[RunDigest], data: pl.DataFrame, name: str, words: tuple[str, str, str]
) -> Figure | None:
    if data.is_empty():
        return None
    title, axis_title, noun = words
    runs = [run for run in runs if run.summary["auctions"]]
    axis = alt.Axis(title=axis_title, tickCount=6)
    chart = _steps(data, runs, axis, y_title="Share of auctions (%)")
    return Figure(
        name,
        title,
        f"Share of auctions with {noun} at or below each value, by policy.",
        _styled(chart),
    )


def _steps(
    data: pl.DataFrame,
    runs: Sequence[RunDigest],
    axis: alt.Axis,
    *,
    log: bool = False,
    y_title: str = "Share of apps (%)",
) -> alt.Chart:
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False, nice=True)
    chart: alt.Chart = (
        alt.Chart(_inline(data))
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True)
        .encode(
            x=alt.X("value:Q", axis=axis, scale=scale),
            y=alt.Y("percent:Q", title=y_title, scale=alt.Scale(domain=[0, 100])),
            color=_colour(runs),
            detail="seed:N",
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    return chart


def _rule(at: float, text: str) -> AnyChart:
    base = alt.Chart(_values([{"value": at, "text": text}])).encode(x="value:Q")
    line = base.mark_rule(color=GRID, strokeDash=[4, 3], strokeWidth=1.5)
    label = base.mark_text(color=INK, align="left", baseline="top", dx=4, dy=2).encode(
        text="text:N", y=alt.value(0)
    )
    return alt.layer(line, label)


def _distribution(
    runs: Sequence[RunDigest], pick: Callable[[RunDigest], pl.DataFrame], *, log: bool = False
) -> pl.DataFrame:
    parts = [
        pick(run).select(
            "value",
            (pl.col("share") * 100).alias("percent"),
            pl.lit(run.label).alias("label"),
            pl.lit(run.seed).alias("seed"),
        )
        for run in runs
    ]
    return pl.concat(parts).filter(pl.col("value") > 0) if log else pl.concat(parts)


def _series(runs: Sequence[RunDigest]) -> tuple[pl.DataFrame, str]:
    data = pl.concat(
        [
            run.curves.usage.with_columns(pl.lit(run.label).alias("label"))
            for run in _first_of_label(runs)
        ]
    )
    unit_s, unit = _time_unit(data.get_column("at_s").max())
    return data.select(
        (pl.col("at_s") / unit_s).alias("time"),
        (pl.col("utilisation") * 100).alias("utilisation"),
        "active_apps",
        "label",
    ), unit


def _colour(runs: Sequence[RunDigest], *, legend: bool = True) -> alt.Color:
    colours = policy_colours(_labels(runs))
    look = alt.Legend(
        title=None,
        orient="top",
        columns=_legend_columns(colours),
        symbolType="stroke",
        labelLimit=160,
    )
    return alt.Color(
        "label:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=look if legend else None,
    )


def _styled(chart: AnyChart) -> AnyChart:
    styled: AnyChart = (
        chart.configure(font="sans-serif", aria=False, padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            domainColor=GRID,
            tickColor=GRID,
            gridColor=GRID,
            gridOpacity=0.25,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelFlush=False,
        )
        .configure_legend(labelColor=INK, labelFontSize=12, symbolSize=200, symbolStrokeWidth=3)
        .configure_header(labelColor=INK, labelFontSize=12)
        .configure_text(fontSize=12)
    )
    return styled


def _inline(data: pl.DataFrame) -> alt.InlineData:
    rounded = data.with_columns(pl.col(pl.Float64).round_sig_figs(6))
    return _values(rounded.to_dicts())


def _values(rows: Sequence[Mapping[str, object]]) -> alt.InlineData:
    return alt.InlineData(values=[dict(row) for row in rows])


def _log_axis(title: str, data: pl.DataFrame) -> alt.Axis:
    """Axis with a tick a decade, or at 1, 2, 5 of each where there are few decades."""
    decades = data.get_column("value").log10().to_numpy()
    low, high = math.floor(decades.min()), math.ceil(decades.max())
    steps = (1,) if high - low > _FEW_DECADES else (1, 2, 5)
    ticks = [step * 10.0**decade for decade in range(low, high + 1) for step in steps]
    return alt.Axis(title=title, format="~g", values=ticks)


def _legend_columns(labels: Iterable[str]) -> int:
    lengths = [len(label) for label in labels]
    return len(lengths) if sum(lengths) + 5 * len(lengths) <= _LEGEND_LETTERS else 2


def _labels(runs: Sequence[RunDigest]) -> list[str]:
    return list(dict.fromkeys(run.label for run in runs))


def _first_of_label(runs: Sequence[RunDigest]) -> list[RunDigest]:
    first: dict[str, RunDigest] = {}
    for run in runs:
        first.setdefault(run.label, run)
    return list(first.values())


def _time_unit(typical_s: object) -> tuple[float, str]:
    if isinstance(typical_s, (int, float)):
        for least, unit_s, name in _UNITS:
            if typical_s >= least:
                return unit_s, name
    return 1.0, "seconds"
