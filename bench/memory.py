"""Memory of whole runs, a process each, at sizes that double (Linux with glibc).

    python bench/memory.py                                  up to 250,000 jobs under fifo and themis
    python bench/memory.py --jobs 1000000 --policy fifo     one size

`engine` is what resident memory grows by at most while the core plays, by job: beside the workload,
which the core holds already. `peak` is that of the process, with Python, workload and result.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
JOBS = (31_250, 62_500, 125_000, 250_000)
GPUS = 16_384
CLUSTER = "32x(64x8)"
GIVEN_BACK = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}
"""So that polars keeps nothing that it freed: it would be given back while the core plays."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=JOBS)
    parser.add_argument("--policy", nargs="+", default=("fifo", "themis"))
    parser.add_argument("--measure", action="store_true", help="one run in this process")
    chosen = parser.parse_args()
    if chosen.measure:
        say(json.dumps(measure(chosen.policy[0], chosen.jobs[0])))
        return
    say("policy        jobs  engine, bytes a job  peak, MiB  bytes a job in all  CPU, s")
    for policy in chosen.policy:
        for jobs in chosen.jobs:
            found = in_a_process(policy, jobs, {})
            peak, cpu_s = found["peak"], found["cpu_s"]
            engine = in_a_process(policy, jobs, GIVEN_BACK)["engine"]
            a_job = f"{engine / jobs:>19.0f}  {peak / 2**20:>9.0f}  {peak / jobs:>18.0f}"
            say(f"{policy:<8} {jobs:>9,}  {a_job}  {cpu_s:>6.1f}")


def in_a_process(policy: str, jobs: int, environment: dict[str, str]) -> dict[str, float]:
    """Return what :func:`measure` finds in a process of its own."""
    command = [sys.executable, __file__, "--measure", "--policy", policy, "--jobs", str(jobs)]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)  # noqa: S603 - ours
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(policy: str, jobs: int) -> dict[str, float]:
    """Return peak bytes of this process, bytes added while the core plays, and CPU seconds."""
    sys.path.insert(0, str(HERE.parent))
    from bench.workloads import philly_like  # noqa: PLC0415 - found from here on

    from themis import Cluster, _core, simulate  # noqa: PLC0415 - the parent needs none of it

    workload = philly_like(jobs, GPUS)
    play, grown = _core.simulate, []
    peaks = [resident("VmHWM")]

    def watched(*arguments: object) -> object:
        peaks.append(resident("VmHWM"))
        if "_RJEM_MALLOC_CONF" in os.environ:  # for `engine`; the peak is that of a run as it is
            ctypes.CDLL(None).malloc_trim(
                0
            )  # what others freed would hide as much of what is taken
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
        before = resident("VmRSS")
        log = play(*arguments)  # type: ignore[arg-type]
        grown.append(resident("VmHWM") - before)
        return log

    _core.simulate = watched  # type: ignore[assignment]
    began_s = time.process_time()
    simulate(workload, Cluster.parse(CLUSTER), policy=policy)
    cpu_s = time.process_time() - began_s
    return {"peak": max(*peaks, resident("VmHWM")), "engine": grown[0], "cpu_s": cpu_s}


def resident(what: str) -> int:
    """Return bytes of this process: `VmRSS` now, `VmHWM` at most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"{what}:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
