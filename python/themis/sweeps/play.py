"""One run of a sweep: played and written by whichever process it was given to."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from themis.cluster.cluster import Cluster
from themis.errors import ThemisError
from themis.scenario.scenario import Scenario
from themis.simulation.simulate import simulate
from themis.workload.workload import Workload

__all__ = ["ONE_THREAD", "Outcome", "Task", "inputs_only", "play"]

ONE_THREAD = {"POLARS_MAX_THREADS": "1"}
"""Environment of a process that plays runs: the runs are what is parallel."""


@dataclass(frozen=True)
class Task:
    """A run to play: plain text, so that it can be given to any process.

    Parameters
    ----------
    scenario
        The scenario as TOML, with absolute paths.
    target
        Directory for its result; it appears whole or not at all.
    tables
        Keep the tables too, not only the summary.
    """

    scenario: str
    target: str
    tables: bool


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `error` says what went wrong, and is None if nothing did."""

    task: Task
    error: str | None = None


def play(task: Task) -> Outcome:
    """Play a run and write its result; whatever goes wrong is told, never raised."""
    try:
        _play(task)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the extension's panics are no Exception
        return Outcome(task, _told(error))
    return Outcome(task)


def _play(task: Task) -> None:
    scenario = Scenario.parse(tomllib.loads(task.scenario), directory=Path("/"))
    experiment = scenario.experiment(*_inputs(inputs_only(scenario)))
    result = simulate(
        experiment.workload,
        experiment.cluster,
        policy=experiment.policy,
        seed=experiment.seed,
        profiles=experiment.scenario.own_profiles(),
        tenants=experiment.scenario.tenants,
        **experiment.settings.model_dump(),
    )
    result.with_scenario(scenario).write(task.target, tables=task.tables)


def inputs_only(scenario: Scenario) -> str:
    """Return a scenario with the same workload and cluster, and nothing else set, as TOML."""
    kept = {"cluster", "workload"} | ({"seed"} if scenario.workload.draws else set())
    return scenario.model_copy(
        update={
            name: field.get_default()
            for name, field in type(scenario).model_fields.items()
            if name not in kept
        }
    ).to_toml()


@lru_cache(maxsize=1)
def _inputs(scenario: str) -> tuple[Workload, Cluster]:
    """Build a workload and a cluster; runs that share them follow one another."""
    return Scenario.parse(tomllib.loads(scenario), directory=Path("/")).build_inputs()


def _told(error: BaseException) -> str:
    if isinstance(error, ThemisError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    lines = str(error).splitlines() or ["(no message)"]
    return f"{type(error).__name__}: {lines[0]}"
