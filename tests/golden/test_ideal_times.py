"""rho, T_ID and N_avg by hand from the definitions, through whole simulations."""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.small import Job, play

from themis.results.result import Result

MIX = [
    Job("a1", 0, 1, 40, app="a"),
    Job("a2", 0, 1, 10, app="a"),
    Job("b1", 0, 2, 80, app="b"),
]
"""On four GPUs all run at once; a and b both end at 40 s, so that N_avg is 2."""


def figures(result: Result) -> dict[str, Any]:
    """Return (n_avg, t_id_s, rho, rho_floor) by app."""
    rows = result.apps.select("app_id", "n_avg", "t_id_s", "rho", "rho_floor").iter_rows()
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize(
    ("reading", "a", "b"),
    [
        # a: 50 / min(4, 2) x 2 = 50. b: 80 / 2 x 2 = 80. Both take 40, alone too.
        ("paper", (2, 50, 0.8, 0.8), (2, 80, 0.5, 0.5)),
        # a: its longest job alone takes 40, x 2. b: as before.
        ("critical_path", (2, 80, 0.5, 0.5), (2, 80, 0.5, 0.5)),
        # Half of 4 GPUs: a max(50 / 2, 40), b 80 / 2.
        ("demand_capped", (2, 40, 1.0, 1.0), (2, 40, 1.0, 1.0)),
    ],
)
def test_the_three_readings(
    reading: str,
    a: tuple[float, float, float, float],
    b: tuple[float, float, float, float],
) -> None:
    found = figures(play("1x4", MIX, "fifo", t_id=reading))
    assert found["a"] == pytest.approx(a)
    assert found["b"] == pytest.approx(b)


@pytest.mark.parametrize(
    ("reading", "t_id_s"), [("paper", 1000), ("critical_path", 1000), ("demand_capped", 100)]
)
def test_a_demand_below_the_fair_share(reading: str, t_id_s: float) -> None:
    # 64 GPUs, ten apps of 4 GPUs for 100 s: alone 100 s, times ten active apps in the paper's
    # reading; a tenth of the cluster is 6.4 GPUs, more than an app can use.
    jobs = [Job(f"j{k}", 0, 4, 400) for k in range(10)]
    for n_avg, ideal, rho, floor in figures(play("8x8", jobs, "fifo", t_id=reading)).values():
        assert (n_avg, ideal) == (10, pytest.approx(t_id_s))
        assert (rho, floor) == (pytest.approx(100 / t_id_s), pytest.approx(100 / t_id_s))


@pytest.mark.parametrize("reading", ["paper", "critical_path", "demand_capped"])
def test_an_app_that_its_first_job_ends(reading: str) -> None:
    # a1 needs 40, a2 10: the ideal is the shorter one's.
    jobs = [Job("a1", 0, 2, 80, app="a"), Job("a2", 0, 2, 20, app="a")]
    found = figures(play("1x4", jobs, "fifo", first=["a"], t_id=reading))
    assert found["a"] == pytest.approx((1, 10, 1, 1))


def test_n_avg_is_weighted_by_time() -> None:
    # One GPU, leases of 10: a runs 0-10 and 20-30, b 10-20 and 30-60.
    # a lives for 30 s beside b: 2. b: (30 x 2 + 30 x 1) / 60 = 1.5.
    # T_ID: a 20 x 2 = 40, b 40 x 1.5 = 60. Floors: 20 / 40 and 40 / 60.
    jobs = [Job("a", 0, 1, 20), Job("b", 0, 1, 40)]
    found = figures(play("1x1", jobs, "max_rho", lease_s=10.0))
    assert found["a"] == pytest.approx((2, 40, 0.75, 0.5))
    assert found["b"] == pytest.approx((1.5, 60, 1.0, 40 / 60))


def test_n_avg_counts_from_arrival_to_the_end_of_the_work_for_gpus() -> None:
    # b arrives at 10, waits for a until 20 and ends at 30: a (10 + 2 x 10) / 20, b 30 / 20.
    # cpu is never active; z has no work: neither has rho.
    jobs = [Job("a", 0, 1, 20), Job("b", 10, 1, 10), Job("cpu", 0, 0, 100), Job("z", 5, 1, 0)]
    result = play("1x1", jobs, "fifo")
    found = figures(result)
    assert found["a"] == pytest.approx((1.5, 30, 20 / 30, 20 / 30))
    assert found["b"] == pytest.approx((1.5, 15, 20 / 15, 10 / 15))
    assert (found["cpu"], found["z"]) == ((None,) * 4, (None,) * 4)
    reasons = dict(result.apps.select("app_id", "reason").iter_rows())
    assert reasons["cpu"] == reasons["z"] == "no work for GPUs: rho is undefined"


def test_slowdown_counts_in_rho_and_in_its_floor() -> None:
    # Three GPUs of two machines at 0.72: 216 / 2.16 = 100 s, alone too. T_ID = 216 / 3 = 72.
    found = figures(play("2x2", [Job("a", 0, 3, 216, profile="vgg16")], "fifo"))
    assert found["a"] == pytest.approx((1, 72, 100 / 72, 100 / 72))


def test_an_unfinished_app_counts_the_rest_as_if_it_were_alone() -> None:
    # At 10, a has done 20 of 80: 10 + 60 / 2 = 40 over T_ID 40.
    row = play("1x2", [Job("a", 0, 2, 80)], "fifo", horizon_s=10.0).apps.to_dicts()[0]
    assert (row["state"], row["rho_is_bound"], row["end_s"]) == ("unfinished", True, None)
    assert (row["t_sh_s"], row["t_id_s"], row["rho"]) == pytest.approx((40, 40, 1))


def test_work_that_is_submitted_after_the_horizon_counts_on_both_sides() -> None:
    # At 50, a1 has done 50 of 100; a2 (1000) comes at 500: (50 + 50 + 1000) / (100 + 1000) = 1.
    # The app ends at 1500: 1500 / 1100 in the end. With a2 on one side only it would be 11.
    jobs = [Job("a1", 0, 1, 100, app="a"), Job("a2", 500, 1, 1000, app="a")]
    cut = play("1x1", jobs, "fifo", horizon_s=50.0).apps.to_dicts()[0]
    whole = play("1x1", jobs, "fifo").apps.to_dicts()[0]
    assert whole["rho"] == pytest.approx(1500 / 1100)
    assert (cut["rho"], cut["rho_is_bound"]) == (pytest.approx(1), True)
