"""Runs played on a Ray cluster.

Nodes need this version of Themis and the input files under the same paths, and no more: the files
of a result travel back to the sweep's own process, which writes them.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from themis import _core
from themis.errors import ThemisError
from themis.files.atomic_directory import new_directory
from themis.sweeps.play import ONE_THREAD, Outcome, Task, play

__all__ = ["load_ray", "play_on_ray"]

_Files = dict[str, bytes]


def play_on_ray(tasks: Sequence[Task], workers: int | None) -> Generator[Outcome]:
    """Give the outcome of every run as it ends, in whatever order.

    The cluster is the one that the caller is connected to, else the one that the environment
    variable ``RAY_ADDRESS`` names, else one of this machine that ends with the sweep.

    Parameters
    ----------
    tasks
        The runs; they are started in this order.
    workers
        How many run at once; None: as many as the cluster has processors.

    Raises
    ------
    ThemisError
        The package ray is not installed, or the cluster does not answer.
    """
    ray = load_ray()
    if not tasks:
        return
    with _connected(ray, workers):
        remote = ray.remote(num_cpus=1, runtime_env={"env_vars": ONE_THREAD})(_play_there)
        most = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = iter(tasks)
        running: dict[object, Task] = {}
        while True:
            for task in waiting:
                running[remote.remote(task, _core.__version__)] = task
                if len(running) == most:
                    break
            if not running:
                return
            (ended, *_), _ = ray.wait(list(running), num_returns=1)
            yield _brought_back(ray, ended, running.pop(ended))


def _play_there(task: Task, version: str) -> tuple[str | None, _Files]:
    """Play a run on a node; return what went wrong, and the files of the result."""
    if _core.__version__ != version:
        return f"a node has Themis {_core.__version__}: expected {version}", {}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "result")
        outcome = play(replace(task, target=str(target)))
        if outcome.error is not None:
            return outcome.error, {}
        return None, {path.name: path.read_bytes() for path in sorted(target.iterdir())}


def _brought_back(ray: ModuleType, ended: object, task: Task) -> Outcome:
    try:
        error, files = ray.get(ended)
    except ray.exceptions.RayError as lost:  # of a node, or of the process that played it
        return Outcome(task, f"{type(lost).__name__}: {str(lost).splitlines()[0]}")
    if error is None:
        with new_directory(Path(task.target)) as partial:
            for name, content in files.items():
                (partial / name).write_bytes(content)
    return Outcome(task, error)


def load_ray() -> ModuleType:
    """Return the package ray.

    Raises
    ------
    ThemisError
        It is not installed; the message names the extra.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise ThemisError(
            "backend is 'ray', but ray is not installed: expected the extra ray "
            "(pip install 'themis-sched[ray]')"
        ) from None


@contextlib.contextmanager
def _connected(ray: ModuleType, workers: int | None) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    here = {"address": "local", "num_cpus": workers, "include_dashboard": False}
    where = {} if os.environ.get("RAY_ADDRESS") else here
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ThemisError(f"the Ray cluster does not answer: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()
