"""Jobs whose GPUs do less the more they are, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from tests.differential.small import FREE_SWITCHES, Job, spans, workload

import themis
from themis import Cluster
from themis.policies.catalogue import POLICIES
from themis.results.result import Result

# 2 GPUs do 1.8 a second, 4 do 3, 8 do 4.
CURVE: Mapping[str, Any] = {
    "p": {"scores": [1, 1, 1, 1], "scaling": {2: 0.9, 4: 0.75, 8: 0.5}},
    "flat": {"scores": [1, 1, 1, 1]},
}
ALL_POLICIES = tuple(info.name for info in POLICIES)


def run(jobs: list[Job], cluster: str, policy: str = "themis") -> Result:
    result = themis.simulate(
        workload(jobs),
        Cluster.parse(cluster),
        policy=policy,
        profiles=CURVE,
        audit=True,
        **FREE_SWITCHES,
    )
    report = themis.audit(result)
    assert report.passed, report.to_text()
    return result


def app(result: Result, name: str) -> dict[str, Any]:
    return result.apps.row(by_predicate=pl.col("app_id") == name, named=True)


@pytest.mark.parametrize("policy", [name for name in ALL_POLICIES if name != "static"])
@pytest.mark.parametrize(
    ("gpus", "seconds"), [(1, 360), (2, 200), (3, 150), (4, 120), (6, 360 / 3.5), (8, 90)]
)
def test_an_elastic_job_alone(policy: str, gpus: int, seconds: float) -> None:
    result = run([Job("x", 0, 1, 360, max_gpus=8, profile="p")], f"1x{gpus}", policy)
    assert spans(result)["x"][1] == pytest.approx(seconds, abs=1e-5)


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_the_gang_is_the_unit_so_that_rigid_jobs_keep_their_durations(policy: str) -> None:
    jobs = [Job("x", 0, 4, 400, profile="p"), Job("y", 0, 4, 400, profile="flat")]
    result = run(jobs, "2x4", policy)
    assert spans(result) == {"x": (0, 100), "y": (0, 100)}


def test_beyond_its_gang_a_job_is_slower_by_the_ratio_of_efficiencies() -> None:
    # In units of a gang of 2: 4 GPUs do 2 x 3 / 1.8 a second.
    result = run([Job("x", 0, 2, 400, max_gpus=4, profile="p")], "1x4")
    assert spans(result)["x"][1] == pytest.approx(120, abs=1e-5)


def test_gpu_time_that_scaling_loses_is_slowed_but_well_placed() -> None:
    # 4 GPUs for 120 s, 360 GPU-s of it useful.
    x = app(run([Job("x", 0, 1, 360, max_gpus=4, profile="p")], "1x4"), "x")
    assert (x["gpu_s"], x["useful_gpu_s"], x["placement_score"]) == (
        pytest.approx(480, abs=1e-4),
        pytest.approx(360, abs=1e-4),
        1,
    )
    assert x["slowed_gpu_s"] == pytest.approx(120, abs=1e-4)


def test_ideal_times_know_what_all_gpus_of_an_app_do_together() -> None:
    # Alone on 16 GPUs x can use 8, which do 4 a second: T_ID = 360 / 4 = T_SH.
    x = app(run([Job("x", 0, 1, 360, max_gpus=8, profile="p")], "1x16"), "x")
    assert (x["t_id_s"], x["rho"], x["rho_floor"]) == (pytest.approx(90), *[pytest.approx(1)] * 2)


def test_an_auction_gives_gpus_to_whom_they_help_more() -> None:
    offer = [("r", "m", "s", 8)]
    states = [
        themis.AppState(
            name,
            elapsed_s=0,
            work_left_s=3600,
            gang_size=1,
            max_gpus=8,
            t_id_s=900,
            profile=[1, 1, 1, 1],
            scaling=scaling,
        )
        for name, scaling in (("x", {2: 0.6, 8: 0.3}), ("y", {}))
    ]
    outcome = themis.clear_auction(offer, states, payment="none")
    got = dict(outcome.allocation.group_by("app_id").agg(pl.col("gpus").sum()).iter_rows())
    # x: 3600 / pace(n) with pace(2) = 1.2, 8: 2.4. The largest product of paces by hand:
    pace = [0, 1, *(1.2 + 0.2 * n for n in range(7))]
    best = max(range(1, 8), key=lambda n: pace[n] * (8 - n))
    assert got == {"x": best, "y": 8 - best}
