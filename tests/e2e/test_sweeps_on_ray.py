"""Sweeps on a Ray cluster of two nodes that the test starts, against the local pool."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="needs the extra ray")

Themis = Callable[..., subprocess.CompletedProcess[str]]

NODES = """\
import os, sys
from ray.cluster_utils import Cluster
cluster = Cluster()
for _ in range(2):
    cluster.add_node(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def cluster() -> Iterator[str]:
    """Address of a cluster of two nodes with one processor each."""
    with subprocess.Popen(
        [sys.executable, "-c", NODES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_a_cluster_gives_the_bytes_of_the_local_pool(
    cluster: str, themis: Themis, trace: Path
) -> None:
    flags = (
        *("sweep", "--trace", "jobs.csv", "--cluster", "2x(1x4)", "--seeds", "2"),
        *("--axis", "policy=themis,fifo", "--axis", "workload.window.end_s=-1,5000"),
    )
    local = themis(*flags, "-o", "local")
    remote = themis(*flags, "-o", "remote", "--backend", "ray", RAY_ADDRESS=cluster)
    assert (local.returncode, remote.returncode) == (1, 1), remote.stderr
    assert digests(trace.parent / "local") == digests(trace.parent / "remote")
    assert len(list((trace.parent / "local" / "runs").iterdir())) == 4
    ends = [
        sorted(line for line in process.stderr.splitlines() if "failed: " in line)
        for process in (local, remote)
    ]
    assert len(ends[0]) == 4
    assert ends[0] == ends[1]
    again = themis(*flags, "-o", "remote", "--backend", "ray", RAY_ADDRESS=cluster)
    assert "themis: 4 of 8 runs were played before" in again.stderr
