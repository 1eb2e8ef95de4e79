"""What is simulated for the figures: workloads, clusters, and what varies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import cast

import polars as pl

from themis.metrics import Number
from themis.scenario.scenario import Scenario
from themis.settings.overrides import apply_values
from themis.sweeps import Sweep, sweep
from themis.sweeps.sweeping import SweepProgress
from themis.synthetic import generate
from themis.workload.workload import Workload

__all__ = ["EXPERIMENTS", "POLICIES", "Experiment", "Run"]

POLICIES = ("themis", "gandiva", "slaq", "tiresias", "srtf", "srsf", "optimus")
"""Those that the paper compares, in its order."""

TESTBED = "nsdi20-testbed"
MIX_CLUSTER = "2x(6x4/2+3x2+2x1)"
"""Two racks of the authors' simulator: 64 GPUs. On their 256 five apps hardly contend."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run that was played. Most figures take its summary alone: the rest is read on use.

    Parameters
    ----------
    values
        Where it stands on the axes.
    summary
        Its metrics.
    load_apps
        Reads its table of apps.
    make_workload
        Generates what it played.
    """

    values: Mapping[str, object]
    summary: Mapping[str, Number]
    load_apps: Callable[[], pl.DataFrame]
    make_workload: Callable[[], Workload]

    @cached_property
    def apps(self) -> pl.DataFrame:
        """Its table of apps."""
        return self.load_apps()

    @cached_property
    def workload(self) -> Workload:
        """What it played."""
        return self.make_workload()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A workload on a cluster, played at every point of a grid and with several seeds.

    Parameters
    ----------
    name
        Name of its directory.
    workload, params
        A synthetic workload and its parameters.
    cluster
        As to ``--cluster``.
    settings
        Settings by name where they are not the defaults.
    axes
        What varies: values by the key of a sweep.
    quick
        Shorter lists for a quick run.
    drawn
        Whether chance plays a part, so that several seeds say more than one.
    """

    name: str
    workload: str
    cluster: str
    axes: Mapping[str, Sequence[object]]
    params: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    quick: Mapping[str, Sequence[object]] = field(default_factory=dict)
    drawn: bool = True

    def play(  # noqa: PLR0913 - how much of it, where, and how it is told, all by keyword
        self,
        *,
        seeds: int,
        quick: bool,
        settings: Mapping[str, object],
        out: Path | None,
        workers: int | None,
        force: bool,
        progress: SweepProgress | None,
    ) -> Sweep:
        """Play it, where it has not been played before, with `settings` under its own."""
        axes = {**self.axes, **(self.quick if quick else {})}
        return sweep(
            self._scenario(settings),
            {**axes, "seed": range(seeds if self.drawn else 1)},
            out=None if out is None else out / self.name,
            workers=workers,
            force=force,
            progress=progress,
        )

    def runs(self, played: Sweep) -> Iterator[Run]:
        """Give the runs that succeeded, in the order of the grid."""
        rows = played.runs.to_dicts()
        for number, (one, summary) in enumerate(zip(played.plan, rows, strict=True)):
            if summary["state"] == "done":
                apps = partial(_apps, played, number)
                yield Run(one.values, summary, apps, partial(self._workload, one.values))

    def _scenario(self, settings: Mapping[str, object]) -> Scenario:
        document = {
            "cluster": {"spec": self.cluster},
            "workload": {"generate": self.workload, "params": dict(self.params)},
        }
        laid = apply_values(document, [*settings.items(), *self.settings.items()])
        return Scenario.parse(laid, directory=Path())

    def _workload(self, values: Mapping[str, object]) -> Workload:
        before = "workload.params."
        varied = {key.removeprefix(before): value for key, value in values.items() if before in key}
        return generate(self.workload, cast("int", values["seed"]), **{**self.params, **varied})


def _apps(played: Sweep, number: int) -> pl.DataFrame:
    return played.result(number).apps


_PROFILES = ("vgg19", "vgg16", "vgg11", "alexnet", "inception3", "resnet50", "network", "compute")
_LIES = (0.1, 0.2, 0.34, 0.4, 0.5)

EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        Experiment(
            name="w1",
            workload="nsdi20-w1",
            cluster=TESTBED,
            axes={"policy": POLICIES, "workload.params.contention": (1.0, 2.0, 4.0)},
        ),
        Experiment(name="w2", workload="nsdi20-w2", cluster=TESTBED, axes={"policy": POLICIES}),
        Experiment(
            name="mix",
            workload="nsdi20-mix",
            cluster=MIX_CLUSTER,
            axes={
                "policy": POLICIES,
                "workload.params.network_share": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
            },
            quick={"workload.params.network_share": (0.0, 0.4, 1.0)},
        ),
        Experiment(
            name="bid-error",
            workload="nsdi20-w1",
            cluster=TESTBED,
            axes={"bid_error": (0.0, 0.05, 0.1, 0.2)},
            quick={"bid_error": (0.0, 0.2)},
        ),
        Experiment(
            name="lying",
            workload="nsdi20-lying",
            cluster="nsdi20-lying",
            settings={"liars": {"share": 0.125, "term": "slowdown"}},
            axes={"payment": ("lottery", "none"), "settings.liars.by": _LIES},
        ),
        Experiment(
            name="lying-work",
            workload="nsdi20-lying",
            cluster="nsdi20-lying",
            settings={"liars": {"share": 0.125, "term": "work"}},
            axes={"payment": ("lottery", "none"), "settings.liars.by": _LIES},
        ),
        Experiment(
            name="knob",
            workload="nsdi20-w2",
            cluster=TESTBED,
            params={"contention": 4.0},
            axes={"fairness_knob": (0.0, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0)},
            quick={"fairness_knob": (0.0, 0.8, 1.0)},
        ),
        Experiment(
            name="lease",
            workload="nsdi20-w2",
            cluster=TESTBED,
            params={"contention": 4.0},
            axes={"lease_s": (300.0, 600.0, 1200.0, 2400.0)},
        ),
        Experiment(
            name="placement",
            workload="jobs",
            cluster="1x4",
            params={"apps": 1, "gangs": (4,)},
            axes={
                "workload.params.profiles": tuple((name,) for name in _PROFILES),
                "cluster": ("1x4", "1x4/2", "2x2", "2x(1x2)"),
            },
            drawn=False,
        ),
        Experiment(
            name="two-jobs",
            workload="nsdi20-two-jobs",
            cluster=TESTBED,
            axes={"policy": ("themis", "tiresias")},
        ),
    )
}
"""Experiments by name."""
