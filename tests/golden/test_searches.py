"""Searches over jobs, computed by hand: halving, performance curves, fixed budgets, caps.

Times are seconds. Losses are flat unless a case says more: (a, b, c) = (0, 1, c) is 1 + c for ever.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.small import Job, Search, play, spans

from themis.results.result import Result

HALVING = Search("successive_halving")
SLOWER = ("fifo", "tiresias", "max_rho", "themis")


def flat(level: float) -> tuple[float, float, float]:
    """Return a loss curve that stays at 1 + level."""
    return (0.0, 1.0, level)


def search(
    count: int, work: float, *, most: int = 1, iterations: float | None = None, app: str = "a"
) -> list[Job]:
    """Return equal jobs of which the later ones are better."""
    return [
        Job(
            f"{app}{number}",
            0,
            1,
            work,
            most,
            app,
            iterations=iterations or 105.0,  # cut whole in 3, 7 and 15
            loss=flat(float(count - number)),
        )
        for number in range(count)
    ]


def work(result: Result) -> dict[str, float]:
    """Return the GPU-seconds of work done by job."""
    return dict(result.jobs.select("job_id", "work_gpu_s").iter_rows())


def states(result: Result) -> dict[str, str]:
    """Return the final state by job."""
    return dict(result.jobs.select("job_id", "state").iter_rows())


@pytest.mark.parametrize(
    ("gpus", "end_s"), [(1, 10_000), (2, 5_000), (4, 2_500), (8, 1_250), (16, 850)]
)
def test_the_papers_worked_example(gpus: int, end_s: float) -> None:
    """Section 4.3.3: phases of 4, 2, 1 jobs with work 3200, 3200, 3600; cap 8; B = 10,000.

    Jobs of 6000 GPU-s in 30 iterations of 200 are cut at 4, 12 and 30 of them: 800, 1600, 3600.
    T_ID = 10,000 / min(R_C, 32) x N_avg; with R_C = 16 and N_avg = 4, 2500 s. Here N_avg is 1.
    """
    jobs = search(4, 6000, most=8, iterations=30.0)
    result = play(f"1x{gpus}", jobs, "themis", searches={"a": HALVING}, phase_cap="fixed")
    row = result.apps.to_dicts()[0]
    assert (row["end_s"], row["t_id_s"]) == (end_s, 10_000 / gpus)
    rho = row["t_sh_s"] / (10_000 / 16 * 4)
    assert rho == pytest.approx({1: 4, 2: 2, 4: 1, 8: 0.5, 16: 0.34}[gpus], abs=1e-12)
    assert work(result) == {"a0": 800, "a1": 800, "a2": 2400, "a3": 6000}


@pytest.mark.parametrize("policy", SLOWER)
@pytest.mark.parametrize(
    ("count", "left"),
    [
        # Cuts of 7, 3 and 15 units; the best jobs are the last ones.
        (1, {"a0": 1}),
        (2, {"a0": 1, "a1": 3}),
        (4, {"a0": 1, "a1": 1, "a2": 3, "a3": 7}),
        (7, {"a0": 1, "a1": 1, "a2": 1, "a3": 3, "a4": 3, "a5": 7, "a6": 15}),
    ],
)
def test_halving_keeps_the_better_half(policy: str, count: int, left: dict[str, float]) -> None:
    whole = max(left.values())
    result = play("1x8", search(count, whole), policy, searches={"a": HALVING}, phase_cap="fixed")
    assert work(result) == pytest.approx(left)
    dropped = {job: "killed" for job in left if left[job] < whole}
    assert states(result) == {**dict.fromkeys(left, "done"), **dropped}
    # GPUs for all: every phase takes as long as one of its jobs.
    assert result.apps["end_s"].to_list() == [pytest.approx(whole)]
    best = f"a{count - 1}"
    assert spans(result)[best] == pytest.approx((0, whole))


def test_caps_double_with_the_phases() -> None:
    # 1 + 2 + 4 = 7 units of 100 s: 100 on one GPU, 200 on two, 400 on four.
    result = play("1x4", search(4, 700), "themis", searches={"a": HALVING})
    ends = {job: end for job, (_, end) in spans(result).items()}
    assert ends == {"a0": 100, "a1": 100, "a2": 200, "a3": 300}
    assert result.apps.select("t_id_s", "rho", "rho_floor").row(0) == pytest.approx((300, 1, 1))


def test_fewer_gpus_than_jobs_run_in_turn() -> None:
    # One GPU: four jobs of 100 in turn, then two of 200, then one of 400.
    jobs = search(4, 700)
    result = play("1x1", jobs, "themis", searches={"a": HALVING}, phase_cap="fixed")
    assert spans(result) == {"a0": (0, 400), "a1": (100, 400), "a2": (200, 800), "a3": (300, 1200)}


def test_brackets_halve_beside_one_another() -> None:
    # HyperBand: four jobs of 700 (100 + 200 + 400) and, in the second bracket, two of 600
    # (200 + 400). With GPUs for all: 100, 100 + 200, 700; 200, 600. B: 400 + 400 + 400 and
    # 400 + 400; both brackets' first phases together are 800, then 800, then 400.
    first = [job._replace(bracket=1) for job in search(4, 700)]
    second = [job._replace(job_id=f"b{k}", bracket=2) for k, job in enumerate(search(2, 600))]
    result = play("1x8", [*first, *second], "themis", searches={"a": HALVING}, phase_cap="fixed")
    ends = {job: end for job, (_, end) in spans(result).items()}
    assert ends == {"a0": 100, "a1": 100, "a2": 300, "a3": 700, "b0": 200, "b1": 600}
    assert result.apps["t_id_s"].to_list() == [pytest.approx(2000 / 6)]
    assert result.apps["rho_floor"].to_list() == [pytest.approx(700 / (2000 / 6))]


def test_unknown_losses_go_by_order() -> None:
    jobs = [Job(f"a{k}", 0, 1, 300, 1, "a") for k in range(2)]
    result = play("1x2", jobs, "themis", searches={"a": HALVING}, phase_cap="fixed")
    assert spans(result) == {"a0": (0, 300), "a1": (0, 100)}
    reasons = dict(result.jobs.select("job_id", "reason").iter_rows())
    assert reasons["a1"] == "rank 2 of 2 (by number, loss unknown) after phase 1 of 2"


def test_a_phase_that_ends_during_a_lease_passes_its_gpus_on() -> None:
    # Two GPUs, leases of 1000. Phase 1: both jobs to 100. a1 (better) goes on without a switch,
    # with both GPUs from then on, which is one: 10 s. It has 200 left: 10 + 200 / 2.
    jobs = search(2, 300)
    costs: dict[str, Any] = {"lease_s": 1000.0, "restart_s": 10.0, "checkpoint_s": 0.0}
    result = play("1x2", jobs, "tiresias", searches={"a": HALVING}, **costs)
    assert spans(result) == {"a0": (0, 100), "a1": (0, 210)}
    assert result.apps["switching_gpu_s"].to_list() == [20]
    fixed = play("1x2", jobs, "tiresias", searches={"a": HALVING}, phase_cap="fixed", **costs)
    assert spans(fixed) == {"a0": (0, 100), "a1": (0, 300)}
    assert fixed.apps["switching_gpu_s"].to_list() == [0]


def test_a_kill_and_the_end_of_a_lease_at_one_instant() -> None:
    # Leases of 100. At 100 the phase ends, a0 is killed, and all leases end: b, who has had
    # nothing, takes one GPU (tiresias), a1 keeps the other.
    jobs = [*search(2, 300), Job("b", 50, 1, 100)]
    result = play(
        "1x2", jobs, "tiresias", searches={"a": HALVING}, phase_cap="fixed", lease_s=100.0
    )
    assert spans(result) == {"a0": (0, 100), "a1": (0, 300), "b": (100, 200)}
    ended = result.leases.filter(app_id="a", end_s=100.0).get_column("ended_by").to_list()
    assert "job_end" in ended


def test_fixed_budgets_are_all_spent() -> None:
    jobs = search(3, 100)
    result = play("1x1", jobs, "themis", searches={"a": Search("fixed")})
    assert states(result) == dict.fromkeys(("a0", "a1", "a2"), "done")
    assert result.apps["end_s"].to_list() == [300]


def test_a_cap_on_the_app_holds() -> None:
    # Four jobs of 2 GPUs, 8 GPUs, at most 5 for the app: two at a time.
    jobs = [Job(f"a{k}", 0, 2, 200, 2, "a") for k in range(4)]
    for policy in SLOWER:
        result = play("1x8", jobs, policy, searches={"a": Search("all", max_gpus=5)})
        assert sorted(span for span in spans(result).values()) == [(0, 100)] * 2 + [(100, 200)] * 2
        assert result.usage["gpus_used"].max() == 4
        # 800 GPU-s on min(8, 8, 5) GPUs.
        assert result.apps["t_id_s"].to_list() == [160]


def test_the_first_app_at_its_cap_does_not_hold_up_fifo() -> None:
    jobs = [Job("a0", 0, 2, 200, 2, "a"), Job("a1", 0, 2, 200, 2, "a"), Job("b", 1, 2, 20)]
    result = play("1x4", jobs, "fifo", searches={"a": Search("all", max_gpus=2)})
    assert spans(result) == {"a0": (0, 100), "a1": (100, 200), "b": (1, 11)}


CURVES = [
    # Loss at the last of 100 iterations: 0.2 + 1 / 11 and 3.2 + 1 / 11.
    Job("good", 0, 1, 1000, 1, "a", iterations=100.0, loss=(0.1, 1.0, 0.2)),
    Job("poor", 0, 1, 1000, 1, "a", iterations=100.0, loss=(0.1, 1.0, 3.2)),
]


def test_a_poor_curve_is_killed_as_soon_as_a_forecast_can_tell() -> None:
    # Looks every 5 %; four losses are seen at 0, 5, 10 and 15 % of the work: 150 s.
    result = play("1x2", CURVES, "themis", searches={"a": Search("performance_curve")})
    assert states(result) == {"good": "done", "poor": "killed"}
    assert spans(result) == {"good": (0, 1000), "poor": (0, 150)}
    assert work(result) == {"good": 1000, "poor": 150}
    assert result.apps.select("t_id_s", "rho_floor").row(0) == pytest.approx((1000, 1))


def test_like_curves_are_not_killed() -> None:
    twins = [CURVES[0], CURVES[0]._replace(job_id="twin")]
    result = play("1x2", twins, "themis", searches={"a": Search("performance_curve")})
    assert set(states(result).values()) == {"done"}


def test_a_target_ends_the_app() -> None:
    # 1 / (0.1 k + 1) + 0.2 = 0.45 after 30 iterations: 300 s, seen at the look of 30 %.
    goal = {"a": Search("performance_curve", target_loss=0.45)}
    result = play("1x2", CURVES, "themis", searches=goal)
    assert states(result) == {"good": "done", "poor": "killed"}
    assert work(result)["good"] == pytest.approx(300)
    assert result.apps["end_s"].to_list() == [pytest.approx(300)]
