"""Play what the figures need, and set ours beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from themis.errors import ScenarioError
from themis.nearest import nearest
from themis.reproduction.experiments import EXPERIMENTS
from themis.reproduction.panels import FIGURES, PANELS
from themis.reproduction.tables import PanelTable, fill
from themis.sweeps.result import SweepRun

__all__ = ["QUICK_SEEDS", "SEEDS", "Reproduction", "reproduce"]

SEEDS, QUICK_SEEDS = 11, 3
"""Seeds of a figure: workloads and draws; an odd number, so that the median is one of them."""

Progress = Callable[[str, int, int, SweepRun | None], None]
"""Called with an experiment, runs finished, runs in all, and the run that has just ended."""


@dataclass(frozen=True)
class Reproduction:
    """Figures, ours beside the paper's.

    Parameters
    ----------
    tables
        One a panel, in the order of the paper.
    seeds
        Runs behind a median.
    settings
        Settings that were not the defaults.
    failures
        What went wrong, run by run.
    """

    tables: Sequence[PanelTable]
    seeds: int
    settings: Mapping[str, object]
    failures: Sequence[str]

    def count(self, word: str) -> int:
        """Return how many claims have a verdict: ok, differs or not run."""
        return sum(one.word == word for table in self.tables for one in table.verdicts)

    def summary(self) -> dict[str, object]:
        """Return all tables and verdicts; JSON-able."""
        return {
            "paper": "nsdi20",
            "seeds": self.seeds,
            "settings": dict(self.settings),
            "ok": self.count("ok"),
            "differs": self.count("differs"),
            "not_run": self.count("not run"),
            "figures": [table.summary() for table in self.tables],
            "failures": list(self.failures),
        }


def reproduce(  # noqa: PLR0913 - which figures, how much of them, where, all by keyword
    figures: Iterable[str] | None = None,
    *,
    quick: bool = False,
    seeds: int | None = None,
    settings: Mapping[str, object] | None = None,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduce figures of Mahajan et al., NSDI 2020.

    Parameters
    ----------
    figures
        Which, of :data:`themis.reproduction.panels.FIGURES`; all by default.
    quick
        Fewer seeds and fewer places along the axes.
    seeds
        Runs a point: seeds 0, 1, ...
    settings
        Settings for every run, by name, where an experiment does not set them itself; they
        may name a preset. The seed is none of them.
    out
        Directory with a sweep an experiment; runs that are there are not played again.
    workers
        Runs at once; as many as there are processors by default.
    force
        Let `out` hold other files where sweeps are to be. They are lost.
    progress
        Called as runs end (:data:`Progress`).

    Raises
    ------
    ScenarioError
        A figure or a setting is unknown, or the seed is among the settings.
    ThemisError
        `out` cannot be used.
    """
    wanted = FIGURES if figures is None else tuple(map(str, figures))
    for one in wanted:
        if one not in FIGURES:
            known = ", ".join(FIGURES)
            raise ScenarioError(
                f"figure is {one!r}{nearest(one, list(FIGURES))}: expected one of {known}"
            )
    if "seed" in (settings or {}):
        raise ScenarioError("seed is no setting here: every point is played with seeds 0, 1, ...")
    count = seeds or (QUICK_SEEDS if quick else SEEDS)
    panels = [panel for panel in PANELS if panel.figure in wanted]
    tables: dict[str, PanelTable] = {}
    failures: list[str] = []
    for name in dict.fromkeys(panel.experiment for panel in panels):

        def tell(done: int, total: int, run: SweepRun | None, name: str = name) -> None:
            if progress is not None:
                progress(name, done, total, run)

        experiment = EXPERIMENTS[name]
        played = experiment.play(
            seeds=count,
            quick=quick,
            settings=settings or {},
            out=None if out is None else Path(out),
            workers=workers,
            force=force,
            progress=tell,
        )
        failures += [f"{name}: {dict(run.values)}: {run.error}" for run in played.failures]
        runs = list(experiment.runs(played))
        tables |= {one.name: fill(one, runs) for one in panels if one.experiment == name}
    return Reproduction([tables[one.name] for one in panels], count, settings or {}, failures)
