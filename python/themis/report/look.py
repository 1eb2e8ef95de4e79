"""What all charts of a report share: size, colours, units, style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from themis.report.palette import GRID, INK, policy_colours
from themis.results.digest import RunDigest

__all__ = [
    "HEIGHT",
    "WIDTH",
    "AnyChart",
    "Figure",
    "colour",
    "first_of_label",
    "inline",
    "label_colour",
    "labels_of",
    "styled",
    "time_unit",
    "values",
]

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart

WIDTH, HEIGHT = 340, 230
"""Size of a plot in points: text stays readable when a phone shrinks it."""

_FONT = 12
_LEGEND_LETTERS = 52
_UNITS = ((86_400.0 * 2, 86_400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"))


@dataclass(frozen=True)
class Figure:
    """One chart: a file name without suffix, a heading, what it shows in words, the chart."""

    name: str
    title: str
    description: str
    chart: AnyChart


def colour(
    runs: Sequence[RunDigest], *, legend: bool = True, only: Sequence[str] | None = None
) -> alt.Color:
    """Colour by label, the same in every chart; the legend has all labels, or `only` some."""
    return label_colour(labels_of(runs), legend=legend, only=only)


def label_colour(
    labels: Sequence[str], *, legend: bool = True, only: Sequence[str] | None = None
) -> alt.Color:
    """Colour by the field `label`; a policy has the same colour in every chart."""
    colours = policy_colours(labels)
    told = list(colours) if only is None else [label for label in colours if label in only]
    look = alt.Legend(
        title=None,
        orient="top",
        columns=_legend_columns(told),
        values=told,
        symbolType="stroke",
        labelLimit=WIDTH,
    )
    return alt.Color(
        "label:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=look if legend else None,
    )


def styled(chart: AnyChart) -> AnyChart:
    """Give a chart the look of all others."""
    dressed: AnyChart = (
        chart.configure(font="sans-serif", aria=False, padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            domainColor=GRID,
            tickColor=GRID,
            gridColor=GRID,
            gridOpacity=0.25,
            labelFontSize=_FONT,
            titleFontSize=_FONT,
            titleFontWeight="normal",
            labelFlush=False,
        )
        .configure_legend(labelColor=INK, labelFontSize=_FONT, symbolSize=200, symbolStrokeWidth=3)
        .configure_header(labelColor=INK, labelFontSize=_FONT)
        .configure_text(fontSize=_FONT)
    )
    return dressed


def inline(data: pl.DataFrame) -> alt.InlineData:
    """Return data of a chart, floats to six digits."""
    return values(data.with_columns(pl.col(pl.Float64).round_sig_figs(6)).to_dicts())


def values(rows: Sequence[Mapping[str, object]]) -> alt.InlineData:
    """Return data of a chart from a few rows."""
    return alt.InlineData(values=[dict(row) for row in rows])


def labels_of(runs: Sequence[RunDigest]) -> list[str]:
    """Return the labels of the runs, each once."""
    return list(dict.fromkeys(run.label for run in runs))


def first_of_label(runs: Sequence[RunDigest]) -> list[RunDigest]:
    """Return the first run of each label."""
    first: dict[str, RunDigest] = {}
    for run in runs:
        first.setdefault(run.label, run)
    return list(first.values())


def time_unit(typical_s: object) -> tuple[float, str]:
    """Return seconds in the natural unit of a length of time, and the unit's name."""
    if isinstance(typical_s, (int, float)):
        for least, unit_s, name in _UNITS:
            if typical_s >= least:
                return unit_s, name
    return 1.0, "seconds"


def _legend_columns(labels: Sequence[str]) -> int:
    lengths = [len(label) for label in labels]
    if sum(lengths) + 5 * len(lengths) <= _LEGEND_LETTERS:
        return len(lengths)
    return 2 if max(lengths) <= _LEGEND_LETTERS // 2 - 5 else 1
