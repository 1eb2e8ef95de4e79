"""A figure's plots: ours, and what the paper prints, each on its own scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import altair as alt
import numpy as np

from themis.metrics.curves import cumulative_distribution
from themis.report.look import HEIGHT, WIDTH, AnyChart, Figure, label_colour, styled, values
from themis.reproduction.layout import place_name
from themis.reproduction.measures import JAIN, RHO_MEDIAN, Measure
from themis.reproduction.tables import PanelTable

__all__ = ["draw"]

Rows = Sequence[Mapping[str, object]]
Plot = Callable[[PanelTable, Measure, Rows], AnyChart]

_BAR = 26
_WORDS = {
    "cdf": "Share of apps at or below each value, over all seeds.",
    "bars": "Median over the seeds; the lines reach from the lowest to the highest.",
    "lines": "Median over the seeds.",
}
_UNDRAWN = (RHO_MEDIAN, JAIN)  # the distribution of rho shows both


def draw(table: PanelTable) -> list[Figure]:
    """Draw each measure of a panel: ours, then the paper's where it prints any."""
    panel = table.panel
    figures = []
    for measure in panel.measures:
        if measure in _UNDRAWN:
            continue
        name = f"{panel.name}-{measure.name}".replace(" ", "-")
        words = measure.of_app if panel.chart == "cdf" else measure.title
        title = words[0].upper() + words[1:]
        plot = _PLOTS[panel.chart]
        ours = list(_curves(table) if panel.chart == "cdf" else _ours(table, measure))
        figures.append(
            Figure(name, f"{title}, ours", _WORDS[panel.chart], styled(plot(table, measure, ours)))
        )
        if paper := list(_paper(table, measure)):
            drawn = (_points if panel.chart == "cdf" else plot)(table, measure, paper)
            source = "What the paper prints, as read from its figure."
            figures.append(Figure(f"{name}-paper", f"{title}, the paper's", source, styled(drawn)))
    return figures


def _bars(table: PanelTable, measure: Measure, rows: Rows) -> AnyChart:
    base = alt.Chart(values(rows)).encode(y=alt.Y("label:N", title=None, sort=list(table.series)))
    bars = base.mark_bar(height={"band": 0.7}).encode(
        x=alt.X("value:Q", title=measure.title, axis=alt.Axis(tickCount=5)),
        color=label_colour(table.series, legend=False),
    )
    spread = base.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    height = _BAR * len(table.series) + 20
    chart: AnyChart = alt.layer(bars, spread).properties(width=WIDTH, height=height)
    return chart


def _lines(table: PanelTable, measure: Measure, rows: Rows) -> AnyChart:
    names = [place_name(table.panel, x) for x in table.x]
    title = table.panel.x_title
    numbers = all(isinstance(x, float | int) for x in table.x)
    x = (
        alt.X("x:Q", title=title)
        if numbers
        else alt.X("x:N", title=title, sort=names, axis=alt.Axis(labelAngle=0))
    )
    y = alt.Y("value:Q", title=measure.title, scale=alt.Scale(zero=False))
    chart: AnyChart = (
        alt.Chart(values(rows))
        .mark_line(strokeWidth=2, point=True)
        .encode(x=x, y=y, color=label_colour(table.series))
        .properties(width=WIDTH, height=HEIGHT)
    )
    return chart


def _distribution(table: PanelTable, measure: Measure, rows: Rows) -> AnyChart:
    chart: AnyChart = (
        alt.Chart(values(rows))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(**_shares(table, measure))
        .properties(width=WIDTH, height=HEIGHT)
    )
    return chart


def _points(table: PanelTable, measure: Measure, rows: Rows) -> AnyChart:
    """Draw the points of a distribution that the paper's values are."""
    chart: AnyChart = (
        alt.Chart(values(rows))
        .mark_point(size=80, strokeWidth=2.5)
        .encode(**_shares(table, measure))
        .properties(width=WIDTH, height=HEIGHT)
    )
    return chart


def _shares(table: PanelTable, measure: Measure) -> dict[str, alt.X | alt.Y | alt.Color]:
    return {
        "x": alt.X(
            "value:Q",
            title=measure.of_app,
            scale=alt.Scale(zero=False),
            axis=alt.Axis(tickCount=6),
        ),
        "y": alt.Y("percent:Q", title="Share of apps (%)", scale=alt.Scale(domain=[0, 100])),
        "color": label_colour(table.series),
    }


def _ours(table: PanelTable, measure: Measure) -> Iterator[dict[str, object]]:
    for (name, one, x), cell in table.cells.items():
        if name == measure.name and cell.median is not None:
            place = x if isinstance(x, float | int) else place_name(table.panel, x)
            spread = {"low": cell.low, "high": cell.high}
            yield {"label": one, "x": place, "value": cell.median, **spread}


def _paper(table: PanelTable, measure: Measure) -> Iterator[dict[str, object]]:
    for (name, one, x), cell in table.cells.items():
        if name == measure.name and cell.paper is not None:
            place = x if isinstance(x, float | int) else place_name(table.panel, x)
            spread = {"low": cell.paper, "high": cell.paper}
            yield {"label": one, "x": place, "value": cell.paper, "percent": 100, **spread}
        if name == RHO_MEDIAN.name and table.panel.chart == "cdf" and cell.paper is not None:
            yield {"label": one, "value": cell.paper, "percent": 50}


def _curves(table: PanelTable) -> Iterator[dict[str, object]]:
    for one, found in table.curves.items():
        curve = cumulative_distribution(np.array(found))
        for value, share in curve.iter_rows():
            yield {"label": one, "value": value, "percent": 100 * share}


_PLOTS: Mapping[str, Plot] = {"cdf": _distribution, "bars": _bars, "lines": _lines}
