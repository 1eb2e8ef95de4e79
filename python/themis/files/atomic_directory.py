"""Directories of results: written whole or not at all, and never over foreign files."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from themis.errors import ThemisError
from themis.files.documents import read_json

__all__ = [
    "DirectoryKind",
    "check_version",
    "json_text",
    "new_directory",
    "read_json_object",
    "read_manifest",
]

DirectoryKind = str
"""What a directory holds: the `kind` of its manifest, one of those below."""

_KINDS = ("result", "summary", "comparison", "sweep")
_MANIFEST = "manifest.json"
_REPORT = "report.html"


@contextlib.contextmanager
def new_directory(
    target: Path, *, force: bool = False, keeps: Iterable[Path] = ()
) -> Iterator[Path]:
    """Give a directory beside `target` to fill; on success it takes the place of `target`.

    A missing or empty target, and one that holds nothing but what Themis wrote there, is
    replaced. If the block raises, the target stays as it was and the new directory is removed.

    Parameters
    ----------
    target
        Where the directory shall stand in the end.
    force
        Replace a directory that holds other files too. They are lost.
    keeps
        Files that may not be lost even so: what is read to fill the directory.

    Raises
    ------
    ThemisError
        The target is a file, holds foreign files, the home or working directory or one of `keeps`,
        or cannot be written.
    """
    target = target.absolute()
    missing = [parent for parent in target.parents if not parent.exists()]
    _check_replaceable(target, (*keeps, Path.cwd(), Path.home()), force=force)
    token = secrets.token_hex(4)
    partial = target.with_name(f".{target.name}.{token}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except OSError as error:
        raise ThemisError(f"{target}: cannot be written: {error.strerror}") from error
    try:
        yield partial
        _swap(partial, target, token)
    except OSError as error:
        raise ThemisError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        for parent in missing:
            with contextlib.suppress(OSError):  # it holds the target now
                parent.rmdir()


def json_text(document: Mapping[str, object]) -> str:
    """Return `document` as JSON with sorted keys: the same bytes for equal input.

    Raises
    ------
    ThemisError
        The document holds NaN, infinity or a value that JSON cannot express.
    """
    try:
        text = json.dumps(document, allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ThemisError(f"manifest or summary cannot be written as JSON: {error}") from error
    return text + "\n"


def read_json_object(path: Path) -> dict[str, object]:
    """Return the JSON object in `path`.

    Raises
    ------
    ThemisError
        The file is missing or unreadable, or holds no JSON object.
    """
    document = read_json(path, ThemisError)
    if not isinstance(document, dict):
        raise ThemisError(f"{path}: expected a JSON object, found {type(document).__name__}")
    return document


def read_manifest(root: Path, kind: DirectoryKind, version: int) -> dict[str, object]:
    """Return the manifest of a directory that Themis wrote.

    Raises
    ------
    ThemisError
        There is no such directory or manifest, it is damaged, or it is of another kind or schema
        version.
    """
    if not root.is_dir():
        what = (
            f"a file: expected the directory of a {kind}" if root.exists() else "no such directory"
        )
        raise ThemisError(f"{root}: {what}")
    path = root / _MANIFEST
    manifest = read_json_object(path)
    if manifest.get("kind") != kind:
        raise ThemisError(f"{path}: kind is {manifest.get('kind')!r}: expected {kind!r}")
    check_version(manifest.get("schema_version"), version, path)
    return manifest


def check_version(found: object, version: int, path: Path) -> None:
    """Refuse a file of another schema version.

    Raises
    ------
    ThemisError
        It is one.
    """
    if str(found) != str(version):
        raise ThemisError(f"{path}: schema version {found!r}: expected {version}")


def _check_replaceable(target: Path, keeps: Iterable[Path], *, force: bool) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise ThemisError(f"{target}: exists and is not a directory")
    if not target.exists():
        return
    try:
        names = sorted(entry.name for entry in target.iterdir())
    except OSError as error:
        raise ThemisError(f"{target}: cannot be read: {error.strerror}") from error
    for kept in keeps:
        if Path(os.path.realpath(kept)).is_relative_to(os.path.realpath(target)):
            raise ThemisError(f"{target}: holds {kept}: name a directory of its own")
    foreign = [name for name in names if name not in _written_by_themis(target)]
    if foreign and not force:
        raise ThemisError(
            f"{target}: holds {foreign[0]!r}, which Themis did not write: "
            "name another directory, or use force to replace this one with all its files"
        )


def _written_by_themis(directory: Path) -> frozenset[str]:
    try:
        manifest = read_json_object(directory / _MANIFEST)
    except ThemisError:
        return frozenset()
    files = manifest.get("files")
    if manifest.get("kind") not in _KINDS or not isinstance(files, list):
        return frozenset()
    return frozenset({_REPORT, *map(str, files)})


def _swap(partial: Path, target: Path, token: str) -> None:
    if not target.exists():
        partial.rename(target)
        return
    old = target.with_name(f".{target.name}.{token}.old")
    target.rename(old)
    try:
        partial.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
