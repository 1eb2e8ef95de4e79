from __future__ import annotations

import pickle

import pytest

from themis.errors import ScenarioError, ThemisError
from themis.settings.presets import PRESETS
from themis.settings.settings import Settings

DEFAULTS = {
    "fairness_knob": 0.8,
    "solver": "prices",
    "payment": "lottery",
    "outside_option": "min_bundle",
    "filter_key": "best_case",
    "leftover": "holders_first",
    "t_id": "paper",
    "min_lease_s": 60.0,
    "lease_s": 600.0,
    "lease_mode": "aligned",
    "restart_s": 35.0,
    "checkpoint_s": 8.0,
    "checkpoint_every_s": 1800.0,
    "reserve_after_s": None,
    "mtbf_s": None,
    "mttr_s": 3600.0,
    "quarantine_after": None,
    "quarantine_s": 86400.0,
    "phase_cap": "doubling",
    "curve_step": 0.05,
    "curve_error": 0.01,
    "request_factor": 2.0,
    "horizon_s": None,
    "bid_error": 0.0,
    "liars": None,
    "preset": None,
}


def test_defaults_are_the_documented_ones() -> None:
    assert Settings().model_dump() == DEFAULTS


def test_every_setting_has_a_description() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_names_in_seconds_say_so() -> None:
    in_seconds = {name for name, field in Settings.model_fields.items()
                  if "in seconds" in str(field.description)}  # fmt: skip
    assert in_seconds == {name for name in DEFAULTS if name.endswith("_s")}


def test_a_whole_number_is_taken_where_a_fraction_is_meant() -> None:
    settings = Settings.parse({"fairness_knob": 1, "lease_s": 300})
    assert settings.fairness_knob == 1.0
    assert isinstance(settings.fairness_knob, float)
    assert settings == Settings(fairness_knob=1.0, lease_s=300.0)


@pytest.mark.parametrize("payment", ["lottery", "lease", "gpus", "gpus_random", "none"])
def test_every_payment_is_taken(payment: str) -> None:
    assert Settings.parse({"payment": payment}).payment == payment


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("fairness_knob", -0.1, "must be >= 0"),
        ("fairness_knob", 1.5, "must be <= 1"),
        ("fairness_knob", "0.5", "expected a number"),
        ("fairness_knob", True, "expected a number"),
        ("fairness_knob", float("nan"), "expected a finite number"),
        ("fairness_knob", float("inf"), "expected a finite number"),
        ("fairness_knob", None, "expected a number"),
        ("solver", "exact", "expected one of prices or greedy"),
        ("solver", "milp", "clears single auctions only: expected one of prices or greedy"),
        ("payment", "free", "expected one of lottery, lease, gpus, gpus_random or none"),
        ("payment", None, "expected one of"),
        ("outside_option", "nothing", "expected one of min_bundle, fair_share, cached"),
        ("filter_key", 3, "expected one of best_case, holdings or cached"),
        ("leftover", "all", "expected one of random, holders_first or worst_first"),
        ("t_id", "id", "expected one of paper, critical_path or demand_capped"),
        ("lease_mode", "Aligned", "expected one of aligned or rolling"),
        ("lease_s", 0, "must be >= 0.001"),
        ("lease_s", -4.0, "must be >= 0.001"),
        ("lease_s", float("inf"), "expected a finite number"),
        ("min_lease_s", 0.5, "must be >= 1"),
        ("restart_s", -1, "must be >= 0"),
        ("checkpoint_s", "8 s", "expected a number"),
        ("horizon_s", 0, "must be > 0"),
        ("bid_error", -0.2, "must be >= 0"),
        ("bid_error", 1, "must be < 1"),
        ("liars", 0.4, "expected a table"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(
    key: str, value: object, expected: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        Settings.parse({key: value})
    message = str(caught.value)
    assert message.startswith(f"{key} = {value!r}: ")
    assert expected in message


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("fairnes_knob", "fairness_knob"), ("lease", "lease_s"), ("tid", "t_id"), ("LEASE_S", None)],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(
    key: str, nearest: str | None
) -> None:
    with pytest.raises(ScenarioError, match=f"^{key}: unknown key") as caught:
        Settings.parse({key: 1})
    if nearest is not None:
        assert str(caught.value).endswith(f" (did you mean {nearest!r}?)")
    else:
        assert "known keys: " in str(caught.value)


def test_a_preset_lies_under_the_settings_beside_it() -> None:
    paper = Settings.parse({"preset": "nsdi20"})
    changed = {name for name, value in paper.model_dump().items() if value != DEFAULTS[name]}
    others = {"payment", "outside_option", "filter_key", "leftover", "lease_mode"}
    assert changed == {"preset"} | others
    assert (paper.payment, paper.lease_mode) == ("none", "rolling")
    other = Settings.parse({"payment": "lottery", "preset": "nsdi20"})
    assert other.model_dump() == {**paper.model_dump(), "payment": "lottery"}
    assert Settings.parse(paper.model_dump()) == paper


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_names_known_settings_and_values(preset: str) -> None:
    settings = Settings.parse({"preset": preset}).model_dump()
    assert {name: settings[name] for name in PRESETS[preset]} == PRESETS[preset]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nsdi2O", "unknown preset (did you mean 'nsdi20'?): expected one of nsdi20"),
        ("", "unknown preset: expected one of nsdi20"),
        (20, "expected text"),
    ],
)
def test_an_unknown_preset_is_refused_with_the_nearest_one(value: object, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Settings.parse({"preset": value})
    assert str(caught.value) == f"preset = {value!r}: {message}"


def test_all_errors_are_listed_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        Settings.parse({"lease_s": -1, "payment": "x", "leas": 2})
    head, *lines = str(caught.value).splitlines()
    assert head == "3 errors"
    assert [line.split()[0].rstrip(":") for line in lines] == ["lease_s", "payment", "leas"]


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().lease_s = 3.0  # type: ignore[misc]


def test_the_error_is_a_themis_error_and_pickles() -> None:
    with pytest.raises(ThemisError) as caught:
        Settings.parse({"lease_s": -1})
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (type(again), str(again)) == (ScenarioError, str(caught.value))
