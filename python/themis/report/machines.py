"""The chart of who held which machine when."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from themis.report.look import WIDTH, Figure, first_of_label, inline, styled, time_unit
from themis.report.palette import app_colours
from themis.results.compared import Compared
from themis.results.digest import RunDigest

__all__ = ["machine_figure"]

_PANELS = 3
_LANE, _TALLEST = 22, 240


def machine_figure(comparison: Compared) -> Figure | None:
    """Draw the machines of a few policies as lanes, coloured by the app that held most of them."""
    runs = [run for run in _chosen(comparison) if not run.curves.occupancy.is_empty()]
    if not runs:
        return None
    data = pl.concat([run.curves.occupancy.with_columns(label=pl.lit(run.label)) for run in runs])
    colours = app_colours()
    apps = comparison.apps.select("app_id", "arrival_s").unique().sort("arrival_s", "app_id")
    rank = {
        app: at % len(colours)
        for at, app in enumerate(apps.get_column("app_id").unique(maintain_order=True))
    }
    unit_s, unit = time_unit(data.get_column("to_s").max())
    drawn = data.select(
        "machine",
        "label",
        "share",
        start=pl.col("from_s") / unit_s,
        end=pl.col("to_s") / unit_s,
        hue=pl.col("app_id").replace_strict(rank, return_dtype=pl.Int64),
    )
    machines = data.get_column("machine").unique(maintain_order=True).to_list()
    height = min(_LANE * len(machines), _TALLEST)
    chart = (
        alt.Chart(inline(drawn))
        .mark_bar(height={"band": 0.86})
        .encode(
            x=alt.X("start:Q", title=f"Time since the first arrival ({unit})"),
            x2="end:Q",
            y=alt.Y("machine:N", title=None, sort=machines, axis=alt.Axis(ticks=False)),
            color=alt.Color(
                "hue:N",
                scale=alt.Scale(domain=list(range(len(colours))), range=colours),
                legend=None,
            ),
            opacity=alt.Opacity(
                "share:Q", scale=alt.Scale(domain=[0, 1], range=[0.15, 1]), legend=None
            ),
            facet=alt.Facet(
                "label:N",
                columns=1,
                sort=[run.label for run in runs],
                title=None,
                header=alt.Header(labelAnchor="start", labelPadding=4, labelFontWeight="bold"),
            ),
        )
        .properties(width=WIDTH, height=height)
    )
    return Figure(
        "machines",
        "Who held the machines",
        "Each lane is a machine, each colour the app that held most of its GPUs then; colours "
        "repeat. Pale: most of its GPUs were free; empty: all were."
        + _picked(runs[0], len(machines)),
        styled(chart.configure_facet(spacing=8)),
    )


def _picked(run: RunDigest, drawn: int) -> str:
    """Say that the lanes are not all machines, where they are not."""
    cluster = run.manifest.get("cluster")
    machines = cluster.get("machines") if isinstance(cluster, Mapping) else None
    if isinstance(machines, int) and machines > drawn:
        return f" {drawn} of {machines:,} machines, evenly picked."
    return ""


def _chosen(comparison: Compared) -> list[RunDigest]:
    """Return the first run of each label; of many labels, of the first two and the baseline."""
    runs = first_of_label(comparison.runs)
    if len(runs) <= _PANELS:
        return runs
    return [run for at, run in enumerate(runs) if at < 2 or run.label == comparison.baseline]  # noqa: PLR2004 - two
