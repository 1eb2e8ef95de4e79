"""What is read from a run for a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from themis.metrics.statistics import mean, present, weighted_mean
from themis.profiles import COLD_START, PROFILES
from themis.reproduction.experiments import Run
from themis.synthetic.two_jobs import LONG, SHORT

__all__ = [
    "GPU_HOURS",
    "HONEST_GAIN",
    "JAIN",
    "LIAR_GAIN",
    "PLACED_PERFECTLY",
    "RHO_LONG",
    "RHO_MAX",
    "RHO_MEDIAN",
    "RHO_SHORT",
    "SPEED",
    "Measure",
]


@dataclass(frozen=True)
class Measure:
    """A figure of a run.

    Parameters
    ----------
    name
        As in data.
    title
        As in text, with its unit.
    of_run
        Reads it; None where it is undefined.
    distribution
        Reads the values of the apps that its curve is drawn of.
    of_app
        What such a value is, as in text.
    """

    name: str
    title: str
    of_run: Callable[[Run], float | None]
    distribution: Callable[[Run], Sequence[float]] | None = None
    of_app: str = ""


def _metric(name: str, scale: float = 1.0) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        value = run.summary[name]
        return None if value is None else float(value) * scale

    return read


def _column(name: str) -> Callable[[Run], Sequence[float]]:
    def read(run: Run) -> Sequence[float]:
        values: list[float] = present(run.apps.get_column(name)).tolist()
        return values

    return read


def _placed_perfectly(run: Run) -> float | None:
    """Share of the running GPU time within a machine, on a cluster of one rack.

    An app with score p across the rack runs at a mean score of share + (1 - share) p. Apps
    without a loss there (p = 1) say nothing and are left out.
    """
    profiles = run.workload.apps.select("app_id", "profile")
    apps = run.apps.join(profiles, on="app_id", how="left", maintain_order="left")
    names = apps.get_column("profile").fill_null(COLD_START)
    across = np.array([1 / PROFILES[name].rack for name in names])
    score = apps.get_column("placement_score").fill_null(1.0).to_numpy()
    running = (apps.get_column("useful_gpu_s") + apps.get_column("slowed_gpu_s")).to_numpy()
    telling = across < 1
    share = (score[telling] - across[telling]) / (1 - across[telling])
    return weighted_mean(share, running[telling])


def _gain(*, lied: bool) -> Callable[[Run], float | None]:
    """How much sooner the apps that lied (or did not) end for the lies, share of their T_SH."""

    def read(run: Run) -> float | None:
        gain = pl.col("lie_gain_s") / (pl.col("t_sh_s") + pl.col("lie_gain_s"))
        return mean(present(run.apps.filter(pl.col("lied") == lied).select(gain).to_series()))

    return read


def _rho_of(app: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        return mean(present(run.apps.filter(pl.col("app_id") == app).get_column("rho")))

    return read


RHO_MAX = Measure("rho_max", "max rho", _metric("rho_max"), _column("rho"), "rho of an app")
RHO_MEDIAN = Measure("rho_median", "median rho", _metric("rho_median"))
JAIN = Measure("jain", "Jain's index", _metric("jain"))
GPU_HOURS = Measure("gpu_h", "GPU-hours", _metric("gpu_s", 1 / 3600))
PLACED_PERFECTLY = Measure(
    "placed_perfectly", "share of GPU time placed perfectly", _placed_perfectly
)
SPEED = Measure("speed", "speed of a job of 4 GPUs", _metric("placement_score"))
LIAR_GAIN = Measure("liar_gain", "gain of the liar", _gain(lied=True))
HONEST_GAIN = Measure("honest_gain", "gain of the others", _gain(lied=False))
RHO_LONG = Measure("rho_long", "rho of the long job", _rho_of(LONG))
RHO_SHORT = Measure("rho_short", "rho of the short job", _rho_of(SHORT))
