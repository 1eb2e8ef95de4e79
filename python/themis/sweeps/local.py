"""Runs played on this machine, by a pool of processes.

The processes are started afresh and talk over pipes. So nothing is forked; a calling script needs
no ``if __name__ == "__main__"``; a worker that dies takes only its own run with it; and none
outlives the sweep, however that ends. `ProcessPoolExecutor` promises only the first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue

from themis.sweeps.play import ONE_THREAD, Outcome, Task

__all__ = ["play_locally"]


def play_locally(tasks: Sequence[Task], workers: int | None) -> Generator[Outcome]:
    """Give the outcome of every run as it ends, in whatever order.

    Parameters
    ----------
    tasks
        The runs; they are started in this order.
    workers
        How many run at once; None: as many as the machine has processors.
    """
    count = min(workers or os.cpu_count() or 1, len(tasks))
    idle: SimpleQueue[_Worker] = SimpleQueue()
    hired = [_Worker() for _ in range(count)]
    for worker in hired:
        idle.put(worker)

    def play(task: Task) -> Outcome:
        worker = idle.get()
        try:
            return worker.play(task)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(max(count, 1))
    try:
        for ended in as_completed([pool.submit(play, task) for task in tasks]):
            yield ended.result()
    finally:
        for worker in hired:
            worker.dismiss()
        pool.shutdown(cancel_futures=True)
        for worker in hired:
            worker.bury()


class _Worker:
    """A process that plays one run at a time; started when it is needed, again if it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._dismissed = False

    def play(self, task: Task) -> Outcome:
        """Play a run; the death of the process is its failure."""
        if self._process is None:
            self._process = _start()
        if self._dismissed:
            self._process.kill()
        to, back = self._process.stdin, self._process.stdout
        if to is None or back is None:
            raise AssertionError("invariant: both pipes were asked for")
        try:
            to.write(json.dumps(dataclasses.asdict(task)) + "\n")
            to.flush()
            answer = back.readline()
        except BrokenPipeError:
            answer = ""
        if answer:
            return Outcome(task, json.loads(answer)["error"])
        code = self._process.wait()
        self.bury()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return Outcome(task, f"the process that played it {how}")

    def dismiss(self) -> None:
        """Stop the process, in the midst of a run too."""
        self._dismissed = True
        if self._process is not None:
            self._process.kill()

    def bury(self) -> None:
        """Close what is left of a process that has ended."""
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError), self._process:
                pass
        self._process = None


def _start() -> subprocess.Popen[str]:
    environment = {
        **ONE_THREAD,
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "themis.sweeps.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        encoding="utf-8",
        start_new_session=True,  # an interrupt from the terminal reaches the sweep alone
    )
