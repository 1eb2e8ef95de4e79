"""Auctions in JSON files: what is read, and what is refused by file, place, value and fix."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from themis import AppState, Bid, ScenarioError
from themis.auction.file import AuctionRequest, read_auction

Read = Callable[[Any], AuctionRequest]

OFFER = [{"rack": 0, "machine": "m0", "slot": 0, "gpus": 4}, ["r1", "m1", 0, 2]]
TABLE = {"app_id": "t", "rho_empty": 9, "rows": [[[1, 0], 2.0], {"counts": [2, 2], "rho": 1}]}
STATE = {
    "app_id": "s", "elapsed_s": 0, "work_left_s": 100, "gang_size": 2, "max_gpus": 4, "t_id_s": 50,
}  # fmt: skip


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reading(document: object) -> AuctionRequest:
        file = tmp_path / "auction.json"
        file.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        return read_auction(file)

    return reading


def test_a_table_a_state_and_rules(read: Read) -> None:
    state = {**STATE, "held": [["r1", "m1", 0, 2]], "profile": [1, 1, 0.5, 0.5], "jobs": 1}
    offer = [{**OFFER[0], "rack": "r0"}, OFFER[1]]  # type: ignore[dict-item]
    request = read({"offer": offer, "bids": [TABLE, state], "payment": "lease", "seed": 3})
    assert request.offer.slots == (("r0", "m0", 0), ("r1", "m1", 0))
    assert request.rules == {"payment": "lease", "seed": 3}
    table, app = request.bids
    assert table == Bid("t", 9, [([1, 0], 2.0), ([2, 2], 1)])
    assert isinstance(app, AppState)
    assert app.held == {("r1", "m1", 0): 2}
    assert request.clear().payment == "lease"


def test_rack_and_slot_may_be_left_out_and_counts_may_name_slots(read: Read) -> None:
    offer = [{"machine": "a", "gpus": 2}, {"machine": "b", "gpus": 1}]
    rows = [{"counts": [{"machine": "b", "gpus": 1}], "rho": 1}]
    state = {**STATE, "held": [1, 1]}
    bids = [{"app_id": "t", "rho_empty": None, "rows": rows}, state]
    request = read({"offer": offer, "bids": bids})
    table, app = request.bids
    assert isinstance(table, Bid)
    assert isinstance(app, AppState)
    assert table.rows == [({(0, "b", 0): 1}, 1)]
    assert app.held == {(0, "a", 0): 1, (0, "b", 0): 1}
    assert request.clear().counts("t") == {(0, "b", 0): 1}


def test_utf_16_is_json_too(read: Read) -> None:
    text = json.dumps({"offer": [[0, 0, 0, 1]], "bids": []})
    assert read(text.encode("utf-16")).offer.gpus == (1,)


def bid(**values: Any) -> dict[str, Any]:  # noqa: ANN401 - wrong on purpose
    return {"offer": [[0, 0, 0, 4]], "bids": [values]}


def rule(**values: Any) -> dict[str, Any]:  # noqa: ANN401 - wrong on purpose
    return {"offer": [[0, 0, 0, 4]], "bids": [], **values}


WRONG: list[tuple[Any, str]] = [
    (b"", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b'{"offer": \xff}', "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"),
    (b'{"offer": [[0, 0, 0, ' + b"1" * 5_000 + b']], "bids": []}', "not valid JSON: .*digits"),
    (b'{"offer": [], "offer": [], "bids": []}', "key 'offer' stands twice in one table"),
    ([], r"the file is \[\]: expected a table"),
    ({"bids": []}, "the file: offer is missing"),
    ({"offer": [[0, 0, 0, 1]]}, "the file: bids is missing"),
    (rule(paymnt="none"), r"key 'paymnt' is unknown \(did you mean 'payment'\?\)"),
    ({"offer": 3, "bids": []}, "offer is 3: expected a list"),
    ({"offer": [], "bids": []}, "offer: no slot"),
    ({"offer": [3], "bids": []}, r"offer\[0\] is 3: expected a table"),
    ({"offer": [[0, 0, 1]], "bids": []}, r"offer\[0\] is \[0, 0, 1\]: expected \[rack, machine"),
    ({"offer": [{"machine": 0}], "bids": []}, r"offer\[0\]: gpus is missing"),
    ({"offer": [{"machine": 0, "gpu": 1}], "bids": []}, r"offer\[0\]: key 'gpu' is unknown"),
    ({"offer": [[0, None, 0, 1]], "bids": []}, r"offer\[0\].machine is None: expected a whole"),
    ({"offer": [[0, 2**70, 0, 1]], "bids": []}, r"offer\[0\].machine is 1180591620717411303424"),
    ({"offer": [[0, 0, 0, "4"]], "bids": []}, "gpus is '4': expected a whole number"),
    ({"offer": [[0, 0, 0, 1], [0, 0, 0, 1]], "bids": []}, "stands twice"),
    ({"offer": [[0, 0, 0, 1]], "bids": {}}, "bids is {}: expected a list"),
    (bid(), r"bids\[0\]: app_id is missing"),
    ({"offer": [[0, 0, 0, 1]], "bids": ["a"]}, r"bids\[0\] is 'a': expected a table"),
    (bid(**STATE, colour=1), r"bids\[0\]: key 'colour' is unknown"),
    (bid(**{**STATE, "gang_size": 0}), r"bids\[0\]: app 's': gang_size is 0: expected a whole"),
    (bid(**{**STATE, "elapsed_s": None}), r"bids\[0\]: app 's': elapsed_s is None"),
    (bid(**STATE, held=3), r"bids\[0\].held is 3: expected a list"),
    (bid(**STATE, held=[1, 1]), r"bids\[0\].held has 2 counts: expected one a slot, 1"),
    (bid(**STATE, held=[[0, 0, 1, 1]] * 2), r"bids\[0\].held\[1\]: slot \(0, 0, 1\) stands twice"),
    (bid(**STATE, held=[[1, 0, 0, 1]]), "app 's': held: machine 0 is in rack 1"),
    (bid(**STATE, profile=["a"] * 4), r"bids\[0\].profile is .*: expected 4 numbers"),
    (bid(**STATE, profile="vgg"), r"bids\[0\]: app 's': profile is 'vgg'"),
    (bid(**TABLE), r"rows\[0\]: 2 counts: expected one a slot of the offer, 1"),
    (bid(app_id="t", rows=[]), r"bids\[0\]: rho_empty is missing"),
    (bid(app_id="t", rho_empty=-1, rows=[]), r"bids\[0\]: bid of app 't': rho_empty is -1"),
    (bid(app_id="t", rho_empty=1, rows=3), r"bids\[0\].rows is 3: expected a list"),
    (bid(app_id="t", rho_empty=1, rows=[[[1]]]), r"rows\[0\] has 1 values: expected counts and"),
    (bid(app_id="t", rho_empty=1, rows=[[[1], 0]]), r"rows\[0\]: rho is 0: expected a number"),
    (bid(app_id="t", rho_empty=1, rows=[[[-1], 1]]), r"rows\[0\]: count at slot .* is -1"),
    (bid(app_id="t", rho_empty=1, rows=[[[True], 1]]), r"rows\[0\]: count at slot .* is True"),
    (bid(app_id="t", rho_empty=1, rows=[["x", 1]]), r"rows\[0\].counts is 'x': expected a list"),
    (bid(app_id="t", rho_empty=1, rows=[[[[0, 7, 0, 1]], 1]]), r"slot \(0, 7, 0\) is not in the"),
    (
        bid(app_id="t", rho_empty=1, rows=[[[[0, 0, 0, 1], [0, 0, 0, 2]], 1]]),
        r"rows\[0\].counts\[1\]: slot \(0, 0, 0\) stands twice",
    ),
    ({"offer": [[0, 0, 0, 1]], "bids": [STATE, STATE]}, r"bids\[1\]: app 's' bids twice"),
    (rule(payment="leese"), r"payment is 'leese' \(did you mean 'lease'\?\): expected one of"),
    (rule(outside_option=1), "outside_option is 1: expected one of min_bundle"),
    (rule(leftover="all"), "leftover is 'all'"),
    (rule(seed=-1), "seed is -1: expected a whole number from 0"),
    (rule(seed=0.5), "seed is 0.5"),
    (rule(fairness_knob=2), "fairness_knob is 2: expected a number from 0 to 1"),
    (rule(fairness_knob=True), "fairness_knob is True"),
    (rule(lease_s=0), "lease_s is 0: expected a number above 0"),
    (rule(lease_s=float("nan")), "lease_s is nan"),
    (rule(cluster_gpus=0), "cluster_gpus is 0: expected a whole number from 1"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=range(len(WRONG)))
def test_what_is_refused(document: object, message: str, read: Read) -> None:
    with pytest.raises(ScenarioError, match=message) as refused:
        read(document)
    assert "auction.json: " in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 450


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"absent\.json: no such file"):
        read_auction(tmp_path / "absent.json")
    with pytest.raises(ScenarioError, match="a directory: expected a file"):
        read_auction(tmp_path)


def test_the_example_of_the_documentation(read: Read) -> None:
    page = (Path(__file__).parents[2] / "docs" / "auction.md").read_text(encoding="utf-8")
    example = page.split("```json\n", 1)[1].split("```", 1)[0]
    outcome = read(example.encode()).clear()
    payments = {row["app_id"]: row for row in outcome.payments.to_dicts()}
    assert {name: row["gpus_won"] for name, row in payments.items()} == {
        "bert": 0,
        "sweep": 4,
        "agent": 2,
    }
    assert payments["sweep"]["c"] == pytest.approx(1.2 / (22_200 / 9_000), rel=1e-9)
    assert payments["sweep"]["lease_fraction"] == payments["sweep"]["c"]
    assert payments["agent"]["c"] == pytest.approx(1.2 * 1.3 / (0.7 * 22_200 / 9_000), rel=1e-9)
    winners = {row["app_id"]: row["rho"] for row in outcome.winners.to_dicts()}
    assert winners == pytest.approx({"sweep": 0.7, "agent": 2.0})
    cut = read({**json.loads(example), "payment": "gpus"}).clear()
    assert cut.payments.filter(app_id="sweep").item(0, "gpus_kept") == 1
    # What was freed goes to bert, who was not charged: with it the gang of four fits.
    assert sum(cut.counts("sweep").values()) == 2
    assert sum(cut.counts("bert").values()) == 4
