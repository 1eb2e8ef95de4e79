"""CSV text into string columns that know the physical line of every row.

Line 1 is the header, if there is one. A record is one line, or several when a quoted field holds
line breaks; its line is the one where it begins. Blank lines and records with too few or too many
fields come out as rows with a `shape` problem, so that the caller can report them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.errors import TraceError
from themis.traces.source import TraceFile, undecodable

__all__ = ["COMMAS", "SHAPE", "CsvBlock", "CsvHeader", "Dialect", "csv_blocks", "csv_header"]

SHAPE = ("", "empty line", "too few fields", "too many fields", "repeated header")
"""What can be wrong with a record as a whole; the index is the code in `CsvBlock.shape`."""

_MOST_RECORD_BYTES = 64 << 20
_NEWLINE, _QUOTE, _CR = 10, 34, 13
_BLANKS_OR_QUOTES = (b'"', b"\r", b"\t", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
_BLANKS = re.compile(rb"[ \t]+")
_EDGES = re.compile(rb"(?m)^[ \t]+|[ \t\r]+$")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Dialect:
    """How fields are told apart.

    Parameters
    ----------
    separator
        The character between fields; a blank means any run of blanks and tabs.
    quoted
        Whether a field may stand in double quotes, which then may hold separators and line breaks.
    comment
        The character that begins a line that is no record; none if empty.
    """

    separator: str = ","
    quoted: bool = True
    comment: str = ""


COMMAS = Dialect()
"""Ordinary CSV."""


@dataclass(frozen=True)
class CsvHeader:
    """Names of a header line, or of the columns of a file without one.

    Parameters
    ----------
    names
        One name a field, stripped; unnamed columns are called ``unnamed_0`` and so on.
    line
        Its physical line: 1 unless blank lines stand before it; 0 if the file has none.
    required
        Fields that a record must have: all but unnamed ones at the end (a trailing comma).
    dialect
        How fields are told apart.
    """

    names: tuple[str, ...]
    line: int
    required: int
    dialect: Dialect = COMMAS


@dataclass(frozen=True)
class CsvBlock:
    """Some consecutive records of a CSV file.

    Parameters
    ----------
    frame
        One String column for each name of the header that is wanted; cells are stripped of blanks.
    line
        Int64, physical line where each record begins.
    shape
        Int8, index into :data:`SHAPE`.
    record
        Bytes of a record by its row, for messages.
    """

    frame: pl.DataFrame
    line: npt.NDArray[np.int64]
    shape: npt.NDArray[np.int8]
    record: _Records


@dataclass(frozen=True)
class _Records:
    PER_RECORD: ClassVar = ("start", "end", "fields", "breaks")
    data: bytes
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    fields: npt.NDArray[np.int64]
    breaks: npt.NDArray[np.int64]

    def text(self, row: int) -> str:
        return self.data[int(self.start[row]) : int(self.end[row])].decode().strip()


def csv_header(file: TraceFile, dialect: Dialect = COMMAS) -> CsvHeader:
    """Find the column names: the first line that is not blank.

    Raises
    ------
    TraceError
        The file cannot be read.
    """
    head = file.head
    text = head.lstrip()
    line = 1 + head[: len(head) - len(text)].count("\n")
    first = text.split("\n", 1)[0].split(dialect.separator)
    cells = [cell.strip().strip('"').strip() for cell in first]
    names = [cell or f"unnamed_{index}" for index, cell in enumerate(cells)]
    required = max((index + 1 for index, cell in enumerate(cells) if cell), default=0)
    return CsvHeader(tuple(names), line, required, dialect)


def csv_blocks(
    file: TraceFile, header: CsvHeader, used: Collection[str] | None = None
) -> Iterator[CsvBlock]:
    """Iterate over the records after the header, in blocks of bounded size.

    Parameters
    ----------
    file
        Where the text comes from.
    header
        What :func:`csv_header` found in it, or the names that its format gives it.
    used
        The columns that are wanted; None for all of them.

    Raises
    ------
    TraceError
        A name stands twice in the header, the bytes are not UTF-8, or a quoted field never ends.
    """
    for name in header.names:
        if header.names.count(name) > 1:
            raise TraceError(
                f"{file.name}, line {header.line}: column {name!r} stands twice in the header"
            )
    line = 1
    rest = b""
    for piece in file.blocks():
        data = rest + piece
        cut = _last_break(data, header.dialect)
        data, rest = data[:cut], data[cut:]
        if len(rest) > _MOST_RECORD_BYTES:
            where = line + data.count(b"\n")
            what = "with a quote that does not end" if b'"' in rest else "without an end"
            raise TraceError(
                f"{file.name}, line {where}: {_MOST_RECORD_BYTES >> 20} MiB {what}: expected a row"
            )
        while line <= header.line and data:
            data, line = data[data.index(b"\n") + 1 :], line + 1
        if data:
            block = _parse(file.name, data, header, line, used)
            line += int(block.record.breaks.sum())
            yield _records_only(block, header.dialect)
    if rest and line > header.line:
        yield _records_only(_parse(file.name, rest + b"\n", header, line, used), header.dialect)


def _records_only(block: CsvBlock, dialect: Dialect) -> CsvBlock:
    """Return the block without its comments."""
    mark = dialect.comment.encode()
    if not mark or mark not in block.record.data:
        return block
    codes = np.frombuffer(block.record.data, dtype=np.uint8)
    chosen = codes[block.record.start] != mark[0]
    record = replace(
        block.record, **{name: getattr(block.record, name)[chosen] for name in _Records.PER_RECORD}
    )
    frame = block.frame.filter(pl.Series(chosen))
    return CsvBlock(frame, block.line[chosen], block.shape[chosen], record)


def _last_break(data: bytes, dialect: Dialect) -> int:
    """End of the last complete record in `data`; 0 when there is none."""
    if not dialect.quoted or b'"' not in data:
        return data.rfind(b"\n") + 1
    codes = np.frombuffer(data, dtype=np.uint8)
    breaks = np.flatnonzero((codes == _NEWLINE) & ~_quoted(codes))
    return int(breaks[-1]) + 1 if breaks.size else 0


def _quoted(codes: npt.NDArray[np.uint8]) -> Mask:
    """Which bytes stand inside quotes."""
    inside: Mask = np.bitwise_xor.accumulate((codes == _QUOTE).view(np.uint8)).view(np.bool_)
    return inside


def _scan(data: bytes, dialect: Dialect) -> _Records:
    """Where the records are, and how many fields each has."""
    codes = np.frombuffer(data, dtype=np.uint8)
    newline = codes == _NEWLINE
    comma = codes == ord(dialect.separator)
    breaks = None
    if dialect.quoted and b'"' in data:
        ends_all = np.flatnonzero(newline)
        outside = ~_quoted(codes)
        newline, comma = newline & outside, comma & outside
        end = np.flatnonzero(newline)
        breaks = np.diff(np.searchsorted(ends_all, end, side="right"), prepend=0)
    else:
        end = np.flatnonzero(newline)
        breaks = np.ones_like(end)
    start = np.concatenate(([0], end[:-1] + 1))
    return _Records(data, start, end, _fields(np.flatnonzero(comma), start, end), breaks)


def _fields(
    commas: npt.NDArray[np.int64], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Count the fields of each record from where the separators are."""
    each, left = divmod(len(commas), max(len(end), 1))
    if each and not left:  # as many in every record?
        grid = commas.reshape(-1, each)
        if (grid[:, 0] >= start).all() and (grid[:, -1] < end).all():
            return np.full(len(end), each + 1)
    return np.diff(np.searchsorted(commas, end), prepend=0) + 1


