"""Bytes of a trace file: opening, decompressing, hashing, and a look at the beginning."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl

from themis.errors import TraceError

__all__ = ["BLOCK_BYTES", "TraceFile", "digest", "undecodable"]

BLOCK_BYTES = 16 << 20
"""Decompressed bytes that a reader holds at a time, about."""

_HEAD_BYTES = 64 << 10
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
_FOREIGN = {
    b"PK\x03\x04": "a ZIP archive",
    b"\xfd7zXZ": "an xz file",
    b"BZh": "a bzip2 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


@dataclass(frozen=True)
class TraceFile:
    """One file of a trace.

    Parameters
    ----------
    path
        Where it is; it must be a file that can be read.

    Raises
    ------
    TraceError
        From every method: missing, unreadable, empty, damaged or binary file.
    """

    path: Path

    @property
    def name(self) -> str:
        """The path as it was given, for messages."""
        return str(self.path)

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the bytes as stored."""
        return digest([self])

    def raw_blocks(self) -> Iterator[bytes]:
        """Bytes as stored, a mebibyte at a time."""
        with self._open_raw() as stream:
            while block := self._read(stream, 1 << 20):
                yield block

    @cached_property
    def kind(self) -> str:
        """``"parquet"`` or ``"text"``."""
        return "parquet" if self._magic == _PARQUET else "text"

    @cached_property
    def head(self) -> str:
        """The beginning of the text, decompressed, without a byte-order mark."""
        with self._open_text() as stream:
            block = self._read(stream, _HEAD_BYTES)
        if not block.strip():
            raise TraceError(f"{self.name}: the file is empty: expected a trace")
        if b"\x00" in block:
            raise TraceError(f"{self.name}: binary data: expected CSV, JSON or Parquet")
        text = block.removeprefix(_BOM)
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start >= len(text) - 3 and len(block) == _HEAD_BYTES:
                return text[: error.start].decode("utf-8")
            raise TraceError(undecodable(self.name, text, error)) from None

    def blocks(self) -> Iterator[bytes]:
        """Decompressed bytes without a byte-order mark, about :data:`BLOCK_BYTES` at a time."""
        with self._open_text() as stream:
            first = True
            while block := self._read(stream, BLOCK_BYTES):
                yield block.removeprefix(_BOM) if first else block
                first = False

    def read_all(self) -> bytes:
        """All decompressed bytes without a byte-order mark."""
        return b"".join(self.blocks())

    @cached_property
    def _magic(self) -> bytes:
        with self._open_raw() as stream:
            magic = self._read(stream, 6)
        if not magic:
            raise TraceError(f"{self.name}: the file is empty: expected a trace")
        for start, what in _FOREIGN.items():
            if magic.startswith(start):
                raise TraceError(
                    f"{self.name}: {what}: expected UTF-8 CSV or JSON (plain, gzip or Zstandard) "
                    "or Parquet"
                )
        return magic[:4]

    def _open_raw(self) -> BinaryIO:
        if self.path.is_dir():
            raise TraceError(f"{self.name}: a directory: expected a trace file")
        try:
            return self.path.open("rb")
        except FileNotFoundError:
            raise TraceError(f"{self.name}: no such file") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise TraceError(f"{self.name}: cannot be read: {reason}") from None

    @contextmanager
    def _open_text(self) -> Iterator[BinaryIO]:
        magic = self._magic
        with self._open_raw() as raw:
            if magic.startswith(_GZIP):
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield cast("BinaryIO", unpacked)
            elif magic == _ZSTD:
                yield io.BytesIO(self._zstd())
            else:
                yield raw

    def _read(self, stream: BinaryIO, size: int) -> bytes:
        try:
            return stream.read(size)
        except EOFError:
            raise TraceError(
                f"{self.name}: truncated gzip file: the compressed data ends early"
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TraceError(f"{self.name}: damaged gzip file: {error}") from None
        except OSError as error:
            raise TraceError(f"{self.name}: cannot be read: {error.strerror or error}") from None

    def _zstd(self) -> bytes:
        """Decompressed bytes of a Zstandard file: polars has the only decoder at hand."""
        try:
            lines = pl.read_csv(
                self.path,
                has_header=False,
                schema={"line": pl.String},
                separator="\x01",
                quote_char=None,
            )
        except (pl.exceptions.PolarsError, OSError) as error:
            raise TraceError(f"{self.name}: damaged Zstandard file: {error}") from None
        return "\n".join(lines["line"].fill_null("").to_list()).encode() + b"\n"


def digest(files: Iterable[TraceFile]) -> str:
    """Hexadecimal SHA-256 of the stored bytes of all `files`, one after the other."""
    state = hashlib.sha256()
    for file in files:
        for block in file.raw_blocks():
            state.update(block)
    return state.hexdigest()


def undecodable(
    name: str, block: bytes, error: UnicodeDecodeError, *, lines_before: int = 0
) -> str:
    """Message for bytes that are not UTF-8, with the line in the file."""
    line = lines_before + block.count(b"\n", 0, error.start) + 1
    return f"{name}, line {line}: byte 0x{block[error.start]:02x} is not UTF-8 text"
