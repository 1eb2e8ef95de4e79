"""What it costs to cross into the compiled core and back, and to start."""

from __future__ import annotations

import resource
import subprocess
import sys
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
from bench.workloads import philly_like

from themis import _core
from themis.boundary.claims import claims
from themis.boundary.columns import CoreColumns, workload_columns
from themis.boundary.event_log import result_frames
from themis.cluster.cluster import Cluster
from themis.settings.settings import Settings
from themis.simulation.simulate import simulate

if TYPE_CHECKING:
    from bench.conftest import Meter

SIZES = (10_000, 20_000, 40_000, 80_000)
GPUS = 256
STARTS = {
    "python -c pass": ["-c", "pass"],
    "import themis": ["-c", "import themis"],
    "import themis.simulation.simulate": ["-c", "import themis.simulation.simulate"],
    "themis --help": ["-m", "themis", "--help"],
    "themis run --help": ["-m", "themis", "run", "--help"],
}


def cluster() -> Cluster:
    return Cluster.uniform(machines=GPUS // 8, gpus_per_machine=8, racks=GPUS // 64)


@pytest.mark.parametrize("jobs", SIZES)
def test_into_the_core(meter: Meter, jobs: int) -> None:
    workload = philly_like(jobs, GPUS)
    there = cluster()
    apps = workload.apps.get_column("app_id").to_list()

    def cross() -> tuple[CoreColumns, _core.Workload]:
        columns = workload_columns(workload, there, {}, claims(apps, Settings(), 0))
        return columns, columns.core()

    columns, core = meter.time("workload into the core", "jobs", jobs, cross, rounds=5)
    assert core.jobs == jobs
    arrays = [*columns.apps.values(), *columns.jobs.values(), columns.slowdowns]
    meter.note(bytes_a_job=sum(array.nbytes for array in arrays) / jobs)


@pytest.mark.parametrize("jobs", SIZES)
def test_out_of_the_core(meter: Meter, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    workload = philly_like(jobs, GPUS)
    there = cluster()
    logs: list[dict[str, object]] = []
    play = _core.simulate

    def keep(*arguments: object) -> dict[str, object]:
        logs.append(play(*arguments))  # type: ignore[arg-type]
        return deepcopy(logs[-1])  # which tables are taken out of

    monkeypatch.setattr(_core, "simulate", keep)
    whole = simulate(workload, there, policy="fifo")
    apps = workload.apps.get_column("app_id").to_list()
    speeds = workload_columns(workload, there, {}, claims(apps, Settings(), 0)).speeds
    frames = meter.time(
        "event log into frames",
        "jobs",
        jobs,
        lambda: result_frames(deepcopy(logs[0]), workload, there, speeds),
        rounds=5,
    )
    assert frames["jobs"].get_column("end_s").equals(whole.jobs.get_column("end_s"))
    meter.note(leases=whole.leases.height, usage=whole.usage.height)


def test_settings(meter: Meter) -> None:
    settings = meter.time("check settings", "calls", 1, lambda: Settings.parse({"lease_s": 300}))
    assert settings.lease_s == 300


def children_cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@pytest.mark.benchmark(timer=children_cpu_s)
@pytest.mark.parametrize("what", STARTS)
def test_starting(meter: Meter, what: str) -> None:
    def start() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, *STARTS[what]], check=True, capture_output=True
        )

    done = meter.time(f"start: {what}", "processes", 1, start, rounds=5)
    assert done.stderr == b""
