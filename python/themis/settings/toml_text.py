"""Write nested tables as TOML: the part of the language that scenarios use."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["toml_text"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(document: Mapping[str, object]) -> str:
    """Return ``document`` as TOML; reading it back gives an equal document.

    Values are text, numbers, booleans, lists, tables and lists of tables. None has no form in
    TOML: such keys are left out.

    Raises
    ------
    TypeError
        A value is of another type.
    """
    return "\n".join(_table_lines(document, ())).strip("\n") + "\n"


def _table_lines(table: Mapping[str, object], path: tuple[str, ...]) -> Iterator[str]:
    present = {key: value for key, value in table.items() if value is not None}
    for key, value in present.items():
        if not _is_table(value) and not _is_table_list(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in present.items():
        inner = (*path, key)
        heading = ".".join(map(_key, inner))
        if isinstance(value, Mapping):
            yield ""
            yield f"[{heading}]"
            yield from _table_lines(value, inner)
        elif _is_table_list(value) and isinstance(value, Sequence):
            for row in value:
                yield ""
                yield f"[[{heading}]]"
                yield from _table_lines(row, inner)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_table_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    raise TypeError(f"{value!r}: {type(value).__name__} has no form in TOML here")


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which JSON leaves as it is
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
