"""A progress bar on standard error, with an estimate of the time left."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator

__all__ = ["Progress", "progress_bar", "run_bar"]

Progress = Callable[[int, int, float], None]
"""Called now and then with jobs done, jobs in all, and the simulated time in seconds."""

RunsDone = Callable[[int, int], None]
"""Called with runs done and runs in all."""

_DAY_S = 86_400.0


@contextlib.contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator[Progress | None]:
    """Give a callable that moves a bar over the jobs of a run, or None where nobody would see one.

    Parameters
    ----------
    title
        What is going on, shown before the bar.
    quiet
        The user asked for none.
    """
    with _bar(title, "jobs, day {task.fields[day]:.1f},", quiet=quiet) as update:
        if update is None:
            yield None
            return

        def advance(done_jobs: int, total_jobs: int, sim_time_s: float) -> None:
            update(completed=done_jobs, total=total_jobs, day=sim_time_s / _DAY_S)

        yield advance


@contextlib.contextmanager
def run_bar(title: str, *, quiet: bool) -> Iterator[RunsDone | None]:
    """Give a callable that moves a bar over runs; as :func:`progress_bar`."""
    with _bar(title, "runs,", quiet=quiet) as update:
        if update is None:
            yield None
            return

        def advance(done: int, total: int) -> None:
            update(completed=done, total=total)

        yield advance


@contextlib.contextmanager
def _bar(title: str, counted: str, *, quiet: bool) -> Iterator[Callable[..., None] | None]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - loaded only for a terminal
    from rich.progress import (  # noqa: PLC0415 - the same
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar  # noqa: PLC0415 - the same

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(counted),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, day=0.0)
        yield functools.partial(bar.update, task)
