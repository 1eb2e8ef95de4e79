"""Charts of distributions: the share of apps or auctions at or below each value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import altair as alt
import polars as pl

from themis.metrics.curves import cumulative_distribution
from themis.metrics.statistics import present
from themis.report.look import (
    HEIGHT,
    WIDTH,
    AnyChart,
    Figure,
    colour,
    inline,
    styled,
    time_unit,
    values,
)
from themis.report.palette import GRID, INK
from themis.results.compared import Compared
from themis.results.digest import RunDigest

__all__ = [
    "completion_figure",
    "gain_figure",
    "gap_figure",
    "offer_figure",
    "payment_figure",
    "placement_figure",
    "rho_figure",
]

Pick = Callable[[RunDigest], pl.DataFrame]

_POSITIVE = pl.col("value") > 0
_FEW_DECADES = 3
_FEW_TICKS = 2
_ROOM = 1.05
_SHORT = 20


def rho_figure(runs: Sequence[RunDigest]) -> Figure | None:
    """Draw rho of finished apps, with the fair share marked."""
    data = _distribution(runs, lambda run: run.curves.rho).filter(_POSITIVE)
    if data.is_empty():
        return None
    x = _log_axis("Finish-time fairness rho (log scale)", data, around=1.0)
    return Figure(
        "rho",
        "Finish-time fairness",
        "Share of finished apps with a rho at or below each value, by policy. Left is better; "
        "at most 1 means no slower than with a fair share of the cluster.",
        styled(alt.layer(_mark(1.0, "fair share"), _steps(data, runs, x, "apps"))),
    )


def completion_figure(runs: Sequence[RunDigest]) -> Figure | None:
    """Draw the completion time of apps."""
    data = _distribution(runs, lambda run: run.curves.app_completion_s).filter(_POSITIVE)
    if data.is_empty():
        return None
    unit_s, unit = time_unit(data.get_column("value").median())
    data = data.with_columns(pl.col("value") / unit_s)
    x = _log_axis(f"App completion time ({unit}, log scale)", data)
    return Figure(
        "completion",
        "App completion time",
        "Share of finished apps that took at most each time from arrival to end, by policy. "
        "Left is better.",
        styled(_steps(data, runs, x, "apps")),
    )


def gain_figure(comparison: Compared) -> Figure | None:
    """Draw how the completion time of each app compares to that under the baseline."""
    pairs = comparison.winners(by="app").filter(pl.col("ratio") > 0)
    if pairs.is_empty():
        return None
    parts = []
    for (label, seed), rows in pairs.group_by("policy", "seed", maintain_order=True):
        curve = cumulative_distribution(present(rows.get_column("ratio")))
        parts.append(_curve(curve, str(label), str(seed)))
    data, baseline = pl.concat(parts), comparison.baseline
    short = baseline if len(baseline) <= _SHORT else "the baseline"
    x = _log_axis(f"Completion time over that under {short} (log scale)", data, around=1.0)
    return Figure(
        "gains",
        f"Gains and losses against {baseline}",
        f"Share of the apps done under both whose completion time is at most so many times that "
        f"under {baseline}, by policy. Left of 1 is sooner.",
        styled(alt.layer(_mark(1.0, "the same"), _steps(data, comparison.runs, x, "apps"))),
    )


def placement_figure(runs: Sequence[RunDigest]) -> Figure | None:
    """Draw the placement scores of apps."""
    data = _distribution(runs, lambda run: run.curves.placement_score)
    if data.is_empty():
        return None
    x = alt.X(
        "value:Q",
        axis=alt.Axis(title="Placement score (1 = perfectly placed)", tickCount=6),
        scale=alt.Scale(zero=False),
    )
    return Figure(
        "placement",
        "Placement scores",
        "Share of apps with a placement score 1/S at or below each value, weighted over their "
        "time on GPUs, by policy. Lines that rise late and to the right are better.",
        styled(_steps(data, runs, x, "apps")),
    )


def offer_figure(runs: Sequence[RunDigest]) -> Figure | None:
    """Draw the sizes of offers."""
    data = _distribution(runs, lambda run: run.curves.offered_gpus)
    title = "GPUs offered in an auction"
    return _auction_figure(runs, data, ("offers", "Offer size", title, "an offer"))


def payment_figure(runs: Sequence[RunDigest]) -> Figure | None:
    """Draw the mean payment factor of auctions."""
    data = _distribution(runs, lambda run: run.curves.mean_c)
    title = "Mean payment factor c of an auction (1 = no payment)"
    return _auction_figure(
        runs, data, ("payments", "Hidden payments", title, "a mean payment factor")
    )


def gap_figure(runs: Sequence[RunDigest]) -> Figure | None:
    """Draw the certified gaps of auctions."""
    data = _distribution(runs, lambda run: run.curves.gap)
    data = data.with_columns(pl.col("value") * 100)
    title = "Gap to the upper bound (%)"
    return _auction_figure(runs, data, ("gaps", "Certified gap", title, "a certified gap"))


def _auction_figure(
    runs: Sequence[RunDigest], data: pl.DataFrame, words: tuple[str, str, str, str]
) -> Figure | None:
    if data.is_empty():
        return None
    name, title, axis_title, noun = words
    x = alt.X("value:Q", axis=alt.Axis(title=axis_title, tickCount=6), scale=alt.Scale(zero=False))
    return Figure(
        name,
        title,
        f"Share of auctions with {noun} at or below each value, by policy.",
        styled(_steps(data, runs, x, "auctions")),
    )


def _steps(data: pl.DataFrame, runs: Sequence[RunDigest], x: alt.X, what: str) -> alt.Chart:
    y_scale = alt.Scale(domain=[0, 100])
    chart: alt.Chart = (
        alt.Chart(inline(data))
        .mark_line(interpolate="step-after", strokeWidth=2, clip=True)
        .encode(
            x=x,
            y=alt.Y("percent:Q", title=f"Share of {what} (%)", scale=y_scale),
            color=colour(runs, only=data.get_column("label").unique().to_list()),
            detail="seed:N",
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return chart


def _mark(at: float, text: str) -> AnyChart:
    base = alt.Chart(values([{"value": at, "text": text}])).encode(x="value:Q")
    line = base.mark_rule(color=GRID, strokeDash=[4, 3], strokeWidth=1.5)
    label = base.mark_text(color=INK, align="left", baseline="bottom", dx=4, dy=-3).encode(
        text="text:N", y=alt.value(HEIGHT)
    )
    return alt.layer(line, label)


def _log_axis(title: str, data: pl.DataFrame, around: float | None = None) -> alt.X:
    """Log axis with a tick a decade, or at 1, 2, 5 of each where there are few decades."""
    column = data.get_column("value").to_numpy()
    low, high = float(column.min()) / _ROOM, float(column.max()) * _ROOM
    if around is not None:
        low, high = min(low, around / 2), max(high, around * 2)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(decades) > _FEW_DECADES + 1 else (1, 2, 5)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    if sum(low <= tick <= high for tick in ticks) < _FEW_TICKS:
        low, high = max(x for x in ticks if x <= low), min(x for x in ticks if x >= high)
    return alt.X(
        "value:Q",
        axis=alt.Axis(title=title, format="~g", values=[x for x in ticks if low <= x <= high]),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
    )


def _distribution(runs: Sequence[RunDigest], pick: Pick) -> pl.DataFrame:
    """Curves of all runs below one another, each beginning at a share of nothing."""
    return pl.concat([_curve(pick(run), run.label, str(run.seed)) for run in runs])


def _curve(distribution: pl.DataFrame, label: str, seed: str) -> pl.DataFrame:
    curve = distribution.select("value", percent=pl.col("share") * 100)
    start = curve.head(1).with_columns(percent=pl.lit(0.0))
    return pl.concat([start, curve]).with_columns(label=pl.lit(label), seed=pl.lit(seed))
