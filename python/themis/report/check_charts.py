"""Charts of a workload: when work arrives, in which gangs, and how long jobs are."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from themis.checking.offered_load import LoadReport, TimeBins
from themis.report.look import HEIGHT, WIDTH, Figure, inline, styled, time_unit, values
from themis.workload.workload import Workload

__all__ = ["workload_figures"]

_BLUE, _ORANGE = "#0b65b0", "#c8500a"
_CURVE_POINTS = 200
_TYPES = 6
_GANGS = 16


def workload_figures(workload: Workload, load: LoadReport | None) -> list[Figure]:
    """Draw the figures of a workload; with `load`, arrivals are those of a cluster."""
    figures = [
        _arrivals(workload) if load is None else _load(load),
        _gangs(workload.jobs),
        _durations(workload.jobs),
    ]
    return [figure for figure in figures if figure is not None]


def _load(load: LoadReport) -> Figure | None:
    parts = [part for part in load.types if part.over_time][:_TYPES]
    unit_s, unit = time_unit(load.bin_s * max((len(part.over_time) for part in parts), default=0))
    rows = [
        {
            "time": (load.bins_from_s + index * load.bin_s) / unit_s,
            "end": (load.bins_from_s + (index + 1) * load.bin_s) / unit_s,
            "load": value,
            "types": f"{part.gpu_types} ({part.gpus:,} GPUs)",
        }
        for part in parts
        for index, value in enumerate(part.over_time)
    ]
    if not rows:
        return None
    bars = (
        alt.Chart(values(rows))
        .mark_bar(color=_BLUE)
        .encode(
            x=alt.X("time:Q", title=f"Time ({unit})"),
            x2="end:Q",
            y=alt.Y("load:Q", title="Offered load"),
            y2=alt.datum(0),
        )
    )
    full = (
        alt.Chart(values([{"load": 1.0}]))
        .mark_rule(color=_ORANGE, strokeWidth=1.5)
        .encode(y="load:Q")
    )
    height = max(HEIGHT // len(parts), 70)
    panels = [
        alt.layer(bars.transform_filter(alt.datum.types == name), full).properties(
            width=WIDTH, height=height, title=alt.Title(str(name), anchor="start", fontSize=12)
        )
        for name in dict.fromkeys(row["types"] for row in rows)
    ]
    return Figure(
        "load",
        "Offered load over time",
        f"GPU-seconds submitted in each {load.bin_s:,.0f} s over what the GPUs of those types can "
        "do in it. Above the line at 1 the queue grows.",
        styled(alt.vconcat(*panels)),
    )


def _arrivals(workload: Workload) -> Figure:
    submit_s = workload.jobs.get_column("submit_s")
    bins = TimeBins.of(submit_s)
    work = workload.jobs.select(
        pl.when(pl.col("gang_size") > 0).then("serial_time_s").otherwise(0.0)
    ).to_series()
    unit_s, unit = time_unit(bins.width_s * bins.count)
    rows = [
        {
            "time": (bins.start_s + index * bins.width_s) / unit_s,
            "end": (bins.start_s + (index + 1) * bins.width_s) / unit_s,
            "hours": value / 3600.0,
        }
        for index, value in enumerate(bins.sums(submit_s, work).tolist())
    ]
    chart = (
        alt.Chart(values(rows))
        .mark_bar(color=_BLUE)
        .encode(
            x=alt.X("time:Q", title=f"Time ({unit})"),
            x2="end:Q",
            y=alt.Y("hours:Q", title="GPU-hours submitted"),
            y2=alt.datum(0),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return Figure(
        "arrivals",
        "Work over time",
        f"GPU-hours of the jobs submitted in each {bins.width_s:,.0f} s.",
        styled(chart),
    )


def _gangs(jobs: pl.DataFrame) -> Figure:
    sizes = jobs.group_by("gang_size").agg(pl.len().cast(pl.Int64).alias("jobs"))
    shown = sizes.sort("jobs", "gang_size", descending=[True, False]).head(_GANGS)
    shown = shown.sort("gang_size").select(pl.col("gang_size").cast(pl.String), "jobs")
    more = f" The {_GANGS} most frequent sizes." if sizes.height > _GANGS else ""
    chart = (
        alt.Chart(inline(shown))
        .mark_bar(color=_BLUE)
        .encode(
            x=alt.X("gang_size:N", title="GPUs a gang", sort=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("jobs:Q", title="Jobs"),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return Figure(
        "gangs", "Sizes of gangs", f"Jobs by the GPUs that they need.{more}", styled(chart)
    )


def _durations(jobs: pl.DataFrame) -> Figure | None:
    duration_s = np.sort(
        jobs.select(pl.col("serial_time_s") / pl.col("gang_size").clip(1)).to_series().to_numpy()
    )
    duration_s = duration_s[duration_s > 0]
    if not len(duration_s):
        return None
    share = np.linspace(0, 1, min(len(duration_s), _CURVE_POINTS))
    place = np.round(share * (len(duration_s) - 1)).astype(np.int64)
    curve = pl.DataFrame(
        {"seconds": duration_s[place], "share": (place + 1) / len(duration_s) * 100}
    )
    chart = (
        alt.Chart(inline(curve))
        .mark_line(interpolate="step-after", color=_BLUE)
        .encode(
            x=alt.X(
                "seconds:Q",
                title="Duration (s, log scale)",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(
                    values=[10.0**decade for decade in range(-3, 12)],
                    labelExpr="format(datum.value, '~s')",
                ),
            ),
            y=alt.Y("share:Q", title="Jobs (%)", scale=alt.Scale(domain=[0, 100])),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return Figure(
        "durations",
        "Durations",
        "Percentage of the jobs that take at most so long at their gang; jobs without work are "
        "left out.",
        styled(chart),
    )
