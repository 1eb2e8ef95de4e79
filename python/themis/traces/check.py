"""Reading a trace only to report on it."""

from __future__ import annotations

from os import PathLike

from themis.checking.check import CheckReport, ClusterSize
from themis.traces import read_trace

__all__ = ["check_trace"]


def check_trace(
    path: str | PathLike[str],
    format: str | None = None,  # noqa: A002 - as in read_trace
    cluster: ClusterSize | None = None,
    **options: object,
) -> CheckReport:
    """Read a trace and report on it; parameters and errors are those of `read_trace`.

    Parameters
    ----------
    path, format, **options
        As in :func:`themis.read_trace`.
    cluster
        Where the workload would run.

    Raises
    ------
    TraceError
        The trace cannot be read, or has no usable row.
    """
    return read_trace(path, format, **options).check(cluster)
