"""Play a scenario at every point of a grid, where it has not been played before."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Literal

from themis.errors import ScenarioError
from themis.scenario.scenario import Scenario
from themis.sweeps.address import Addresses
from themis.sweeps.axes import Point, parse_axes, points
from themis.sweeps.local import play_locally
from themis.sweeps.play import Outcome, Task, inputs_only
from themis.sweeps.result import Sweep, SweepRun
from themis.sweeps.store import open_store

__all__ = ["Backend", "SweepProgress", "sweep"]

Backend = Literal["local", "ray"]
"""Where runs are played: processes of this machine, or a Ray cluster."""

Player = Callable[[Sequence[Task], int | None], Generator[Outcome]]
"""Plays runs, so many at once, and gives each outcome as it ends."""

SweepProgress = Callable[[int, int, SweepRun | None], None]
"""Called with runs finished, runs in all, and the run that has just ended (None at the start)."""


def sweep(  # noqa: PLR0913 - a scenario, what varies, and where, all by keyword
    scenario: Scenario | Mapping[str, object] | str | PathLike[str],
    axes: Mapping[str, Iterable[object]] | None = None,
    *,
    backend: Backend = "local",
    workers: int | None = None,
    out: str | PathLike[str] | None = None,
    tables: bool = True,
    force: bool = False,
    progress: SweepProgress | None = None,
) -> Sweep:
    """Play a scenario with every combination of values on the axes.

    Each result is kept under a digest of all that it depends on: the scenario with every setting,
    the bytes of its input files, and the version of Themis. So a sweep that was interrupted or
    killed goes on where it stopped, one with more values plays only those, and the same sweep
    gives the same bytes with any backend and number of workers. A run that fails does not stop
    the others.

    Parameters
    ----------
    scenario
        A scenario, its nested tables, or the path of its TOML file. Its table ``sweep`` may name
        axes, too.
    axes
        Lists of values by key: a setting (``"lease_s"`` or ``"policy.fairness_knob"``), any place
        in the scenario (``"workload.params.apps"``), or ``"policy"``, ``"load"``, ``"cluster"``,
        ``"seed"``. The first one changes last.
    backend
        ``"local"`` (a pool of processes) or ``"ray"`` (a Ray cluster; needs the extra ``ray``).
    workers
        Runs at once; None: as many as there are processors.
    out
        Directory of the sweep; one of an earlier sweep is taken up. None: a temporary one that
        vanishes with the returned object.
    tables
        Keep the tables of every run, not only its summary.
    force
        Let `out` be a directory that holds other files. They are lost.
    progress
        Called when the sweep begins and whenever a run ends (:data:`SweepProgress`).

    Returns
    -------
    Sweep
        Its ``runs`` is a polars frame with a row a run.

    Raises
    ------
    ScenarioError
        An axis or a value on it is refused; nothing was played.
    ThemisError
        The cluster, policy or workload of a run cannot be used, an input file cannot be read,
        `out` cannot be used, or the backend is missing.
    """
    if workers is not None and (isinstance(workers, bool) or workers < 1):
        raise ScenarioError(f"workers is {workers!r}: expected a whole number of 1 or more")
    play = _player(backend)
    base, directory = _loaded(scenario)
    varied = parse_axes(base.sweep, axes, seed=base.seed)
    grid = list(points(base, varied, directory=directory))
    _check(point.scenario for point in grid)
    addresses = Addresses()
    plan = [SweepRun(point.values, addresses.of(point.scenario)) for point in grid]
    scratch = _Scratch()
    root = scratch.path if out is None else Path(out).absolute()
    keeps = {Path(file) for point in grid for file in point.scenario.input_files()}
    with open_store(root, force=force, tables=tables, keeps=keeps) as store:
        planned = Sweep(
            axes={axis.key: _values(axis.key, grid) for axis in varied},
            plan=plan,
            store=store,
            scenario=base.model_dump(mode="json", exclude={"sweep"}, exclude_none=True),
            keeper=scratch,
        )
        planned.write_overview()
        runs, errors = {run.address: run for run in plan}, dict[str, str | None]()
        tasks = _tasks(planned, grid, tables=tables)
        finished, tell = len(runs) - len(tasks), progress or _say_nothing
        try:
            tell(finished, len(runs), None)
            with contextlib.closing(play(tasks, workers)) as outcomes:
                for finished, outcome in enumerate(outcomes, start=finished + 1):  # noqa: B020
                    address = Path(outcome.task.target).name
                    errors[address] = outcome.error
                    tell(finished, len(runs), replace(runs[address], error=outcome.error))
        finally:
            ended = [replace(run, error=errors.get(run.address)) for run in plan]
            played = replace(planned, plan=ended)
            played.write_overview()
    return played


class _Scratch:
    """A temporary directory that vanishes with this object, or with the process."""

    @cached_property
    def path(self) -> Path:
        made = tempfile.mkdtemp(prefix="themis-sweep-")
        weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
        return Path(made)


def _player(backend: str) -> Player:
    if backend == "local":
        return play_locally
    if backend == "ray":
        from themis.sweeps.on_ray import load_ray, play_on_ray  # noqa: PLC0415 - on use

        load_ray()  # refuses before anything is written
        return play_on_ray
    raise ScenarioError(f"backend is {backend!r}: expected one of local, ray")


def _loaded(
    scenario: Scenario | Mapping[str, object] | str | PathLike[str],
) -> tuple[Scenario, Path]:
    """Return the scenario, and where relative paths on its axes start."""
    if isinstance(scenario, Scenario):
        return scenario, Path()
    if isinstance(scenario, Mapping):
        return Scenario.parse(scenario, directory=Path()), Path()
    return Scenario.load(scenario), Path(scenario).parent


def _check(scenarios: Iterable[Scenario]) -> None:
    """Check every scenario, but each cluster, policy and workload once."""
    seen = set()
    for scenario in scenarios:
        parts = scenario.model_dump(include={"cluster": True, "workload": True, "policy": {"name"}})
        if (key := repr(parts)) not in seen:
            seen.add(key)
            scenario.check()


def _values(key: str, grid: Sequence[Point]) -> list[object]:
    found: list[object] = []
    for point in grid:
        if (value := point.values[key]) not in found:
            found.append(value)
    return found


def _tasks(sweep: Sweep, grid: Sequence[Point], *, tables: bool) -> list[Task]:
    """Return what is still to be played: runs with the same workload follow one another."""
    missing = {
        run.address: point.scenario
        for run, point in zip(sweep.plan, grid, strict=True)
        if sweep.store.summary(run.address) is None
    }
    ordered = sorted(missing.items(), key=lambda item: inputs_only(item[1]))
    return [
        Task(scenario.to_toml(), str(sweep.store.place(address)), tables)
        for address, scenario in ordered
    ]


def _say_nothing(_finished: int, _total: int, _run: SweepRun | None) -> None:
    pass
