"""What reading a trace costs, in each format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.workloads import TRACE_WRITERS

from themis.traces import read_trace

if TYPE_CHECKING:
    from bench.conftest import Meter

PEAK = """
import re, sys
from pathlib import Path
from themis.traces import read_trace
read_trace(sys.argv[1], sys.argv[2])
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
"""Most memory that a process takes that reads a trace and does nothing else, KiB (Linux).

Its ``ru_maxrss`` would be no less than that of the process that started it.
"""

ROWS = (10_000, 20_000, 40_000, 80_000)


@pytest.mark.parametrize("kind", TRACE_WRITERS)
@pytest.mark.parametrize("rows", ROWS)
def test_reading(meter: Meter, tmp_path: Path, kind: str, rows: int) -> None:
    name, write = TRACE_WRITERS[kind]
    path = write(rows, tmp_path)
    workload = meter.time(f"read {kind}", "rows", rows, lambda: read_trace(path, name))
    assert workload.jobs.height == rows
    assert workload.source.format == name
    files = path.iterdir() if path.is_dir() else (path,)
    size = sum(file.stat().st_size for file in files)
    meter.note(bytes=size, mb_a_s=size / 1e3 / meter.benchmark.extra_info.get("cpu_ms", size))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["helios", "acme", "pai"])
@pytest.mark.parametrize("rows", [1_000_000, pytest.param(2_000_000, marks=pytest.mark.larger)])
def test_reading_a_large_log(meter: Meter, tmp_path: Path, kind: str, rows: int) -> None:
    name, write = TRACE_WRITERS[kind]
    path = write(rows, tmp_path)
    workload = meter.time(f"read large {kind}", "rows", rows, lambda: read_trace(path, name))
    assert workload.jobs.height == rows
    command = [sys.executable, "-c", PEAK, str(path), name]
    peak = subprocess.run(command, capture_output=True, check=True, text=True).stdout  # noqa: S603 - ours
    meter.note(peak_mb=int(peak) / 1e3)
