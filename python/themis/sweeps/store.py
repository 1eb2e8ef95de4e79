"""The directory of a sweep: results by address, found again by a later sweep."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from themis.errors import ThemisError
from themis.files.atomic_directory import json_text, new_directory, read_json_object

__all__ = ["FILES", "Store", "open_store"]

FILES = ["manifest.json", "sweep.parquet", "runs"]
"""What a sweep's directory holds."""


class Store:
    """Results below one directory, each under its address.

    Parameters
    ----------
    root
        The directory of the sweep.
    tables
        Results are kept with their tables; a summary alone does not count as finished.
    """

    def __init__(self, root: Path, *, tables: bool = True) -> None:
        self.root = root
        self._kinds = ("result",) if tables else ("result", "summary")

    def place(self, address: str) -> Path:
        """Return the directory of a result."""
        return self.root / "runs" / address

    def summary(self, address: str) -> dict[str, object] | None:
        """Return the summary of a result, or None where there is none or it is damaged."""
        place = self.place(address)
        try:
            if read_json_object(place / "manifest.json").get("kind") not in self._kinds:
                return None
            return read_json_object(place / "summary.json")
        except ThemisError:
            return None


@contextlib.contextmanager
def open_store(
    root: Path, *, force: bool, tables: bool, keeps: Iterable[Path] = ()
) -> Iterator[Store]:
    """Give the store in `root`, made if it is missing; no other process can open it meanwhile.

    What killed sweeps left half-written is removed; `keeps` as in
    :func:`~themis.files.atomic_directory.new_directory`.

    Raises
    ------
    ThemisError
        The directory holds something else than a sweep, and `force` is not given; it cannot be
        written; or another sweep is at work there.
    """
    if not _is_sweep(root):
        with new_directory(root, force=force, keeps=keeps) as partial:
            (partial / "runs").mkdir()
            mark = json_text({"kind": "sweep", "files": FILES})
            (partial / "manifest.json").write_text(mark, encoding="utf-8")
    with _locked(root):
        try:
            (root / "runs").mkdir(exist_ok=True)
            for pattern in ("runs/.*.partial", "runs/.*.old", ".*.partial"):
                for left in root.glob(pattern):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError as error:
            raise ThemisError(f"{root}: cannot be written: {error.strerror}") from error
        yield Store(root, tables=tables)


def _is_sweep(root: Path) -> bool:
    try:
        return read_json_object(root / "manifest.json").get("kind") == "sweep"
    except ThemisError:
        return False


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    held = os.open(root, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems know no locks
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process
            except BlockingIOError:
                raise ThemisError(f"{root}: another sweep is at work there") from None
        yield
    finally:
        os.close(held)
