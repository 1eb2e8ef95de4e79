"""`themis auction`: every bid and its fate, as a table and as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Themis = Callable[..., subprocess.CompletedProcess[str]]

REQUEST = {
    "offer": [[0, 0, 0, 4], [0, 1, 0, 4], [1, 2, 0, 2]],
    "fairness_knob": 0.0,
    "payment": "none",
    "bids": [
        {
            "app_id": "ann",
            "elapsed_s": 100,
            "work_left_s": 4000,
            "gang_size": 2,
            "max_gpus": 4,
            "t_id_s": 1000,
        },
        {
            "app_id": "big",
            "elapsed_s": 500,
            "work_left_s": 2000,
            "gang_size": 16,
            "max_gpus": 16,
            "t_id_s": 800,
        },
        {"app_id": "table", "rho_empty": 5.0, "rows": [[[4, 0, 0], 1.0], [[0, 0, 2], 2.0]]},
    ],
}


@pytest.fixture
def auction(tmp_path: Path) -> Path:
    path = tmp_path / "auction.json"
    path.write_text(json.dumps(REQUEST), encoding="utf-8")
    return path


def cleared(themis: Themis, *flags: str) -> str:
    done = themis("auction", "auction.json", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.usefixtures("auction")
def test_every_app_is_shown_with_its_bids_and_its_fate(themis: Themis) -> None:
    bids, fates, figures = cleared(themis).split("\n\n")
    assert bids.startswith("bids\napp")
    assert "row 0" in bids
    head, names, *lines = fates.splitlines()
    assert head == "outcome: 10 GPUs on offer, payment none, solver prices"
    assert names.split() == ["app", "bids", "won", "c", "charged", "kept", "left", "over", "why"]
    by_app = {line.split()[0]: line for line in lines}
    assert set(by_app) == {"ann", "big", "table"}
    assert "needs 16 GPUs or more" in by_app["big"]
    assert [line.split(":")[0] for line in figures.splitlines()] == [
        "left unused",
        "objective",
        "upper bound",
        "gap",
    ]


@pytest.mark.usefixtures("auction")
def test_json_is_the_outcome_and_flags_override_the_file(themis: Themis) -> None:
    outcome = json.loads(cleared(themis, "--json", "--payment", "lease", "--seed", "3"))
    assert outcome["payment"] == "lease"
    assert {row["app_id"] for row in outcome["reasons"]} == {"ann", "big", "table"}
    assert outcome["upper_bound"] >= outcome["objective"]
    won = sum(row["gpus"] for row in outcome["allocation"])
    assert won + sum(row["gpus"] for row in outcome["leftovers"]) == 10


@pytest.mark.parametrize("payment", ["lottery", "lease", "gpus", "gpus_random", "none"])
@pytest.mark.usefixtures("auction")
def test_a_seed_decides_every_payment(payment: str, themis: Themis) -> None:
    flags = ("--payment", payment, "--seed", "5", "--json")
    assert cleared(themis, *flags) == cleared(themis, *flags)


def test_order_of_bids_and_slots_changes_nothing(themis: Themis, auction: Path) -> None:
    first = json.loads(cleared(themis, "--json"))
    turned = {**REQUEST, "bids": REQUEST["bids"][::-1]}  # type: ignore[index]
    auction.write_text(json.dumps(turned), encoding="utf-8")
    second = json.loads(cleared(themis, "--json"))
    by_app = [
        sorted(outcome["payments"], key=lambda row: row["app_id"]) for outcome in (first, second)
    ]
    assert by_app[0] == by_app[1]
    assert first["objective"] == second["objective"]
