"""A progress bar on standard error, with an estimate of the time left."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

__all__ = ["Progress", "progress_bar"]

Progress = Callable[[int, int, float], None]
"""Called now and then with jobs done, jobs in all, and the simulated time in seconds."""

_DAY_S = 86_400.0


@contextlib.contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator[Progress | None]:
    """Give a callable that moves a bar, or None where nobody would see one.

    Parameters
    ----------
    title
        What is going on, shown before the bar.
    quiet
        The user asked for none.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - loaded only for a terminal
    from rich.progress import (  # noqa: PLC0415  # noqa: PLC0415
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
        TextColumn("jobs, day {task.fields[day]:.1f},"),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, day=0.0)

        def advance(done_jobs: int, total_jobs: int, sim_time_s: float) -> None:
            bar.update(task, completed=done_jobs, total=total_jobs, day=sim_time_s / _DAY_S)

        yield advance
