"""The solvers that are not the default: greedy and its payments, the program and brute force."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.differential.small import Job, play
from tests.differential.small_auctions import random_auction

from themis import AppState, AuctionOutcome, Bid, ScenarioError, clear_auction

if TYPE_CHECKING:
    from tests.differential.conftest import Reference

CLOSE = 1e-9
SEEDS = range(400)


def log_v(rho: float | None) -> float:
    return -1e4 if rho is None else -math.log(rho)


def test_greedy_takes_the_largest_gain_a_gpu_and_may_miss_the_best() -> None:
    """a gains log 4 = 1.39 with one GPU, b log 8 = 2.08 with both: 1.04 a GPU."""
    bids = [Bid("a", 4.0, [((1,), 1.0)]), Bid("b", 8.0, [((2,), 1.0)])]
    greedy = clear_auction({(0, 0, 0): 2}, bids, "none", solver="greedy")
    exact = clear_auction({(0, 0, 0): 2}, bids, "none")
    assert greedy.winners.get_column("app_id").to_list() == ["a"]
    assert exact.winners.get_column("app_id").to_list() == ["b"]
    assert greedy.objective == pytest.approx(-math.log(8))
    assert exact.objective == pytest.approx(-math.log(4))
    # Without a, b gains log 8: c = (1 / 8) / 1.
    assert greedy.payments.get_column("c").to_list() == pytest.approx([1 / 8, 1])
    assert greedy.upper_bound >= exact.objective


def others(outcome: AuctionOutcome, app_id: str) -> float:
    """The sum of log V of all bidders but a winner."""
    rho = dict(outcome.winners.select("app_id", "rho").iter_rows())
    return outcome.objective - log_v(rho[app_id])


@pytest.mark.parametrize("batch", range(4))
def test_greedy_payments_compare_with_greedy_without_the_winner(batch: int) -> None:
    charged = 0
    for seed in SEEDS[batch::4]:
        offer, bids = random_auction(random.Random(seed))  # noqa: S311 - draws an instance
        outcome = clear_auction(offer, bids, "none", solver="greedy")
        assert outcome.solver == "greedy"
        assert outcome.objective <= outcome.upper_bound
        for app_id, c, won in outcome.payments.select("app_id", "c", "gpus_won").iter_rows():
            rest = [bid for bid in bids if bid.app_id != app_id]
            if not won or not rest:
                assert c == 1
                continue
            without = clear_auction(offer, rest, "none", solver="greedy")
            expected = min(1.0, math.exp(others(outcome, app_id) - without.objective))
            assert c == pytest.approx(expected, rel=1e-9), seed
            charged += c < 1
    assert charged > 20


@pytest.mark.parametrize(("solver", "first"), [("greedy", "a"), ("prices", "b")])
def test_a_simulation_runs_on_the_solver_that_it_is_told(solver: str, first: str) -> None:
    """a gains log 2 on one GPU; b, on both, log 3 or more: more in all, less a GPU."""
    jobs = [Job("a", 0.0, 1, 600.0), Job("b", 0.0, 2, 600.0)]
    result = play("1x(1x2)", jobs, "themis", solver=solver, fairness_knob=0.0, payment="none")
    assert result.apps.filter(first_gpu_s=0).get_column("app_id").to_list() == [first]
    assert result.apps.get_column("state").to_list() == ["done", "done"]


@pytest.mark.parametrize("batch", range(6))
def test_the_program_is_the_best_of_all_allocations_and_so_are_its_payments(
    batch: int, reference: Reference
) -> None:
    for seed in range(batch * 50, (batch + 1) * 50):
        offer, bids = random_auction(random.Random(seed))  # noqa: S311 - draws an instance
        outcome = clear_auction(offer, bids, "none", solver="milp")
        assert outcome.objective == pytest.approx(reference.optimum(bids, offer), abs=1e-7), seed
        assert outcome.gap == 0
        for app_id, c, won in outcome.payments.select("app_id", "c", "gpus_won").iter_rows():
            if won and len(bids) > 1:
                without = reference.optimum(bids, offer, skip=app_id)
                expected = min(1.0, math.exp(others(outcome, app_id) - without))
                assert c == pytest.approx(expected, rel=1e-6), seed
            else:
                assert c == 1


def test_only_who_sees_the_offer_wins_in_the_program() -> None:
    bids = [Bid(name, 10.0 + at, [((1,), 1.0)]) for at, name in enumerate("abcd")]
    outcome = clear_auction({(0, 0, 0): 4}, bids, "lease", solver="milp", fairness_knob=0.5)
    assert outcome.winners.get_column("app_id").to_list() == ["c", "d"]
    assert outcome.allocation.filter(cause="leftover").get_column("app_id").len() == 2
    assert outcome.solver == "milp"


def test_an_auction_without_a_useful_bundle_has_no_program() -> None:
    outcome = clear_auction({(0, 0, 0): 1}, [Bid("a", 1.0, [((1,), 2.0)])], solver="milp")
    assert outcome.reasons.get_column("reason").to_list() == ["no_useful_bundle"]


def test_the_program_is_refused_beyond_its_size_and_without_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer = [(0, machine, 0, 8) for machine in range(40)]
    apps = [AppState(f"app{at}", 0, 1e6, 1, 64, 1e4, profile="vgg16") for at in range(20)]
    with pytest.raises(ScenarioError, match=r"solver is 'milp', but there are \d+ bundles"):
        clear_auction(offer, apps, solver="milp")
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ScenarioError, match=r"pip install 'themis-sched\[milp\]'"):
        clear_auction({(0, 0, 0): 1}, [Bid("a", 2.0, [((1,), 1.0)])], solver="milp")


def test_the_program_runs_beside_other_users_of_its_package() -> None:
    """HiGHS lets the first model of a process decide how many threads there are."""
    script = """
import highspy, themis
other = highspy.Highs()
other.setOptionValue("threads", 2)
other.addVar(0, 1)
other.run()
apps = [themis.AppState(name, 5, 40, gang_size=1, max_gpus=2, t_id_s=10) for name in "ab"]
print("objective", themis.clear_auction({(0, 0, 0): 3}, apps, solver="milp").objective)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "objective" in done.stdout
