"""The trace formats that are known, and the choice of one."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from themis.errors import TraceError
from themis.nearest import nearest
from themis.traces import hyperdrive, native, philly
from themis.traces.reader import Input, Reader
from themis.workload import TraceSource, Workload

__all__ = ["READERS", "read", "recognise"]

READERS: Mapping[str, Reader] = {
    reader.name: reader
    for reader in (
        philly.READER,
        hyperdrive.READER,
        native.READER,
    )
}
"""Formats by name, in the order in which they are tried; a new one takes its line here."""


def read(
    path: str | PathLike[str], format_name: str | None, options: Mapping[str, object]
) -> Workload:
    """Do what :func:`themis.traces.read_trace` promises."""
    source = Input(Path(path))
    if format_name is not None and format_name not in READERS:
        raise TraceError(
            f"{source.name}: format {format_name!r} is unknown{nearest(format_name, READERS)}: "
            f"expected one of {', '.join(READERS)}"
        )
    reader, why = recognise(source, format_name)
    for option in options:
        if option not in reader.options:
            raise TraceError(
                f"{source.name}: format {reader.name} has no option {option!r}"
                f"{nearest(option, reader.options)}: expected one of {', '.join(reader.options)}"
            )
    about = TraceSource(
        paths=(source.name,),
        format=reader.name,
        recognised=why,
        sha256="" if source.kind == "directory" else source.file.sha256,
    )
    return reader.read(source, about, **options)


def recognise(source: Input, format_name: str | None = None) -> tuple[Reader, str]:
    """Find the reader for an input, and why.

    Raises
    ------
    TraceError
        No format was named and no reader knows this content, or the content is of another
        format than the one named.
    """
    found = [(reader, why) for reader in READERS.values() if (why := reader.recognise(source))]
    if format_name is None:
        if found:
            return found[0]
        known = "; ".join(f"{reader.name}: {reader.expects}" for reader in READERS.values())
        raise TraceError(
            f"{source.name}: the format is not recognised: found {source.describe()}; "
            f"expected one of {known}"
        )
    reader = READERS[format_name]
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
