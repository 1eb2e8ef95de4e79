"""Files that appear whole or not at all, and never through a link to somewhere else."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

__all__ = ["new_file"]


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Give a path beside `target` to write; on success the file takes the place of `target`.

    A link at `target` is replaced, not followed. If the block raises, `target` stays as it was.
    Nobody can foresee the path and put a link there.

    Raises
    ------
    OSError
        The file cannot be moved to its place.
    """
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    try:
        yield partial
        partial.replace(target)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
