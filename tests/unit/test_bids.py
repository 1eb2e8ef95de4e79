"""Offers, bids and app states refuse what makes no sense, one clear message each."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from themis import AppState, Bid, ScenarioError
from themis.auction.offer import Offer

STATE = {"elapsed_s": 0, "work_left_s": 100, "gang_size": 2, "max_gpus": 4, "t_id_s": 50}
HUGE = 10**400
LONE = "\ud800"  # half a character: no text that UTF-8 can write

WRONG_STATES: list[tuple[str, Any, str]] = [
    ("app_id", "", "app_id is '': expected text"),
    ("app_id", 3, "app_id is 3: expected text"),
    ("app_id", LONE, "app_id is .*: expected a whole number or Unicode text"),
    ("elapsed_s", -1, "app 'a': elapsed_s is -1: expected a number at least 0"),
    ("elapsed_s", math.nan, "elapsed_s is nan"),
    ("elapsed_s", math.inf, "elapsed_s is inf"),
    ("elapsed_s", True, "elapsed_s is True"),
    ("elapsed_s", "1", "elapsed_s is '1'"),
    ("work_left_s", 0, "app 'a': work_left_s is 0: expected a number above 0"),
    ("work_left_s", HUGE, "work_left_s is 1000.*: expected a number above 0"),
    ("t_id_s", 0, "app 'a': t_id_s is 0: expected a number above 0"),
    ("t_id_s", None, "t_id_s is None"),
    ("n_avg", 0.5, "app 'a': n_avg is 0.5: expected a number at least 1"),
    ("gang_size", 0, "app 'a': gang_size is 0: expected a whole number from 1"),
    ("gang_size", 2.0, "gang_size is 2.0: expected a whole number"),
    ("gang_size", HUGE, "gang_size is 1000"),
    ("max_gpus", 1, r"app 'a': max_gpus is 1: expected at least gang_size x jobs \(2\)"),
    ("max_gpus", 2**25, "max_gpus is 33554432: expected a whole number from 1 to 16777216"),
    ("jobs", 0, "app 'a': jobs is 0: expected a whole number from 1"),
    ("jobs", 3, r"max_gpus is 4: expected at least gang_size x jobs \(6\)"),
    ("jobs", 2**20, "jobs is 1048576: expected a whole number from 1 to 65536"),
    ("held", [1], r"app 'a': held is \[1\]: expected {slot: GPUs}"),
    ("held", {"abc": 1}, r"held: slot is 'abc': expected \(rack, machine, slot\)"),
    ("held", {(0, 0): 1}, r"held: slot is \(0, 0\): expected \(rack, machine, slot\)"),
    ("held", {(0, 1.5, 0): 1}, "held: machine is 1.5: expected a whole number or Unicode text"),
    ("held", {(0, 0, 0): -1}, r"held at \(0, 0, 0\) is -1: expected a whole number from 0"),
    ("held", {(0, 0, 0): 3, (0, 0, 1): 2}, r"held is 5 GPUs: expected at most max_gpus \(4\)"),
    ("mixes_types", 1, "app 'a': mixes_types is 1: expected true or false"),
    ("profile", "vgg61", r"profile is 'vgg61' \(did you mean 'vgg1.'\?\): expected 4 scores or"),
    ("profile", 5, "app 'a': profile is 5: expected a name or 4 scores"),
    ("profile", [1, 1, 1], "profile 'a' has 3 scores: expected 4 scores"),
    ("profile", [1, 1, 0.5, 0.7], "score at cluster is 0.7: expected 4 scores"),
    ("profile", ["a"] * 4, r"profile\[0\] is 'a': expected a number in \(0, 1\]"),
    ("profile", [1, 1, 0, 0], r"profile\[2\] is 0: expected a number in \(0, 1\]"),
    ("profile", [math.nan] * 4, r"profile\[0\] is nan"),
]


@pytest.mark.parametrize(("field", "value", "message"), WRONG_STATES)
def test_wrong_app_states(field: str, value: object, message: str) -> None:
    values: dict[str, Any] = {"app_id": "a", **STATE, field: value}
    with pytest.raises(ScenarioError, match=message):
        AppState(**values)


WRONG_BIDS: list[tuple[str, Any, str]] = [
    ("app_id", None, "app_id is None: expected text"),
    ("rho_empty", 0, "bid of app 'a': rho_empty is 0: expected a number above 0"),
    ("rho_empty", math.nan, "rho_empty is nan"),
    ("rho_empty", "1", "rho_empty is '1'"),
    ("rho_empty", HUGE, "rho_empty is 1000"),
    ("rows", 5, "bid of app 'a': rows is 5: expected a list"),
    ("rows", "ab", "rows is 'ab': expected a list"),
    ("rows", [[1]], r"bid of app 'a': rows\[0\] is \[1\]: expected \(counts, rho\)"),
    ("rows", [([1], 1), "ab"], r"rows\[1\] is 'ab': expected \(counts, rho\)"),
    ("rows", [([1], -2)], r"rows\[0\]: rho is -2: expected a number above 0"),
    ("rows", [([1], None)], r"rows\[0\]: rho is None"),
    ("rows", [([1], math.nan)], r"rows\[0\]: rho is nan"),
]


@pytest.mark.parametrize(("field", "value", "message"), WRONG_BIDS)
def test_wrong_bids(field: str, value: object, message: str) -> None:
    values: dict[str, Any] = {"app_id": "a", "rho_empty": 9.0, "rows": [], field: value}
    with pytest.raises(ScenarioError, match=message):
        Bid(**values)


WRONG_OFFERS: list[tuple[Any, str]] = [
    (None, "offer is None: expected slots and their free GPUs"),
    ("abc", "offer is 'abc'"),
    ([], "offer: no slot: expected one or more"),
    ({}, "offer: no slot"),
    ([1], r"offer\[0\] is \(1,\): expected rack, machine, slot, GPUs"),
    ([(0, 0, 0)], r"offer\[0\] is \(0, 0, 0\): expected rack, machine, slot, GPUs"),
    ({"m": 1}, r"offer\[0\] is \('m', 1\)"),
    ([(0, None, 0, 1)], r"offer\[0\]: machine is None: expected a whole number or Unicode text"),
    ([(True, 0, 0, 1)], r"offer\[0\]: rack is True"),
    ([(0, 2**70, 0, 1)], r"offer\[0\]: machine is 1180591620717411303424"),
    ([(0, 0, LONE, 1)], r"offer\[0\]: slot is "),
    ([(0, 0, 0, -1)], r"slot \(0, 0, 0\): gpus is -1: expected a whole number from 0 to 65536"),
    ([(0, 0, 0, 1.0)], "gpus is 1.0"),
    ([(0, 0, 0, "2")], "gpus is '2'"),
    ([(0, 0, 0, 2**17)], "gpus is 131072"),
    ([(0, 0, 0, 1), (0, 0, 0, 2)], r"slot \(0, 0, 0\) stands twice: expected each once"),
    ([(0, 5, 0, 1), (1, 5, 1, 1)], "offer: machine 5 is in rack 1, and in rack 0 elsewhere"),
    ([(0, 5, 0, 1), (0, "5", 1, 1)], "offer: labels 5 and '5' read the same"),
    ([(0, 0, 0, 2**16), (0, 0, 1, 1)], "machine 0 has 65537 GPUs: expected at most 65536"),
    ([(0, m, 0, 2**16) for m in range(257)], "offer: 16842752 GPUs: expected at most 16777216"),
]


@pytest.mark.parametrize(("slots", "message"), WRONG_OFFERS, ids=range(len(WRONG_OFFERS)))
def test_wrong_offers(slots: Any, message: str) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(ScenarioError, match=message):
        Offer.of(slots)


def test_slots_and_counts_belong_together() -> None:
    with pytest.raises(ScenarioError, match="offer: 1 slots, but 2 counts"):
        Offer(((0, 0, 0),), (1, 2))


def test_what_is_fine_stays_as_given() -> None:
    offer = Offer.of({("r", 1, 0): 2, ("r", 1, 1): 0})
    assert (offer.slots, offer.gpus) == ((("r", 1, 0), ("r", 1, 1)), (2, 0))
    assert offer.wanted([1, 0], "row") == [(("r", 1, 0), 1)]
    assert offer.wanted({("r", 1, 1): 3}, "row") == [(("r", 1, 1), 3)]
    values: dict[str, Any] = {**STATE, "held": {(0, 0, 0): 4}, "profile": (1, 1, 0.5, 0.25)}
    state = AppState("a", **values)
    assert state.slowdowns() == (1, 1, 2, 4)
    assert AppState("a", **{**values, "profile": "cold_start"}).slowdowns() == (1, 1, 1.1, 1.3)
    for kept in (offer, state, Bid("a", math.inf, [((1, 0), 0.5)])):
        assert pickle.loads(pickle.dumps(kept)) == kept  # noqa: S301 - made above


def test_a_large_offer_is_read_at_once() -> None:
    """16,384 slots: quadratic checks would take minutes."""
    offer = Offer.of({(m // 64, m, s): 4 for m in range(8_192) for s in (0, 1)})
    assert offer.wanted({(127, 8_191, 1): 4}, "row") == [((127, 8_191, 1), 4)]
