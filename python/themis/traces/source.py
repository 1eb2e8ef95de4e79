"""Bytes of a trace file: opening, decompressing, hashing, and a look at the beginning.

A file is plain, gzip, bzip2, xz or Zstandard, and may be a member of a tar archive.
"""

from __future__ import annotations

import hashlib
import stat
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO, cast

from themis.errors import TraceError
from themis.traces.packed import DAMAGED, packing, unpacked

__all__ = ["BLOCK_BYTES", "TraceFile", "digest", "is_folder", "undecodable"]

BLOCK_BYTES = 16 << 20
"""Decompressed bytes that a reader holds at a time, about."""

_HEAD_BYTES = 64 << 10
_MOST_MEMBERS = 500
_TAR_MARK = slice(257, 262)
_PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
_FOREIGN = {
    b"PK\x03\x04": "a ZIP archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_DAMAGED = (*DAMAGED, tarfile.TarError, EOFError)


@dataclass(frozen=True)
class TraceFile:
    """One file of a trace.

    Parameters
    ----------
    path
        Where it is; it must be a file that can be read.
    member
        Name of the file inside the tar archive at `path`; None for the file at `path` itself.

    Raises
    ------
    TraceError
        From every method: missing, unreadable, empty, damaged or binary file.
    """

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """The path as it was given, for messages."""
        return str(self.path) if self.member is None else f"{self.path}:{self.member}"

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the bytes as stored."""
        return digest([self])

    def raw_blocks(self) -> Iterator[bytes]:
        """Bytes as stored, a mebibyte at a time."""
        with self._stored() as stream:
            while block := self._read(stream, 1 << 20):
                yield block

    @cached_property
    def kind(self) -> str:
        """``"parquet"`` or ``"text"``."""
        return "parquet" if self._magic.startswith(_PARQUET) else "text"

    @cached_property
    def head(self) -> str:
        """The beginning of the text, decompressed, without a byte-order mark."""
        with self._text() as stream:
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
        with self._text() as stream:
            first = True
            while block := self._read(stream, BLOCK_BYTES):
                yield block.removeprefix(_BOM) if first else block
                first = False

    def read_all(self) -> bytes:
        """All decompressed bytes without a byte-order mark."""
        return b"".join(self.blocks())

    @cached_property
    def members(self) -> tuple[str, ...] | None:
        """Names of the files of a tar archive, sorted; None if this is none.

        Hidden files, such as the ``._*`` of macOS, are left out, and so is what is no file.
        """
        with self._text() as stream:
            if self._read(stream, 512)[_TAR_MARK] != b"ustar":
                return None
        with self._archive() as archive:
            try:
                entries = list(islice(archive, _MOST_MEMBERS + 1))
            except (*_DAMAGED, OSError) as error:
                raise TraceError(f"{self.path}: damaged tar archive: {error}") from None
        if len(entries) > _MOST_MEMBERS:
            raise TraceError(
                f"{self.path}: an archive of more than {_MOST_MEMBERS} members: "
                "expected a trace; if it is one, unpack it first"
            )
        names = sorted(entry.name for entry in entries if entry.isfile())
        for name, following in pairwise(names):
            if name == following:
                raise TraceError(f"{self.path}: member {name!r} stands twice: expected each once")
        return tuple(name for name in names if not name.split("/")[-1].startswith("."))

    @cached_property
    def _magic(self) -> bytes:
        with self._stored() as stream:
            magic = self._read(stream, 6)
        if not magic:
            raise TraceError(f"{self.name}: the file is empty: expected a trace")
        for start, what in _FOREIGN.items():
            if magic.startswith(start):
                raise TraceError(
                    f"{self.name}: {what}: expected UTF-8 CSV or JSON (plain, gzip, bzip2, xz or "
                    "Zstandard) or Parquet"
                )
        return magic

    @property
    def _packing(self) -> str | None:
        """Name of the compression that is undone here."""
        return packing(self._magic)

    @contextmanager
    def _stored(self) -> Iterator[BinaryIO]:
        """Bytes as stored."""
        if self.member is None:
            with self._open() as raw:
                yield raw
            return
        with self._archive() as archive:
            try:
                found = (entry for entry in archive if entry.name == self.member)
                stream = archive.extractfile(next(found))  # without a look at what comes later
            except (*_DAMAGED, StopIteration, OSError) as error:
                raise TraceError(f"{self.name}: damaged tar archive: {error}") from None
            yield cast("BinaryIO", stream)

    def _open(self) -> BinaryIO:
        try:
            kind = self.path.stat().st_mode
            if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
                return self.path.open("rb")
        except IsADirectoryError:
            raise TraceError(f"{self.name}: a directory: expected a trace file") from None
        except FileNotFoundError:
            raise TraceError(f"{self.name}: no such file") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise TraceError(f"{self.name}: cannot be read: {reason}") from None
        raise TraceError(f"{self.name}: a device or pipe: expected a trace file")

    @contextmanager
    def _archive(self) -> Iterator[tarfile.TarFile]:
        with TraceFile(self.path)._text() as stream:  # noqa: SLF001 - of the same class
            try:
                archive = tarfile.TarFile(fileobj=stream)
            except (*_DAMAGED, OSError) as error:
                raise TraceError(f"{self.path}: damaged tar archive: {error}") from None
            with archive:
                yield archive

    @contextmanager
    def _text(self) -> Iterator[BinaryIO]:
        """Decompressed bytes."""
        with self._stored() as raw:
            yield unpacked(raw, self._magic, self.path.stat().st_size, self.name)

    def _read(self, stream: BinaryIO, size: int) -> bytes:
        try:
            return stream.read(size)
        except EOFError:
            raise TraceError(
                f"{self.name}: truncated {self._packing} file: the compressed data ends early"
            ) from None
        except _DAMAGED as error:
            raise TraceError(f"{self.name}: damaged {self._packing} file: {error}") from None
        except OSError as error:
            reason = error.strerror or error
            raise TraceError(f"{self.name}: cannot be read: {reason}") from None


def is_folder(place: Path) -> bool:
    """Whether the path is a folder."""
    try:
        return place.is_dir()
    except (OSError, ValueError):
        return False  # no path at all, for example one with a null byte


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
