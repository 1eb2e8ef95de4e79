"""Single values laid over a scenario: what ``--set key=value`` means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import get_args

from themis.errors import ScenarioError
from themis.files.documents import toml_tables
from themis.settings.settings import PolicySettings, RunSettings, Settings
from themis.settings.validation import unknown_key

__all__ = [
    "SETTING_PLACES",
    "apply_overrides",
    "apply_values",
    "parse_text_value",
    "place_of",
    "under",
]

SETTING_PLACES: Mapping[str, str] = {
    **{key: f"policy.{key}" for key in PolicySettings.model_fields},
    **{key: f"settings.{key}" for key in RunSettings.model_fields},
    "preset": "preset",
}
"""Each setting's bare name and its dotted place in a scenario."""

_PLAIN = (bool, int, float, str, list, dict)
_SHORT_FLOAT = re.compile(r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?")


def parse_text_value(text: str) -> object:
    """Return what ``text`` means as a TOML value, or the bare text where it is none.

    ``0.5`` and ``.5`` are numbers, ``true`` a boolean, ``[1, 2]`` a list, ``none`` and ``"none"``
    text.
    """
    if _SHORT_FLOAT.fullmatch(text):
        return float(text)
    try:
        document = toml_tables(f"value = {text}")
    except ValueError:
        return text
    value = document["value"]
    return value if len(document) == 1 and isinstance(value, _PLAIN) else text


def apply_overrides(
    document: Mapping[str, object], assignments: Iterable[tuple[str, str]]
) -> dict[str, object]:
    """Return a copy of a scenario's ``document`` with each (key, text) laid over it.

    A key is a setting's bare name or a dotted place (``policy.fairness_knob``,
    ``workload.load``). ``none`` takes back a setting that may be unset. Later ones win.

    Raises
    ------
    ScenarioError
        A bare key is no setting, or a dotted place leads through something that is no table.
    """
    return apply_values(document, ((key, parse_text_value(text)) for key, text in assignments))


def apply_values(
    document: Mapping[str, object], assignments: Iterable[tuple[str, object]]
) -> dict[str, object]:
    """Return a copy of a scenario's ``document`` with each (key, value) laid over it.

    As :func:`apply_overrides`, of values that are typed already.

    Raises
    ------
    ScenarioError
        A bare key is no setting, or a dotted place leads through something that is no table.
    """
    changed = _copied(document)
    for key, value in assignments:
        *tables, last = place_of(key).split(".")
        table = changed
        for depth, name in enumerate(tables, start=1):
            inner = table.setdefault(name, {})
            if not isinstance(inner, dict):
                place = ".".join(tables[:depth])
                raise ScenarioError(f"{key}: {place} is {inner!r}, expected a table")
            table = inner
        if value == "none" and _may_be_unset(last):
            table.pop(last, None)
        else:
            table[last] = value
    return changed


def under(document: Mapping[str, object], settings: Mapping[str, object]) -> dict[str, object]:
    """Return a copy of a scenario's ``document`` with ``settings`` where it says nothing of them.

    What is no table is left as it is.
    """
    changed = _copied(document)
    for key, value in settings.items():
        table, name = SETTING_PLACES[key].split(".")
        inner = changed.setdefault(table, {})
        if isinstance(inner, dict):
            inner.setdefault(name, value)
    return changed


def place_of(key: str, also: Mapping[str, str] | None = None) -> str:
    """Return the dotted place that a key means: a place itself, a setting's bare name, or seed.

    Parameters
    ----------
    key
        What the user wrote.
    also
        Further bare names and their places.

    Raises
    ------
    ScenarioError
        The bare name is unknown; the message names the nearest known one.
    """
    places = {**SETTING_PLACES, "seed": "seed", **(also or {})}
    if "." in key:
        return key
    if key not in places:
        raise ScenarioError(unknown_key(key, key, places))
    return places[key]


def _may_be_unset(name: str) -> bool:
    field = Settings.model_fields.get(name)
    return field is not None and type(None) in get_args(field.annotation)


def _copied(document: Mapping[str, object]) -> dict[str, object]:
    return {
        key: _copied(value) if isinstance(value, Mapping) else value
        for key, value in document.items()
    }
