"""Trace readers: files of GPU-cluster job logs into one :class:`~themis.workload.Workload`."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from themis.workload import Workload

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
        The trace file, plain or gzip or Zstandard, or a directory with ``apps`` and ``jobs``
        tables (native format only).
    format
        Name of the reader (``"philly"``, ``"hyperdrive"``, ``"native"``), or ``None`` to recognise
        it from the content; ``workload.source.recognised`` says why.
    **options
        Options of that reader: ``timezone`` (philly, hyperdrive), ``duration`` (philly),
        ``jobs_at`` (hyperdrive), ``unit`` (native). The modules of :mod:`themis.traces` document
        them.

        ``repair`` is one of every format: choices by rule, such as
        ``{"conflicting_id": "latest"}`` (:data:`themis.traces.repairs.RULES`).

    Raises
    ------
    TraceError
        The file is missing, empty, damaged, of another or of no known format, lacks a required
        column, or has no usable row; or the format or an option is unknown.
    """
    from themis.traces.registry import read  # noqa: PLC0415 - loads polars and every reader

    return read(path, format, options)
