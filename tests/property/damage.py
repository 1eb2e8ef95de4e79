"""Damage to bytes, for tests of everything that reads what others wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hypothesis import strategies as st

from themis.errors import ThemisError

Result = TypeVar("Result")

CELL, CELL_END = re.compile(rb"[^,|\t\n]*\Z"), re.compile(rb"\A[^,|\t\n]*")

PIECES = st.one_of(
    st.binary(max_size=8),
    st.sampled_from(
        [b"\x00", b'"', b"\n", b"\r\n", b"\n\n", b",", b"|", b"\t", b";", b"\xff\xfe", b"\xc3"]
    ),
    st.sampled_from(
        [b"nan", b"inf", b"-1", b"1e19", b"1e400", b"0.5", b"None", b"99999999999999999999", b"-"]
    ),
    st.sampled_from(
        [b"2017-11-05 01:30:00", b"0000-00-00 00:00:00", b"9999-12-31 23:59:59.999999", b"{", b"[]"]
    ),
)
WAYS = ("put", "over", "cut", "twice", "cell", "line", "lines")
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(WAYS), PIECES),
    min_size=1,
    max_size=24,
)
ENCODINGS = st.sampled_from(["as it is"] * 8 + ["utf-16", "utf-32", "latin-1", "half"])


def damaged(data: bytes, edits: list[tuple[float, str, bytes]], encoding: str) -> bytes:
    for where, how, piece in edits:
        at = int(where * len(data))
        if how == "put":
            data = data[:at] + piece + data[at:]
        elif how == "over":
            data = data[:at] + piece + data[at + len(piece) :]
        elif how == "cut":
            data = data[:at] + data[at + 7 :]
        elif how == "twice":
            data = data[:at] + data[at : at + 90] + data[at:]
        elif how == "cell":
            data = CELL.sub(b"", data[:at]) + piece + CELL_END.sub(b"", data[at:])
        elif how == "line":
            data = data[:at] + data[at:].partition(b"\n")[2]
        else:
            data = data[:at] + data[at:].replace(b"\n", b"\r\n", 3)
    if encoding == "half":
        return data[: len(data) // 2]
    if encoding == "latin-1":
        return data.replace(b"a", "é".encode("latin-1"), 1)
    return data if encoding == "as it is" else data.decode("latin-1").encode(encoding)


def result_or_refusal(path: Path, read: Callable[[], Result]) -> Result | None:
    """What `read` returns, or None if it refuses the file with one line that names it."""
    try:
        return read()
    except ThemisError as error:
        message = str(error)
    assert path.name in message
    assert "\n" not in message
    return None
