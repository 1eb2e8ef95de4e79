"""Errors and lies in bids: who, by how much, and what they change."""

from __future__ import annotations

import numpy as np
import pytest
from tests.differential.small import Job, ends, play

from themis.boundary.claims import claims
from themis.errors import ScenarioError
from themis.settings.settings import Settings

IDS = [f"a{number}" for number in range(40)]


def test_without_errors_and_liars_the_truth_is_told() -> None:
    told = claims(IDS, Settings(), 7)
    assert all((factors == 1).all() for factors in told.columns().values())
    assert not told.liars.any()


def test_errors_are_uniform_one_an_app_and_the_same_on_work_and_slowdown() -> None:
    told = claims([str(k) for k in range(10_000)], Settings(bid_error=0.2), 1)
    assert (told.work == told.slowdown).all()
    assert told.work.min() == pytest.approx(0.8, abs=1e-3)
    assert told.work.max() == pytest.approx(1.2, abs=1e-3)
    assert told.work.mean() == pytest.approx(1, abs=3 * 0.4 / np.sqrt(12 * 10_000))
    assert (claims(IDS, Settings(bid_error=0.2), 1).work != told.work[:40]).sum() == 0
    assert (claims(IDS, Settings(bid_error=0.2), 2).work != told.work[:40]).all()


@pytest.mark.parametrize(("share", "count"), [(0, 0), (0.1, 4), (0.5, 20), (0.51, 20), (1, 40)])
def test_a_share_of_liars_is_rounded_to_whole_apps(share: float, count: int) -> None:
    told = claims(IDS, Settings.parse({"liars": {"share": share}}), 3)
    assert told.liars.sum() == count
    assert ((told.excess != 1) == told.liars).all()


@pytest.mark.parametrize(
    ("term", "work", "excess"), [("slowdown", 1, 1.5), ("speed", 1 / 1.5, 1), ("work", 1.5, 1)]
)
def test_each_term_has_its_factor(term: str, work: float, excess: float) -> None:
    settings = Settings.parse({"liars": {"apps": ["a3"], "term": term, "by": 0.5}})
    told = claims(IDS, settings, 0)
    assert (told.work[3], told.excess[3], told.liars.sum()) == (work, excess, 1)
    assert told.work.sum() + told.excess.sum() == pytest.approx(78 + work + excess)
    assert (claims(IDS, settings, 0, honest=True).columns()["claimed_work"] == 1).all()


@pytest.mark.parametrize(
    ("liars", "words"),
    [
        ({}, "expected either share or apps"),
        ({"share": 0.1, "apps": ["a"]}, "expected either share or apps"),
        ({"share": 1.5}, "must be <= 1"),
        ({"share": 0.1, "by": -1}, "must be > -1"),
        ({"share": 0.1, "term": "rho"}, "expected one of slowdown, speed or work"),
        ({"share": 0.1, "shares": 1}, "did you mean 'share'"),
        ({"apps": "a"}, "expected a list"),
    ],
)
def test_nonsense_about_liars_is_refused(liars: dict[str, object], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        Settings.parse({"liars": liars})


def test_an_unknown_liar_is_named() -> None:
    with pytest.raises(
        ScenarioError, match=r"app 'a3' is not in the workload \(did you mean 'a33'"
    ):
        play("1x1", [Job("a33", 0, 1, 10)], "themis", liars={"apps": ["a3"]})


def test_a_lie_about_work_moves_its_liar_up_the_line() -> None:
    # One GPU. By best case (elapsed + work) / T_ID both are at rho 2 and a, the first, is served;
    # b's lie makes it look worse off. T_ID stays the true one, 2 x 100.
    jobs = [Job("a", 0, 1, 100), Job("b", 0, 1, 100)]
    result = play("1x1", jobs, "max_rho", liars={"apps": ["b"], "term": "work", "by": 0.1})
    assert ends(play("1x1", jobs, "max_rho")) == {"a": 100, "b": 200}
    assert ends(result) == {"a": 200, "b": 100}
    rows = result.apps.select("app_id", "lied", "lie_gain_s").rows()
    assert rows == [("a", False, -100), ("b", True, 100)]
    gains = "liars finished 100 s sooner in the mean, the others -100 s"
    note = f"1 of 2 apps lied (work by +0.1); against the honest run {gains}"
    assert result.manifest["notes"] == [note]


@pytest.mark.parametrize(("policy", "by"), [("slack", 0.1), ("srtf", -0.1), ("srsf", -0.1)])
def test_a_lie_about_work_moves_its_liar_up_other_lines(policy: str, by: float) -> None:
    jobs = [Job("a", 0, 1, 100), Job("b", 0, 1, 100)]
    lie = {"apps": ["b"], "term": "work", "by": by}
    assert ends(play("1x1", jobs, policy)) == {"a": 100, "b": 200}
    assert ends(play("1x1", jobs, policy, liars=lie)) == {"a": 200, "b": 100}


def test_lies_change_bids_and_nothing_else() -> None:
    # Alone, an app gains nothing by lying, and its job runs as it truly does.
    job = [Job("a", 0, 2, 216, profile="vgg16")]
    lie = {"share": 1, "term": "slowdown", "by": 5}
    assert ends(play("2x1", job, "themis", liars=lie)) == ends(play("2x1", job, "themis"))
    assert ends(play("2x1", job, "themis", bid_error=0.5)) == {"a": 150}


def test_policies_that_take_no_bids_are_not_moved() -> None:
    jobs = [Job("a", 0, 1, 100), Job("b", 0, 1, 100), Job("c", 5, 1, 40)]
    for policy in ("fifo", "fifo_backfill", "tiresias", "drf", "static", "fsp"):
        lied = play("1x2", jobs, policy, liars={"share": 1, "term": "work"}, bid_error=0.3)
        assert lied.apps["lie_gain_s"].to_list() == [0, 0, 0]
        assert ends(lied) == ends(play("1x2", jobs, policy))
