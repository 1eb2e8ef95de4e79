"""Turn what pydantic found into messages that name the place, the value and the fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from themis.errors import ScenarioError
from themis.nearest import nearest

__all__ = ["scenario_error", "unknown_key"]

_EXPECTED = {
    "bool_type": "expected true or false",
    "finite_number": "expected a finite number",
    "float_type": "expected a number",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "union_tag_not_found": "key kind is missing",
    "dict_type": "expected a table",
    "missing": "is missing and has no default",
    "model_type": "expected a table",
    "string_type": "expected text",
}
_BOUNDS = {
    "greater_than": ">",
    "greater_than_equal": ">=",
    "less_than": "<",
    "less_than_equal": "<=",
}
_BOUND_KEYS = {
    "greater_than": "gt",
    "greater_than_equal": "ge",
    "less_than": "lt",
    "less_than_equal": "le",
}
_LONGEST_VALUE = 80


def scenario_error(
    error: ValidationError,
    model: type[BaseModel],
    *,
    file: str | None = None,
    homes: Mapping[str, str] | None = None,
) -> ScenarioError:
    """Return one error that lists everything wrong with a scenario or a table of settings.

    Parameters
    ----------
    error
        What pydantic found.
    model
        The model that was being read: its fields are the known keys.
    file
        The file that held the values, named first in the message.
    homes
        Known keys of the whole document: the bare key to its dotted place, for keys that stand
        in the wrong table.
    """
    lines = [_describe(dict(one), model, homes or {}) for one in error.errors(include_url=False)]
    prefix = f"{file}: " if file else ""
    if len(lines) == 1:
        return ScenarioError(prefix + lines[0])
    return ScenarioError(
        f"{prefix}{len(lines)} errors\n" + "\n".join(f"  {line}" for line in lines)
    )


def _describe(one: dict[str, Any], model: type[BaseModel], homes: Mapping[str, str]) -> str:
    loc: tuple[str | int, ...] = one["loc"]
    kind: str = one["type"]
    place = _dotted(loc)
    if kind == "extra_forbidden":
        return _unknown_key(loc, model, homes)
    if kind == "missing":
        return f"{place}: {_EXPECTED[kind]}"
    if isinstance(one["input"], Mapping) or not place:
        return f"{place}: {_expectation(one)}" if place else _expectation(one)
    return f"{place} = {_shown(one['input'])}: {_expectation(one)}"


def _expectation(one: dict[str, Any]) -> str:
    kind: str = one["type"]
    if kind == "value_error":
        return str(one["ctx"]["error"])
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind]} {one['ctx'][_BOUND_KEYS[kind]]:g}"
    if kind == "union_tag_invalid":
        return _unknown_kind(one["ctx"])
    if kind == "literal_error":
        return f"expected one of {one['ctx']['expected'].replace(chr(39), '')}"
    return _EXPECTED.get(kind, str(one["msg"]))


def _unknown_kind(context: Mapping[str, str]) -> str:
    known = context["expected_tags"].replace("'", "")
    hint = nearest(context["tag"], known.split(", "))
    return f"kind {context['tag']!r} is unknown{hint}: expected one of {known}"


def _unknown_key(
    loc: tuple[str | int, ...], model: type[BaseModel], homes: Mapping[str, str]
) -> str:
    key = str(loc[-1])
    place = _dotted(loc)
    if key in homes and homes[key] != place:
        return f"{place}: unknown key here; it belongs to {homes[key]}"
    return unknown_key(place, key, _known_keys(model, loc[:-1]))


def unknown_key(place: str, key: str, known: Iterable[str]) -> str:
    """Return the message for a key that nobody knows: the nearest known one, or all of them."""
    names = sorted(known)
    hint = nearest(key, names) or f"; known keys: {', '.join(names)}"
    return f"{place}: unknown key{hint}"


def _known_keys(model: type[BaseModel], loc: tuple[str | int, ...]) -> set[str]:
    """Return the field names of the table at ``loc``, following fields into their models."""
    models = [model]
    for part in loc:
        if isinstance(part, int):
            continue
        fields = [one.model_fields[part] for one in models if part in one.model_fields]
        if fields:
            models = [inner for field in fields for inner in _models_in(field.annotation)]
        else:  # the name of one of several kinds of table, or of one of many alike
            models = [one for one in models if _kind(one) == part] or models
    return {name for one in models for name in one.model_fields}


def _kind(model: type[BaseModel]) -> object:
    return model.model_fields["kind"].default if "kind" in model.model_fields else None


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _dotted(loc: tuple[str | int, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."
