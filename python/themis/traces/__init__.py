"""Trace readers: files of GPU-cluster job logs into one :class:`~themis.Workload`."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from themis.workload.workload import Workload

__all__ = ["read_trace"]


def read_trace(
    path: str | PathLike[str],
    format: str | None = None,  # noqa: A002 - the published name of the parameter
    **options: object,
) -> Workload:
    """Read a trace into a workload.

    Every row of the file becomes one job or is reported, with its line, column, value and reason,
    in ``workload.source.report``; nothing is dropped in silence. The rows may stand in any order:
    the frames are the same.

    Parameters
    ----------
    path
        A file, plain or packed (gzip, bzip2, xz, Zstandard); or several files that are one trace: a
        folder, a tar archive, or a pattern such as ``"helios/*/cluster_log.csv"``. Ids of several
        files begin with what tells the files apart.
    format
        Name of the reader (:data:`themis.traces.registry.READERS`, or one of another package), or
        ``None`` to recognise it from the content; ``workload.source.recognised`` says why.
    **options
        Options of that reader, such as ``timezone`` or ``unit``; its module in
        :mod:`themis.traces` documents them.

        ``repair`` is one of every format: choices by rule, such as
        ``{"conflicting_id": "latest"}`` (:data:`themis.checking.repairs.RULES`).

    Raises
    ------
    TraceError
        The file is missing, empty, damaged, of another or of no known format, lacks a required
        column, or has no usable row; or the format or an option is unknown.
    """
    from themis.traces.registry import read  # noqa: PLC0415 - loads polars and every reader

    return read(path, format, options)
