"""Auctions worked out by hand."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from themis import AppState, AuctionOutcome, Bid, ScenarioError, clear_auction
from themis.auction.clearing import Payment
from themis.auction.offer import Offer
from themis.auction.slots import SlotKey

ONE_MACHINE: dict[SlotKey, int] = {(0, 0, 0): 4}


def app(app_id: str, **more: Any) -> AppState:  # noqa: ANN401 - any field
    """100 s of work, 1 to 4 GPUs that feel no distance, T_ID 50 s: rho is 2 / GPUs."""
    values = {"elapsed_s": 0, "work_left_s": 100, "gang_size": 1, "max_gpus": 4, "t_id_s": 50}
    return AppState(app_id, **{**values, "profile": [1, 1, 1, 1], **more})


def column(outcome: AuctionOutcome, name: str) -> dict[str, Any]:
    return dict(outcome.payments.select("app_id", name).iter_rows())


def reasons(outcome: AuctionOutcome) -> dict[str, str]:
    return dict(outcome.reasons.select("app_id", "reason").iter_rows())


def test_two_equal_apps_share_one_machine() -> None:
    outcome = clear_auction(ONE_MACHINE, [app("a"), app("b")], "none")
    assert column(outcome, "gpus_won") == {"a": 2, "b": 2}
    # rho = 100 / 2 / 50 = 1 each: log V = 0. Nothing: a 600 s lease and one GPU: 700 / 50.
    assert outcome.objective == pytest.approx(0)
    assert outcome.upper_bound == pytest.approx(0)
    for figures in outcome.winners.select("rho_empty", "rho").iter_rows():
        assert figures == pytest.approx((14, 1))
    # Without a, b has 4 GPUs and V = 2 in place of 1.
    assert column(outcome, "c") == pytest.approx({"a": 0.5, "b": 0.5})


@pytest.mark.parametrize(
    ("payment", "kept", "lease_fraction", "granted"),
    [
        ("none", (2, 2), 1, (2, 2)),
        ("lease", (2, 2), 0.5, (2, 2)),
        # floor(0.5 x 2) = 1 each; the 2 that are freed go to who is first among those that paid.
        ("gpus", (1, 1), 1, (3, 1)),
        ("gpus_random", (1, 1), 1, (3, 1)),
    ],
)
def test_the_same_auction_under_each_payment(
    payment: Payment, kept: tuple[int, int], lease_fraction: float, granted: tuple[int, int]
) -> None:
    outcome = clear_auction(ONE_MACHINE, [app("a"), app("b")], payment, seed=0)
    assert tuple(column(outcome, "gpus_kept").values()) == kept
    assert list(column(outcome, "lease_fraction").values()) == pytest.approx([lease_fraction] * 2)
    assert tuple(sum(outcome.counts(name).values()) for name in "ab") == granted


def test_the_same_auction_under_the_lottery() -> None:
    seen = set()
    for seed in range(40):
        outcome = clear_auction(ONE_MACHINE, [app("a"), app("b")], "lottery", seed)
        kept = tuple(column(outcome, "gpus_kept").values())
        seen.add(kept)
        # Who won the lottery is first in line for what the other lost.
        expected = {(2, 2): (2, 2), (0, 2): (0, 4), (2, 0): (4, 0), (0, 0): (4, 0)}[kept]
        assert tuple(sum(outcome.counts(name).values()) for name in "ab") == expected
    assert seen == {(0, 0), (0, 2), (2, 0), (2, 2)}


def test_placement_decides_who_wins_which_machine() -> None:
    offer: dict[SlotKey, int] = {(0, 0, 0): 2, (0, 1, 0): 1}
    tight = app("tight", gang_size=2, max_gpus=2, profile=[1, 1, 0.25, 0.25])
    outcome = clear_auction(offer, [app("loose", max_gpus=1), tight], "none")
    assert outcome.counts("tight") == {(0, 0, 0): 2}
    assert outcome.counts("loose") == {(0, 1, 0): 1}
    bids = outcome.bids.filter(app_id="tight").select("gpus", "locality", "rho").rows()
    # Both GPUs in one machine: 1; in two machines: S = 4.
    assert bids == [(2, "cluster", 4.0), (2, "machine", 1.0)]
    assert outcome.objective == pytest.approx(math.log(1 / 2))


def test_who_would_be_left_with_an_unbounded_rho_goes_first() -> None:
    bids = [Bid("poor", None, [([1], 100)]), Bid("rich", 2, [([1], 0.01)])]
    outcome = clear_auction({(0, 0, 0): 1}, bids, "none")
    assert reasons(outcome) == {"poor": "won", "rich": "outbid"}
    # rich has V = 1/2 with poor, and 100 without it.
    assert column(outcome, "c") == pytest.approx({"poor": 0.005, "rich": 1})
    assert outcome.objective == pytest.approx(-math.log(100) - math.log(2))
    assert outcome.winners.get_column("rho_empty").to_list() == [None]


def test_a_gap_with_unserved_unbounded_apps_is_infinite_and_null_in_json() -> None:
    apps = [
        app(name, gang_size=gang, max_gpus=gang)
        for name, gang in zip("abc", (3, 2, 2), strict=True)
    ]
    outcome = clear_auction({(0, 0, 0): 5}, apps, "none", outside_option="unbounded")
    assert outcome.gap == math.inf
    assert json.loads(json.dumps(outcome.to_dict(), allow_nan=False))["gap"] is None


def test_ties_fewest_gpus_then_row_then_app_id() -> None:
    fewest = clear_auction({(0, 0, 0): 2}, [Bid("a", 9, [([2], 1), ([1], 1)])], "none")
    assert column(fewest, "gpus_won") == {"a": 1}
    two_slots: dict[SlotKey, int] = {(0, 0, 0): 1, (0, 0, 1): 1}
    row = clear_auction(two_slots, [Bid("a", 9, [([0, 1], 1), ([1, 0], 1)])], "none")
    assert row.counts("a") == {(0, 0, 1): 1}
    bids = [Bid(name, 9, [([1], 1)]) for name in ("b", "a", "c")]
    by_id = clear_auction({(0, 0, 0): 1}, bids, "none")
    assert reasons(by_id) == {"a": "won", "b": "outbid", "c": "outbid"}


def test_two_bidders_and_the_papers_payment() -> None:
    """V of (first machine, second machine); the best product is 0.5 x 0.8."""
    first = Bid("first", 1e6, [([1, 0], 1 / 0.5), ([0, 1], 1 / 0.5), ([1, 1], 1)])
    second = Bid("second", 1e6, [([1, 0], 1 / 0.2), ([0, 1], 1 / 0.8), ([1, 1], 1 / 0.9)])
    outcome = clear_auction({(0, 0, 0): 1, (0, 1, 0): 1}, [second, first], "none")
    assert outcome.counts("first") == {(0, 0, 0): 1}
    assert outcome.counts("second") == {(0, 1, 0): 1}
    assert outcome.objective == pytest.approx(math.log(0.5 * 0.8))
    assert column(outcome, "c") == pytest.approx({"first": 0.8 / 0.9, "second": 0.5 / 1})


@pytest.mark.parametrize(("knob", "visible"), [(0, 4), (0.5, 2), (0.7, 2), (0.8, 1), (1, 1)])
def test_only_the_worst_off_bid(knob: float, visible: int) -> None:
    apps = [app(name, elapsed_s=1_000 * k, max_gpus=1) for k, name in enumerate("abcd")]
    outcome = clear_auction({(0, 0, 0): 4}, apps, "none", fairness_knob=knob)
    saw = outcome.bids.get_column("app_id").unique().sort().to_list()
    assert saw == list("abcd")[4 - visible :]
    # The others share what is left.
    assert outcome.allocation.get_column("gpus").sum() == 4
    assert set(reasons(outcome).values()) <= {"won", "leftover"}


def test_nobody_gets_less_than_its_gang() -> None:
    outcome = clear_auction({(0, 0, 0): 3}, [app("a", gang_size=4)], "none")
    assert reasons(outcome) == {"a": "no_useful_bundle"}
    assert outcome.leftovers.rows() == [(0, 0, 0, 3)]
    assert "4 GPUs or more" in outcome.reasons.get_column("explanation")[0]


def test_held_gpus_draw_new_ones_near() -> None:
    offer: dict[SlotKey, int] = {(0, 0, 0): 2, (0, 1, 0): 2}
    held = app("a", held={(0, 1, 0): 2}, profile=[1, 1, 0.25, 0.25])
    outcome = clear_auction(offer, [held], "none")
    assert outcome.counts("a") == {(0, 1, 0): 2}
    assert outcome.winners.select("rho_empty", "rho").row(0) == pytest.approx((1, 0.5))


def test_what_lies_too_far_from_held_gpus_is_not_bid_for() -> None:
    held = app("a", held={(0, 1, 0): 2}, profile=[1, 1, 0.25, 0.25])
    outcome = clear_auction({(0, 0, 0): 2}, [held], "none")
    assert reasons(outcome) == {"a": "no_useful_bundle"}
    assert "speed up what it holds" in outcome.reasons.get_column("explanation")[0]


def test_held_gpus_below_the_gang_are_completed() -> None:
    held = app("a", gang_size=4, max_gpus=8, held={(0, 0, 0): 2})
    outcome = clear_auction({(0, 0, 0): 2}, [held], "none")
    # With 4 GPUs: 25 s. Nothing: a lease, then a gang of 4: not unbounded.
    assert outcome.winners.select("rho_empty", "rho").row(0) == pytest.approx((12.5, 0.5))
    assert outcome.gap == pytest.approx(0)


def test_who_holds_all_it_can_use_wants_nothing() -> None:
    for jobs in (1, 2, 4):
        full = app("a", held={(0, 0, 0): 4}, jobs=jobs)
        outcome = clear_auction({(0, 0, 0): 4}, [full], "none")
        assert outcome.leftovers.rows() == [(0, 0, 0, 4)]
        assert "all the GPUs that it can use" in outcome.reasons.get_column("explanation")[0]


def test_a_search_of_two_jobs() -> None:
    search = app("a", jobs=2, gang_size=2)
    outcome = clear_auction({(0, 0, 0): 2, (1, 1, 0): 3}, [search], "none")
    assert sum(outcome.counts("a").values()) == 4
    # 50 GPU-s each at 2 GPUs: 25 s.
    assert outcome.winners.get_column("rho").to_list() == pytest.approx([0.5])


def test_what_a_payment_frees_goes_first_to_who_paid_nothing() -> None:
    """a wins both GPUs (log 2 against log 1/0.9), and pays c = 0.9; b gets what that frees."""
    a = Bid("a", 1e6, [([1], 0.1), ([2], 0.05)])
    b = Bid("b", 1e-3, [([1], 0.9e-3)])
    outcome = clear_auction({(0, 0, 0): 2}, [a, b], "gpus")
    assert column(outcome, "gpus_won") == {"a": 2, "b": 0}
    assert column(outcome, "c") == pytest.approx({"a": 0.9, "b": 1})
    assert column(outcome, "gpus_kept") == {"a": 1, "b": 0}
    assert reasons(outcome) == {"a": "won", "b": "leftover"}
    rounds = (clear_auction({(0, 0, 0): 2}, [a, b], "lottery", seed) for seed in range(200))
    lost = next(cleared for cleared in rounds if not column(cleared, "gpus_kept")["a"])
    assert (sum(lost.counts("a").values()), sum(lost.counts("b").values())) == (1, 1)
    assert reasons(lost) == {"a": "leftover", "b": "leftover"}


def test_under_no_payment_nobody_is_said_to_pay() -> None:
    outcome = clear_auction(ONE_MACHINE, [app("a"), app("b")], "none")
    assert "no payment is charged" in outcome.reasons.get_column("explanation")[0]


def test_no_bids_and_no_gpus() -> None:
    nobody = clear_auction(ONE_MACHINE, [])
    assert (nobody.objective, nobody.gap) == (0, 0)
    assert math.copysign(1, nobody.objective) == 1
    assert nobody.leftovers.rows() == [(0, 0, 0, 4)]
    nothing = clear_auction({(0, 0, 0): 0}, [app("a")])
    assert reasons(nothing) == {"a": "no_useful_bundle"}


def test_offers_as_frames_rows_and_mappings_are_one() -> None:
    rows = [("r", "m1", 0, 2), ("r", "m2", 0, 2)]
    offer = Offer.of(rows)
    expected = clear_auction(rows, [app("a"), app("b")]).to_dict()
    mapping: dict[SlotKey, int] = {(r, m, s): n for r, m, s, n in rows}
    columns = pl.DataFrame(rows, schema=["rack", "machine", "slot", "gpus"], orient="row")
    for same in (offer, mapping, columns):
        assert clear_auction(same, [app("b"), app("a")]).to_dict() == expected
    with pytest.raises(ScenarioError, match="column 'slot' is missing"):
        clear_auction(columns.drop("slot"), [])


RULES = [
    ("payment", "leese", r"payment is 'leese' \(did you mean 'lease'\?\): expected one of lottery"),
    ("payment", None, "payment is None"),
    ("outside_option", "worst", "outside_option is 'worst'"),
    ("leftover", 3, "leftover is 3"),
    ("seed", -1, "seed is -1: expected a whole number from 0"),
    ("seed", 2**64, "seed is 18446744073709551616"),
    ("seed", 1.5, "seed is 1.5"),
    ("seed", True, "seed is True"),
    ("fairness_knob", 1.1, "fairness_knob is 1.1: expected a number from 0 to 1"),
    ("fairness_knob", math.nan, "fairness_knob is nan"),
    ("fairness_knob", "x", "fairness_knob is 'x'"),
    ("lease_s", 0, "lease_s is 0: expected a number above 0"),
    ("lease_s", math.inf, "lease_s is inf"),
    ("lease_s", 10**400, "lease_s is 1000"),
    ("cluster_gpus", 0, "cluster_gpus is 0: expected a whole number from 1"),
    ("cluster_gpus", 2.0, "cluster_gpus is 2.0"),
    ("cluster_gpus", 2**40, "cluster_gpus is 1099511627776"),
]


@pytest.mark.parametrize(("rule", "value", "message"), RULES)
def test_rules_out_of_range(rule: str, value: object, message: str) -> None:
    wrong: dict[str, Any] = {rule: value}
    with pytest.raises(ScenarioError, match=message):
        clear_auction(ONE_MACHINE, [app("a")], **wrong)


def test_bids_that_do_not_fit_together() -> None:
    wrong: Any
    with pytest.raises(ScenarioError, match=r"bids\[1\]: app 'a' bids twice"):
        clear_auction(ONE_MACHINE, [app("a"), Bid("a", 1, [])])
    for wrong, message in (
        (None, "bids is None: expected a list"),
        ("ab", "bids is 'ab'"),
        ([{"app_id": "a"}], r"bids\[0\] is {'app_id': 'a'}: expected a Bid or an AppState"),
    ):
        with pytest.raises(ScenarioError, match=message):
            clear_auction(ONE_MACHINE, wrong)
    with pytest.raises(ScenarioError, match="app 'a': held: machine 0 is in rack 1"):
        clear_auction(ONE_MACHINE, [app("a", held={(1, 0, 0): 1})])


ROWS: list[tuple[Any, str]] = [
    ([1, 1], r"rows\[0\]: 2 counts: expected one a slot of the offer, 1"),
    ([-1], r"count at slot \(0, 0, 0\) is -1: expected a whole number from 0"),
    ([True], "is True"),
    ([1.0], "is 1.0"),
    ([2**40], "is 1099511627776"),
    ({(9, 9, 9): 1}, r"slot \(9, 9, 9\) is not in the offer"),
    (5, "counts are 5"),
    ("1", "counts are '1'"),
]


@pytest.mark.parametrize(("counts", "message"), ROWS)
def test_rows_that_do_not_fit_the_offer(counts: Any, message: str) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(ScenarioError, match=message):
        clear_auction(ONE_MACHINE, [Bid("a", 9, [(counts, 1.0)])])


def test_more_than_is_on_offer_loses_and_is_explained() -> None:
    outcome = clear_auction(ONE_MACHINE, [Bid("a", 9, [([5], 1)])])
    assert reasons(outcome) == {"a": "no_useful_bundle"}


def test_an_outcome_in_one_line() -> None:
    outcome = clear_auction(ONE_MACHINE, [app("a"), replace(app("b"), max_gpus=1)], "none")
    assert repr(outcome).startswith("AuctionOutcome(2 apps, 2 winners, 4 GPUs granted, 0 left over")


FRAMES = ("allocation", "payments", "leftovers", "bids", "winners", "reasons")


def test_frames_are_made_when_first_read_and_stay() -> None:
    held: dict[SlotKey, int] = {(5, 5, 0): 1}
    everything = Bid("b", None, [([4], 1.0)])
    outcome = clear_auction(ONE_MACHINE, [app("a", held=held), everything], "none")
    sent = pickle.loads(pickle.dumps(outcome))  # noqa: S301 - our own
    held[5, 5, 0] = 4  # from now on it holds all that it can use
    assert not vars(outcome).keys() & set(FRAMES)
    for name in FRAMES:
        frame = getattr(outcome, name)
        assert frame.equals(getattr(sent, name))
        assert getattr(outcome, name) is frame
    assert reasons(outcome) == {"a": "outbid", "b": "won"}
    assert "outbid" in dict(outcome.reasons.select("app_id", "explanation").iter_rows())["a"]
    assert vars(outcome).keys() >= set(FRAMES)
