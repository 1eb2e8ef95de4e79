from __future__ import annotations

import pytest

from themis.errors import ScenarioError
from themis.settings.overrides import SETTING_PLACES, apply_overrides, parse_text_value
from themis.settings.settings import Settings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("3", 3),
        ("-2", -2),
        ("true", True),
        ("none", "none"),
        ('"none"', "none"),
        ("critical_path", "critical_path"),
        ("[1, 2]", [1, 2]),
        ("{a = 1}", {"a": 1}),
        ("", ""),
        ("1\nother = 2", "1\nother = 2"),
        ("2020-01-01", "2020-01-01"),
        ("8x(8x8)", "8x(8x8)"),
    ],
)
def test_text_is_read_as_a_toml_value_or_stays_text(text: str, value: object) -> None:
    assert parse_text_value(text) == value
    assert type(parse_text_value(text)) is type(value)


def test_every_setting_has_a_place() -> None:
    assert set(SETTING_PLACES) == set(Settings.model_fields)


def test_bare_and_dotted_keys_reach_the_same_place() -> None:
    bare = apply_overrides({}, [("fairness_knob", "0.5"), ("lease_s", "300"), ("seed", "4")])
    dotted = apply_overrides({}, [("policy.fairness_knob", "0.5"), ("settings.lease_s", "300")])
    assert bare == {**dotted, "seed": 4}
    assert dotted == {"policy": {"fairness_knob": 0.5}, "settings": {"lease_s": 300}}


def test_later_overrides_win_and_the_document_stays_as_it_was() -> None:
    document = {"settings": {"lease_s": 1.0, "restart_s": 2.0}}
    changed = apply_overrides(document, [("lease_s", "5"), ("lease_s", "6")])
    assert changed == {"settings": {"lease_s": 6, "restart_s": 2.0}}
    assert document == {"settings": {"lease_s": 1.0, "restart_s": 2.0}}


def test_none_unsets_what_may_be_unset_and_is_a_payment() -> None:
    document = {"settings": {"horizon_s": 9.0}}
    assert apply_overrides(document, [("horizon_s", "none"), ("payment", "none")]) == {
        "settings": {},
        "policy": {"payment": "none"},
    }


def test_an_unknown_bare_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ScenarioError, match=r"leases: unknown key .did you mean 'lease_s'"):
        apply_overrides({}, [("leases", "1")])


def test_a_place_below_a_value_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"seed.x: seed is 3, expected a table"):
        apply_overrides({"seed": 3}, [("seed.x", "1")])
