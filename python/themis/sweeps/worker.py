"""A worker of a local sweep: a process that plays the runs that it is told on standard input.

A run and its outcome are a line of JSON each. When standard input ends, because the sweep is over,
was interrupted or was killed, the worker stops at once, in the midst of a run too: results are
written beside their place and renamed, so nothing half-written is left in their place.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from queue import SimpleQueue

from themis.sweeps.play import Task, play

__all__ = ["main"]


def main() -> None:
    """Play runs until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    tasks: SimpleQueue[Task] = SimpleQueue()
    threading.Thread(target=_read, args=(tasks,), daemon=True).start()
    while True:
        outcome = play(tasks.get())
        answers.write(json.dumps({"error": outcome.error}) + "\n")
        answers.flush()


def _read(tasks: SimpleQueue[Task]) -> None:
    for line in sys.stdin:
        tasks.put(Task(**json.loads(line)))
    os._exit(0)


if __name__ == "__main__":
    main()
