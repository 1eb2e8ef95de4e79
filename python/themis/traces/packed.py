"""Decompressed bytes of a file, as long as they stay in proportion to what is stored."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from typing import BinaryIO, cast

from themis.errors import TraceError
from themis.files.expansion import check_expansion

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

__all__ = ["DAMAGED", "packing", "unpacked"]

DAMAGED = (gzip.BadGzipFile, lzma.LZMAError, zlib.error, ZstdError)
"""What decoders raise about bytes that they cannot read; EOFError about an early end."""

_STEP_BYTES = 1 << 20


_PACKINGS: dict[bytes, tuple[str, Callable[[BinaryIO], object]]] = {
    b"\x1f\x8b": ("gzip", lambda raw: gzip.GzipFile(fileobj=raw)),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ": ("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ("Zstandard", ZstdFile),
}


def packing(magic: bytes) -> str | None:
    """Return the name of the compression of a file that begins with `magic`; None if plain."""
    return next((name for start, (name, _) in _PACKINGS.items() if magic.startswith(start)), None)


def unpacked(raw: BinaryIO, magic: bytes, stored_bytes: int, name: str) -> BinaryIO:
    """Return the decompressed bytes of `raw`, or `raw` itself where nothing is to be undone.

    Reading raises TraceError once they are out of proportion to `stored_bytes`; `name` is that of
    the file in the message.
    """
    for start, (_, unpack) in _PACKINGS.items():
        if magic.startswith(start):
            return cast("BinaryIO", _Bounded(cast("BinaryIO", unpack(raw)), stored_bytes, name))
    return raw


class _Bounded(io.BufferedIOBase):
    """A decompressing stream that ends in an error where it never would end."""

    def __init__(self, stream: BinaryIO, stored_bytes: int, name: str) -> None:
        self._stream = stream
        self._stored_bytes = stored_bytes
        self._name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_STEP_BYTES), b""))
        block = self._stream.read(size)
        check_expansion(self._stream.tell(), self._stored_bytes, self._name, TraceError)
        return block

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on to `offset` step by step, or back to it."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("from the beginning only")
        if offset < self.tell():
            return self._stream.seek(offset)
        while (left := offset - self.tell()) and self.read(min(left, _STEP_BYTES)):
            pass
        return self.tell()

    def close(self) -> None:
        self._stream.close()
        super().close()
