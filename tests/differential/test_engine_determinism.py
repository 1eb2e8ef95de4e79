"""Same scenario and seed, same bytes: whatever the order of rows, the hash seed, the process."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.differential.small import Job, play, workload

import themis
from themis import simulate
from themis.cluster.cluster import Cluster
from themis.results.result import Result

POLICIES = tuple(policy.name for policy in themis.POLICIES)
CLUSTER = "2x(1x4/2+1x2)"


def jobs() -> list[Job]:
    """Forty jobs of twelve apps, many at equal times, with gangs and elastic ones."""
    draw = random.Random(7)  # noqa: S311 - a fixed workload, no secret
    return [
        Job(
            f"j{k:02d}",
            draw.choice([0, 0, 10, 10, 25, 40, 60]),
            gang := draw.choice([0, 1, 1, 2, 2, 3, 4]),
            draw.choice([5, 20, 20, 45.5, 100]),
            gang + draw.choice([0, 0, 2]) if gang else 0,
            f"a{draw.randrange(12):02d}",
            draw.choice([None, "network", "vgg16"]),
        )
        for k in range(40)
    ]


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def written(result: Result, folder: Path) -> dict[str, str]:
    result.write(folder)
    return digests(folder)


OPTIONS: dict[str, Any] = {
    "lease_s": 10.0,
    "fairness_knob": 0.4,
    "restart_s": 2.0,
    "checkpoint_s": 1.0,
}

CHILD = """
import sys
from pathlib import Path
from tests.differential.test_engine_determinism import CLUSTER, OPTIONS, POLICIES, jobs, play
for policy in POLICIES:
    play(CLUSTER, jobs(), policy, seed=3, **OPTIONS).write(Path(sys.argv[1]) / policy)
"""


@pytest.mark.parametrize("policy", POLICIES)
def test_repeated_runs_and_shuffled_rows(policy: str, tmp_path: Path) -> None:
    first = play(CLUSTER, jobs(), policy, seed=3, **OPTIONS)
    expected = written(first, tmp_path / "first")
    assert len(expected) == 8
    for seed in range(5):
        rows = jobs()
        random.Random(seed).shuffle(rows)  # noqa: S311 - the same
        again = play(CLUSTER, rows, policy, seed=3, **OPTIONS)
        for name, frame in first.frames.items():
            assert again.frames[name].equals(frame)
        assert written(again, tmp_path / f"again{seed}") == expected


def test_other_hash_seeds_and_thread_counts(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    seen = []
    for hash_seed, threads in (("0", "1"), ("1", "2"), ("2", "8"), ("3", "1"), ("4", "3")):
        out = tmp_path / hash_seed
        environment = {
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "POLARS_MAX_THREADS": threads,
            "PYTHONPATH": str(root),
        }
        subprocess.run(
            [sys.executable, "-c", CHILD, str(out)], check=True, cwd=root, env=environment
        )
        seen.append({policy: digests(out / policy) for policy in POLICIES})
    assert [other == seen[0] for other in seen] == [True] * 5
    assert {policy: len(files) for policy, files in seen[0].items()} == dict.fromkeys(POLICIES, 8)


def test_the_seed_matters_to_lotteries_only() -> None:
    def leases(policy: str, seed: int, payment: str = "lottery") -> object:
        options: dict[str, Any] = {
            **OPTIONS,
            "fairness_knob": 0.0,
            "leftover": "worst_first",
            "payment": payment,
        }
        return play(CLUSTER, jobs(), policy, seed=seed, **options).leases.rows()

    assert len({repr(leases("themis", seed)) for seed in range(4)}) > 1
    assert len({repr(leases("themis", seed, "none")) for seed in range(4)}) == 1
    for policy in POLICIES[1:]:
        assert leases(policy, 0) == leases(policy, 1)


def test_seed_zero_is_a_seed_like_any_other() -> None:
    load, cluster = workload(jobs()), Cluster.parse(CLUSTER)
    first, again = (simulate(load, cluster, seed=0).leases for _ in range(2))
    assert first.equals(again)
