"""The trace formats that are known, and the choice of one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path

from themis.arguments import path as path_argument
from themis.checking.repairs import parse_repairs, repairing
from themis.errors import TraceError
from themis.nearest import nearest
from themis.traces import (
    acme,
    alibaba_spot,
    chronus,
    gavel,
    helios,
    hyperdrive,
    microsoft_itp,
    muri,
    native,
    openb,
    pai,
    philly,
    pollux,
    sacct,
    swf,
    tiresias,
)
from themis.traces.inputs import files_of, several_files, with_digest
from themis.traces.reader import Input, Reader
from themis.traces.source import is_folder
from themis.workload.workload import TraceSource, Workload

__all__ = ["GROUP", "READERS", "read", "readers", "recognise"]

READERS: Mapping[str, Reader] = {
    reader.name: reader
    for reader in (
        philly.READER,
        hyperdrive.READER,
        helios.READER,
        acme.READER,
        openb.READER,
        pai.READER,
        alibaba_spot.READER,
        microsoft_itp.READER,
        chronus.READER,
        muri.READER,
        tiresias.READER,
        pollux.READER,
        gavel.READER,
        sacct.READER,
        swf.READER,
        native.READER,
    )
}
"""Formats by name, in the order in which they are tried; a new one takes its line here."""

GROUP = "themis.readers"
"""Entry points of other packages: each loads to a :class:`~themis.traces.reader.Reader`."""


@functools.cache
def readers() -> Mapping[str, Reader]:
    """Return the built-in formats and, after them, those of other packages by their names.

    A package's reader that cannot be loaded, or has the name of another, is left out with a
    warning.
    """
    found = dict(READERS)
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            reader = point.load()
        except Exception as error:  # noqa: BLE001 - whatever the other package raises
            problem = f"cannot be loaded: {error!r}"
        else:
            if not isinstance(reader, Reader):
                problem = f"is a {type(reader).__name__}: expected a themis.traces.reader.Reader"
            elif reader.name in found:
                problem = f"has the name {reader.name!r} of another reader"
            else:
                found[reader.name] = reader
                continue
        warnings.warn(f"reader {point.name!r} ({point.value}) {problem}", stacklevel=2)
    return found


def read(
    path: str | PathLike[str], format_name: str | None, options: Mapping[str, object]
) -> Workload:
    """Do what :func:`themis.read_trace` promises."""
    path = path_argument("trace: path", path)
    known = readers()
    if format_name is not None and format_name not in tuple(known):
        raise TraceError(
            f"{path}: format {format_name!r} is unknown{nearest(str(format_name), known)}: "
            f"expected one of {', '.join(known)}"
        )
    source, reader, why = _choose(path, format_name)
    options = dict(options)
    repairs = parse_repairs(source.name, options.pop("repair", {}))
    for option in options:
        if option not in reader.options:
            offered = ", ".join(reader.options) or "no option at all"
            raise TraceError(
                f"{source.name}: format {reader.name} has no option {option!r}"
                f"{nearest(option, reader.options)}: expected one of {offered}"
            )
    about = TraceSource(paths=(source.name,), format=reader.name, recognised=why)
    if source.kind != "directory":
        about = with_digest(about, source)
    with repairing(repairs):
        return reader.read(source, about, **options)


def recognise(source: Input, format_name: str | None = None) -> tuple[Reader, str]:
    """Find the reader for one file or directory, and why.

    Raises
    ------
    TraceError
        No format was named and no reader knows this content, or the content is of another
        format than the one named.
    """
    known = readers()
    found = [(reader, why) for reader in known.values() if (why := reader.recognise(source))]
    if format_name is None:
        if found:
            return found[0]
        raise TraceError(
            f"{source.name}: the format is not recognised: found {source.describe()}; "
            f"expected one of {', '.join(known)}{_as_your_own(source)}"
        )
    reader = known[format_name]
    for candidate, why in found:
        if candidate is reader:
            return reader, why
    if found:
        other, why = found[0]
        raise TraceError(
            f"{source.name}: not a {format_name} trace: it looks like {other.name} ({why}); "
            f"expected {reader.expects}"
        )
    return reader, "named"


def _as_your_own(source: Input) -> str:
    """Say what keeps a table from being read as a native one."""
    if source.kind not in ("csv", "parquet"):
        return ""
    absent = native.lacking(source.columns)
    return f"; as {native.READER.name}: {absent}" if absent else ""


def _choose(path: str | PathLike[str], format_name: str | None) -> tuple[Input, Reader, str]:
    """Return what to read, with which reader, and why."""
    lone = Input(Path(path))
    named = format_name == native.READER.name
    if is_folder(lone.path) and (named or native.READER.recognise(lone)):
        return lone, *recognise(lone, format_name)
    files = files_of(path)
    if files == (lone,):
        return lone, *recognise(lone, format_name)
    return _choose_among(str(path), files, format_name)


def _choose_among(
    name: str, files: Sequence[Input], format_name: str | None
) -> tuple[Input, Reader, str]:
    """Return those of `files` that are of one format."""
    known, others = {}, []
    for file in files:
        found = _glance(file)
        if found is None or format_name not in (None, found[0].name):
            others.append(file.name)
        else:
            known[file] = found
    if not known:
        wanted = "known format" if format_name is None else f"format {format_name}"
        raise TraceError(f"{name}: none of the {len(files)} files is of a {wanted}")
    formats = {reader.name: (file, reader) for file, (reader, _) in reversed(known.items())}
    if len(formats) > 1:
        shown = ", ".join(f"{kind} ({file.name})" for kind, (file, _) in sorted(formats.items()))
        raise TraceError(f"{name}: files of several formats: {shown}: name one of the formats")
    (first, (reader, why)), *more = known.items()
    if more and not reader.several:
        raise TraceError(
            f"{name}: {len(known)} {reader.name} files, such as {first.name} and "
            f"{more[0][0].name}: expected one"
        )
    files_read = f"{len(known)} file{'s' if more else ''}: {why}"
    if others:
        files_read += f"; {len(others)} other files not read: {', '.join(others[:5])}"
    return (several_files(name, list(known)) if more else first), reader, files_read


def _glance(file: Input) -> tuple[Reader, str] | None:
    try:
        return next(
            (reader, why) for reader in readers().values() if (why := reader.recognise(file))
        )
    except (StopIteration, TraceError):
        return None  # no trace: the caller says so
