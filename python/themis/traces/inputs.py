"""Which files a path means: one file, the members of a tar archive, a folder, a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path, PurePosixPath

from themis.errors import TraceError
from themis.traces.reader import Input
from themis.traces.source import TraceFile, digest, is_folder
from themis.workload.workload import TraceSource

__all__ = ["files_of", "several_files", "with_digest"]

_PACKED_ENDINGS = (".gz", ".zst", ".bz2", ".xz")
_PATTERN = frozenset("*?[")


def files_of(path: str | PathLike[str]) -> tuple[Input, ...]:
    """Return the files that `path` means, sorted by name.

    A tar archive means its members, a folder all files below it, a pattern (``*``, ``?``, ``[]``,
    ``**``) all that match it; hidden files are left out. A path to nothing means itself: who
    opens it gets the error.

    Raises
    ------
    TraceError
        Nothing matches the pattern, or the folder or archive holds no file, or is damaged.
    """
    place = Path(path)
    if is_folder(place):
        found = [Path(folder, name) for folder, _, names in os.walk(place) for name in names]
        found = sorted(file for file in found if not _hidden(file.relative_to(place)))
    elif _PATTERN & set(str(path)) and _bytes(place) is None:
        matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 - the path may be absolute
        found = sorted(file for text in matches if (file := Path(text)).is_file())
    else:
        return _members(place)
    if not found:
        raise TraceError(f"{path}: no file found there: expected a trace")
    return tuple(member for file in found for member in _members(file))


def several_files(path: str | PathLike[str], files: Sequence[Input]) -> Input:
    """Return the input that reads `files` as one trace, each with its label."""
    names = [file.member or file.name for file in files]
    labelled = (
        replace(file, label=label) for file, label in zip(files, _labels(names), strict=True)
    )
    return Input(Path(path), files=tuple(labelled))


def with_digest(about: TraceSource, source: Input) -> TraceSource:
    """Return `about` with the paths of the files of `source` and the digest of their bytes."""
    paths = dict.fromkeys(part.path for part in source.parts)
    return about.with_files(tuple(map(str, paths)), digest(TraceFile(path) for path in paths))


def _hidden(place: Path) -> bool:
    return any(part.startswith(".") for part in place.parts)


def _members(place: Path) -> tuple[Input, ...]:
    members = TraceFile(place).members if _bytes(place) else None
    if members is None:
        return (Input(place),)
    if not members:
        raise TraceError(f"{place}: an archive without files: expected a trace")
    return tuple(Input(place, member) for member in members)


def _bytes(place: Path) -> int | None:
    """Size of a file; None if it is none."""
    try:
        return place.stat().st_size if place.is_file() else None
    except (OSError, ValueError):
        return None


def _labels(names: Sequence[str]) -> list[str]:
    """Return the shortest telling part of each name: its stem, its folder, or all of it."""
    paths = [PurePosixPath(Path(name).as_posix()) for name in names]
    stems = [_stem(path) for path in paths]
    folders = [path.parent.name for path in paths]
    for found in (stems, folders):
        if len(set(found)) == len(found) and "" not in found:
            return found
    return [str(path) for path in paths]


def _stem(path: PurePosixPath) -> str:
    while path.suffix in _PACKED_ENDINGS:
        path = path.with_suffix("")
    return path.stem
