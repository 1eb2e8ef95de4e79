"""TOML and JSON documents that somebody else wrote: read whole, or refused in one line."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from themis.errors import ThemisError

__all__ = ["read_json", "read_toml", "toml_tables"]

_MOST_BYTES = 64 << 20
_MOST_PARTS = 100
_LONG_KEY = re.compile(rf"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}""")
"""A dotted key that takes the parser, which keeps every beginning of it, for ever."""


def read_toml(path: Path, error: type[ThemisError]) -> dict[str, object]:
    """Return the tables of a TOML file.

    Raises
    ------
    ThemisError
        The file cannot be read, is too large or is not TOML; the message names it, and the line.
        Of the kind `error`.
    """
    data = _read(path, error)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise error(f"{path}: not text in UTF-8 (byte {wrong.start})") from None
    try:
        return toml_tables(text.replace("\r\n", "\n"))
    except ValueError as wrong:
        raise error(f"{path}: not valid TOML: {wrong}") from None


def toml_tables(text: str) -> dict[str, object]:
    """Return the tables of a TOML text.

    Raises
    ------
    ValueError
        It is none, or nested too deep.
    """
    if _LONG_KEY.search(text):
        raise ValueError(f"a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_json(
    path: Path,
    error: type[ThemisError],
    *,
    pairs: Callable[[list[tuple[str, Any]]], object] | None = None,
) -> object:
    """Return what a JSON file holds; `pairs` makes its objects, as in :func:`json.loads`.

    Raises
    ------
    ThemisError
        The file cannot be read, is too large or is not JSON; the message names it. Of the kind
        `error`.
    """
    data = _read(path, error)
    try:
        return json.loads(data, object_pairs_hook=pairs)
    except RecursionError:
        raise error(f"{path}: not valid JSON: nested too deep") from None
    except ValueError as wrong:
        what = "" if isinstance(wrong, ThemisError) else "not valid JSON: "
        raise error(f"{path}: {what}{wrong}") from None


def _read(path: Path, error: type[ThemisError]) -> bytes:
    """Bytes of a file, if it is one and not too large."""
    try:
        kind = path.stat()
        if stat.S_ISREG(kind.st_mode) and kind.st_size <= _MOST_BYTES:
            return path.read_bytes()
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else wrong
        raise error(f"{path}: cannot be read: {reason}") from None
    if stat.S_ISREG(kind.st_mode):
        raise error(f"{path}: more than {_MOST_BYTES >> 20} MiB: expected less")
    what = "a directory" if stat.S_ISDIR(kind.st_mode) else "a device or pipe"
    raise error(f"{path}: {what}: expected a file")
