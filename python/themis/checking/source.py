"""Where a workload came from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from themis.checking.problems import TraceReport

__all__ = ["TraceSource"]


@dataclass(frozen=True, eq=False)
class TraceSource:
    """Where a workload came from.

    Parameters
    ----------
    paths
        Files that were read, as given; empty for a generated workload.
    format
        Name of the reader or generator.
    recognised
        Why that reader was taken.
    sha256
        Hexadecimal digest of the bytes of the files in the order of `paths`.
    origin
        ISO time of second 0 where the source has time stamps, else None.
    report
        Accounts of the reading; None for a generated workload.
    """

    paths: tuple[str, ...] = ()
    format: str = "memory"
    recognised: str = "made in memory"
    sha256: str = ""
    origin: str | None = None
    report: TraceReport | None = None

    def with_report(self, report: TraceReport) -> TraceSource:
        """Return the same source with the accounts of its reading."""
        return replace(self, report=report)

    def with_files(self, paths: tuple[str, ...], sha256: str) -> TraceSource:
        """Return the same source with the files that were read."""
        return replace(self, paths=paths, sha256=sha256)

    def with_origin(self, origin: str | None) -> TraceSource:
        """Return the same source with the time of its second 0."""
        return replace(self, origin=origin)
