"""Directories that results go to, and the figures that are shown of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from themis.cli.console import Cell, Table, note
from themis.errors import ThemisError

if TYPE_CHECKING:
    from themis.workload.workload import Workload

__all__ = [
    "Summary",
    "check_output",
    "check_page",
    "metric_table",
    "over_seeds",
    "resumable",
    "say_remarks",
    "scaled",
    "tenant_table",
    "titled",
]

Summary = Mapping[str, float | bool | None]
"""Metrics of a run by name."""

_SHOWN = (
    "apps",
    "apps_done",
    "apps_infeasible",
    "apps_unfinished",
    "jobs",
    "rho_max",
    "rho_median",
    "share_rho_le_1_05",
    "jain",
    "app_completion_mean_s",
    "app_completion_p95_s",
    "makespan_s",
    "gpu_s",
    "utilisation",
    "placement_score",
    "preemptions",
    "auctions",
)
"""The metrics that a terminal shows; docs/metrics.md defines them."""

_HOUR_S = 3600.0
_MOST_TENANTS = 20
_IN_HOURS = {"s": "h", "GPU-s": "GPU-h"}


class _Probed(Exception):  # noqa: N818 - not an error
    """Leaves the probe of a directory before anything is put there."""


def check_output(directory: str | Path, *, force: bool, keeps: Iterable[Path] = ()) -> None:
    """Refuse, before a long run, a directory that could not be written after it.

    Raises
    ------
    ThemisError
        It is a file, holds foreign files or those of `keeps`, or cannot be written.
    """
    from themis.files.atomic_directory import new_directory  # noqa: PLC0415 - on use

    with suppress(_Probed), new_directory(Path(directory), force=force, keeps=keeps):
        raise _Probed


@contextmanager
def resumable(out: str) -> Iterator[None]:
    """Say where the runs are that had finished when somebody interrupts, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"the runs that had finished are in {Path(out).absolute()}; go on by the same command")
        raise


def metric_table(title: str, columns: Mapping[str, Summary]) -> Table:
    """Return the shown metrics, a row each, with a column for each policy or run.

    Times are in hours and GPU time in GPU-hours; metrics that no column has are left out.
    """
    rows: list[Sequence[Cell]] = []
    for name in _SHOWN:
        heading, scale = titled(name)
        cells = [summary.get(name) for summary in columns.values()]
        if all(cell is None for cell in cells):
            continue
        rows.append([heading, *(scaled(cell, scale) for cell in cells)])
    return Table(title=title, columns=["", *columns], rows=rows)


def tenant_table(tenants: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return what tenants got, a row each; None where there is one, or too many to read."""
    if not 1 < len(tenants) <= _MOST_TENANTS:
        return None
    rows = [
        [
            "(none)" if row["tenant"] is None else row["tenant"],
            row["apps"],
            row["gpu_s"] / _HOUR_S,
            row["gpu_share"],
            *(row[name] for name in ("rho_max", "rho_median", "rho_mean")),
            scaled(row["app_completion_mean_s"], _HOUR_S),
        ]
        for row in tenants
    ]
    columns = ["tenant", "apps", "GPU-h", "share", "worst rho", "median", "mean"]
    return Table(title="tenants", columns=[*columns, "mean completion (h)"], rows=rows)


def titled(name: str) -> tuple[str, float | None]:
    """Return a metric's title, with its unit where it is shown in hours, and what to divide by."""
    from themis.metrics.catalogue import CATALOGUE  # noqa: PLC0415 - on use

    metric = CATALOGUE[name]
    unit = _IN_HOURS.get(metric.unit)
    return (metric.title, None) if unit is None else (f"{metric.title} ({unit})", _HOUR_S)


def scaled(value: float | None, scale: float | None) -> float | None:
    """Return a metric's value as it is shown under the title of :func:`titled`."""
    return value if scale is None or value is None else value / scale


def over_seeds(runs: Sequence[tuple[str, Summary]]) -> dict[str, Summary]:
    """Return each policy's metrics: those of its only run, or the median over its seeds."""
    by_policy: dict[str, list[Summary]] = {}
    for policy, summary in runs:
        by_policy.setdefault(policy, []).append(summary)
    return {policy: _median(summaries) for policy, summaries in by_policy.items()}


def _median(summaries: Sequence[Summary]) -> Summary:
    if len(summaries) == 1:
        return summaries[0]
    known = {
        name: [value for run in summaries if (value := run[name]) is not None]
        for name in summaries[0]
    }
    return {name: median(values) if values else None for name, values in known.items()}


def check_page(path: Path, *, force: bool) -> None:
    """Refuse a place where no page can be written, before anything is read.

    Raises
    ------
    ThemisError
        It is a directory, has none, or is a file that is no HTML page.
    """
    if path.is_dir():
        raise ThemisError(f"{path}: is a directory: expected the name of an HTML file")
    if path.parent.exists() and not path.parent.is_dir():
        raise ThemisError(f"{path.parent}: exists and is not a directory")
    if not path.parent.is_dir():
        raise ThemisError(f"{path}: its directory does not exist")
    if path.exists() and path.suffix.lower() not in {".html", ".htm"} and not force:
        raise ThemisError(f"{path}: exists and is no HTML page: name another, or use --force")


def say_remarks(
    workload: Workload, runs: Sequence[tuple[str, Mapping[str, object]]], *, quiet: bool
) -> None:
    """Say what reading, transforming and simulating a workload had to remark, each once.

    `runs` has names and manifests; what is true of some only is said with their names.
    """
    from themis.results.remarks import remarks_of  # noqa: PLC0415 - what starts need not

    remarks: list[str] = []
    reading = workload.source.report
    if reading is not None and reading.rejected.height:
        remarks.append(
            f"{reading.rejected.height:,} of {reading.rows:,} rows of the trace were not used; "
            "themis check names them"
        )
    for remark in dict.fromkeys([*remarks, *workload.notes, *remarks_of(runs)]):
        note(remark, quiet=quiet)
