from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.settings.toml_text import toml_text

TEXT = st.text(st.characters(codec="utf-8"))
SCALARS = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_reading_back_gives_an_equal_document(document: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(document)) == document


def test_none_is_left_out() -> None:
    assert toml_text({"a": None, "b": {"c": None, "d": 1}}) == "[b]\nd = 1\n"


def test_what_toml_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes has no form in TOML"):
        toml_text({"a": b"x"})