def _parse(
    name: str, data: bytes, header: CsvHeader, first_line: int, used: Collection[str] | None
) -> CsvBlock:
    try:
        if not data.isascii():
            data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(undecodable(name, data, error, lines_before=first_line - 1)) from None
    dialect = header.dialect
    if dialect.separator == " ":
        data = _BLANKS.sub(b" ", _EDGES.sub(b"", data))
    records = _scan(data, dialect)
    line = first_line + np.cumsum(records.breaks) - records.breaks
    names = [f"column_{index}" for index in range(len(header.names))]
    try:
        frame = pl.read_csv(
            dialect.separator.join(names).encode() + b"\n" + data,
            columns=[
                place
                for place, column in zip(names, header.names, strict=True)
                if used is None or column in used
            ],
            schema=dict.fromkeys(names, pl.String),
            separator=dialect.separator,
            quote_char='"' if dialect.quoted else None,
            truncate_ragged_lines=True,
        )
    except pl.exceptions.ComputeError:
        frame = pl.DataFrame()  # quotes that do not match: found by the height below
    open_end = not len(records.end) or int(records.end[-1]) != len(data) - 1
    if open_end or frame.height != len(records.end):
        odd = np.flatnonzero(records.breaks > 1)
        where = int(line[odd[0]]) if odd.size else first_line
        raise TraceError(f"{name}, line {where}: a quoted field does not end where it should")
    if _untidy(data, dialect.separator):
        frame = frame.select(pl.all().str.strip_chars().replace("", None))
    frame = frame.rename(dict(zip(names, header.names, strict=True)), strict=False)
    return CsvBlock(frame, line, _shape(frame, records, header), records)


def _untidy(data: bytes, separator: str) -> bool:
    """Whether there may be cells with blanks around them, or cells of quotes alone."""
    if not data.isascii() or any(mark in data for mark in _BLANKS_OR_QUOTES):
        return True
    codes = np.frombuffer(data, dtype=np.uint8)
    blank = np.flatnonzero(codes == ord(" "))
    edges = np.concatenate((codes[blank - 1], codes[blank + 1]))  # the last byte ends a line
    return bool(((edges == ord(separator)) | (edges == _NEWLINE)).any())


def _shape(frame: pl.DataFrame, records: _Records, header: CsvHeader) -> npt.NDArray[np.int8]:
    """Code of what is wrong with each record as a whole."""
    codes = np.frombuffer(records.data, dtype=np.uint8)
    start, end, fields = records.start, records.end, records.fields
    carriage = (end > start) & (codes[np.maximum(end - 1, 0)] == _CR)
    end = end - carriage
    trailing = (end > start) & (codes[np.maximum(end - 1, 0)] == ord(header.dialect.separator))
    width = len(header.names)
    shape = np.zeros(len(end), dtype=np.int8)
    shape[fields < header.required] = 2
    shape[(fields > width) & ~((fields == width + 1) & trailing)] = 3
    shape[[row for row in np.flatnonzero(fields == 1).tolist() if not records.text(row)]] = 1
    named = [
        name
        for index, name in enumerate(header.names)
        if index < header.required and name in frame.columns and not name.startswith("unnamed_")
    ]
    again = frame.get_column(named[0]) == named[0] if named else pl.Series([False])
    if again.any():
        same = frame.select(pl.all_horizontal(pl.col(name).eq_missing(name) for name in named))
        shape[same.to_series().to_numpy()] = 4
    return shape
