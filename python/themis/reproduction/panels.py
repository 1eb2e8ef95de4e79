"""The figures: which runs, which measures, what each must show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from themis.reproduction import measures as of
from themis.reproduction.measures import Measure
from themis.reproduction.rules import (
    Ahead,
    Alike,
    AtLeast,
    AtMost,
    Falling,
    Highest,
    Knee,
    Level,
    Lowest,
    Rising,
    Rule,
)

__all__ = ["FIGURES", "PANELS", "Panel"]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A figure or table of the paper, or a part of one.

    Parameters
    ----------
    figure, part
        Its number, and what tells its parts apart.
    title
        What it shows.
    experiment
        Name of the experiment whose runs it is drawn of.
    measures
        What is read from each run.
    series
        Axis whose values are told apart by colour.
    x, x_title
        Axis that it runs along, if any.
    x_names
        What values on it are called, where not by themselves.
    where
        Values on the other axes.
    rules
        What it must show.
    chart
        How its measures are drawn.
    note
        What to know when reading it.
    """

    figure: str
    part: str = ""
    title: str
    experiment: str
    measures: tuple[Measure, ...]
    series: str = "policy"
    x: str | None = None
    x_title: str = ""
    x_names: Mapping[object, str] = field(default_factory=dict)
    where: Mapping[str, object] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    chart: Literal["cdf", "bars", "lines"] = "bars"
    note: str = ""

    @property
    def name(self) -> str:
        """Its key among the paper's values."""
        return f"{self.figure} {self.part}".strip()

    @property
    def heading(self) -> str:
        """What it is called, such as Figure 19, knob, or Table 5."""
        number = self.figure.removeprefix("table")
        kind = "Figure" if number == self.figure else "Table"
        return f"{kind} {number}" + (f", {self.part}" if self.part else "")


_CONTENTION = "workload.params.contention"
_SHARE = "workload.params.network_share"
_HONEST_JAIN = "The paper prints no Jain's index of this run; it says that Themis has the highest."

PANELS: tuple[Panel, ...] = (
    Panel(
        figure="table3",
        title="speed by model and by where a job's GPUs are",
        experiment="placement",
        measures=(of.SPEED,),
        series="workload.params.profiles",
        x="cluster",
        x_title="all GPUs of the job in",
        x_names={"1x4": "a slot", "1x4/2": "a machine", "2x2": "a rack", "2x(1x2)": "the cluster"},
        rules=(Falling("speed", "vgg16"), Falling("speed", "resnet50")),
        chart="lines",
        note="Measured by running one job on four clusters of four GPUs.",
    ),
    Panel(
        figure="9",
        title="finish-time fairness on workload 1",
        experiment="w1",
        where={_CONTENTION: 1.0},
        measures=(of.RHO_MAX, of.RHO_MEDIAN, of.JAIN),
        rules=(Lowest("rho_max"), Highest("jain")),
        chart="cdf",
        note=_HONEST_JAIN,
    ),
    Panel(
        figure="10",
        title="finish-time fairness on workload 2",
        experiment="w2",
        measures=(of.RHO_MAX, of.RHO_MEDIAN, of.JAIN),
        rules=(Lowest("rho_max"), Highest("jain")),
        chart="cdf",
        note=_HONEST_JAIN,
    ),
    Panel(
        figure="11",
        title="GPU time on workload 1",
        experiment="w1",
        where={_CONTENTION: 1.0},
        measures=(of.GPU_HOURS,),
        rules=(Alike("gpu_h"),),
    ),
    Panel(
        figure="12",
        title="GPU time on workload 2",
        experiment="w2",
        measures=(of.GPU_HOURS,),
        rules=(Lowest("gpu_h"),),
        note="The paper's text says 4.8 % less than Gandiva; its bars are 410 and 590, 31 % less.",
    ),
    Panel(
        figure="13",
        title="placement on workload 2",
        experiment="w2",
        measures=(of.PLACED_PERFECTLY,),
        rules=(AtLeast("placed_perfectly", bound=0.95), Highest("placed_perfectly")),
        note="The paper counts allocations; ours is of the GPU time.",
    ),
    Panel(
        figure="14",
        title="contention: workload 1 with arrivals once, twice and four times as fast",
        experiment="w1",
        x=_CONTENTION,
        x_title="contention",
        measures=(of.RHO_MAX,),
        rules=(Lowest("rho_max"), Level("rho_max")),
        chart="lines",
    ),
    Panel(
        figure="15",
        title="fairness by share of network-intensive apps",
        experiment="mix",
        x=_SHARE,
        x_title="share of network-intensive apps",
        measures=(of.RHO_MAX,),
        rules=(Lowest("rho_max"),),
        chart="lines",
    ),
    Panel(
        figure="16",
        title="GPU time by share of network-intensive apps",
        experiment="mix",
        x=_SHARE,
        x_title="share of network-intensive apps",
        measures=(of.GPU_HOURS,),
        rules=(Lowest("gpu_h"), Rising("gpu_h")),
        chart="lines",
    ),
    Panel(
        figure="17",
        title="errors in bids",
        experiment="bid-error",
        x="bid_error",
        x_title="largest error of work and of S",
        measures=(of.RHO_MAX,),
        rules=(Level("rho_max"),),
        chart="lines",
    ),
    Panel(
        figure="18",
        part="slowdown",
        title="one of eight identical apps overstates its slowdown",
        experiment="lying",
        series="payment",
        x="settings.liars.by",
        x_title="overstated by",
        measures=(of.LIAR_GAIN, of.HONEST_GAIN),
        rules=(
            AtMost("liar_gain", "lottery", bound=0.0),
            AtMost("liar_gain", "lottery", bound=-0.05, since=0.4),
            AtLeast("honest_gain", "lottery", bound=0.0),
        ),
        chart="lines",
        note="Gain: how much sooner an app finishes than if nobody lied, share of its time.",
    ),
    Panel(
        figure="18",
        part="work",
        title="one of eight identical apps overstates its work, as if it were slower",
        experiment="lying-work",
        series="payment",
        x="settings.liars.by",
        x_title="overstated by",
        measures=(of.LIAR_GAIN, of.HONEST_GAIN),
        rules=(AtMost("liar_gain", "lottery", bound=0.0),),
        chart="lines",
        note="The paper's second lie, a speed understated where GPUs are close, is less than this.",
    ),
    Panel(
        figure="19",
        part="knob",
        title="the fairness knob f",
        experiment="knob",
        x="fairness_knob",
        x_title="f",
        measures=(of.RHO_MAX, of.GPU_HOURS),
        rules=(Knee("rho_max"), Rising("gpu_h", places=(0.0, 0.8, 1.0))),
        chart="lines",
    ),
    Panel(
        figure="19",
        part="lease",
        title="the length of a lease",
        experiment="lease",
        x="lease_s",
        x_title="lease (s)",
        measures=(of.RHO_MAX, of.GPU_HOURS),
        rules=(Rising("rho_max"), Falling("gpu_h")),
        chart="lines",
    ),
    Panel(
        figure="table5",
        title="a long and a short job under Themis and Tiresias",
        experiment="two-jobs",
        measures=(of.RHO_SHORT, of.RHO_LONG),
        rules=(Ahead("rho_short"), AtMost("rho_long", bound=1.05)),
    ),
)
"""Every panel, in the order of the paper."""

FIGURES: tuple[str, ...] = tuple(dict.fromkeys(panel.figure for panel in PANELS))
"""What may be asked for."""
