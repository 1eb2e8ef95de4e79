"""The report: one HTML file without scripts or anything from elsewhere; and single figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from themis.errors import ThemisError
from themis.files.atomic_file import new_file
from themis.report.drawing import inlined, png, svg
from themis.report.html_page import rendered, write_page
from themis.report.many import MANY, drawn_part
from themis.report.notes import run_facts, run_notes
from themis.report.palette import policy_colours, series_variable
from themis.report.tables import (
    cut_off_rows,
    flattened,
    metric_rows,
    tenant_rows,
    winners_of,
)
from themis.results.compared import Compared
from themis.results.digest import RunDigest, app_rows, digest
from themis.results.result import Result

if TYPE_CHECKING:
    from themis.report.charts import Figure

__all__ = ["Reportable", "figures", "write_report"]

Reportable = Result | Compared | Iterable[Result]
"""What a report can be about."""

_FORMATS = ("png", "svg")


def write_report(
    subject: Reportable, path: str | PathLike[str], *, baseline: str | None = None
) -> Path:
    """Write a report on one run or several as one self-contained HTML file.

    The page has static SVG charts and no script, and refers to nothing outside itself. The same
    subject gives the same bytes.

    Parameters
    ----------
    subject
        A result, several (an iterator is drained one by one), or a comparison.
    path
        The file; replaced if it exists. Its directory must exist.
    baseline
        The run, by its name on the page, that gains and losses are against; None: the
        comparison's, or :func:`themis.results.paired.default_baseline`.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ThemisError
        There is no run to report on, none is called `baseline`, or the file cannot be written.
    """
    return write_page(_render(_gathered(subject, baseline)), path)


def figures(
    subject: Reportable,
    directory: str | PathLike[str],
    formats: Sequence[str] = _FORMATS,
    *,
    baseline: str | None = None,
) -> list[Path]:
    """Write every figure of the report as a file of its own.

    Parameters
    ----------
    subject
        As for :func:`write_report`.
    directory
        Created if missing; files of the same names are replaced.
    formats
        Of png (two pixels a point) and svg.
    baseline
        As for :func:`write_report`.

    Returns
    -------
    list of pathlib.Path
        The files.

    Raises
    ------
    ThemisError
        A format is unknown, there is no run, or a file cannot be written.
    """
    unknown = [name for name in formats if name not in _FORMATS]
    if unknown:
        raise ThemisError(f"format {unknown[0]!r} is unknown: expected {', '.join(_FORMATS)}")
    root = Path(directory)
    files = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        for figure in draw(_gathered(subject, baseline)):
            for suffix in formats:
                file = root / f"{figure.name}.{suffix}"
                drawn = svg(figure, "white").encode() if suffix == "svg" else png(figure)
                with new_file(file) as partial:
                    partial.write_bytes(drawn)
                files.append(file)
    except OSError as error:
        raise ThemisError(f"{root}: cannot be written: {error.strerror}") from error
    return files


def _gathered(subject: Reportable, baseline: str | None) -> Compared:
    """Return all runs of the subject side by side, against the baseline."""
    compared = subject if isinstance(subject, Compared) else _side_by_side(subject)
    if baseline is None:
        return compared
    if baseline not in compared.policies:
        known = ", ".join(compared.policies)
        raise ThemisError(f"baseline {baseline!r} is not on the page: expected one of {known}")
    return replace(compared, baseline=baseline)


def _side_by_side(subject: Result | Iterable[Result]) -> Compared:
    """Return the runs of results, of which only the digests are kept."""
    runs, apps = [], []
    for result in [subject] if isinstance(subject, Result) else subject:
        runs.append(digest(result))
        apps.append(app_rows(result, result.policy))
        del result  # an iterator may load the next
    if not runs:
        raise ThemisError("no run to report on: expected at least one result")
    runs = _told_apart(runs)
    rows = [
        frame.with_columns(pl.lit(run.label).alias("policy"))
        for run, frame in zip(runs, apps, strict=True)
    ]
    return Compared(runs, pl.concat(rows))


def _told_apart(runs: list[RunDigest]) -> list[RunDigest]:
    """Rename runs of one policy by the settings in which they differ."""
    labels: list[str] = []
    for run in runs:
        alike = [other for other in runs if other.label == run.label]
        mine = dict(flattened({"settings": run.manifest.get("settings", {})}))
        differing = [
            f"{key.removeprefix('settings.')}={value}"
            for key, value in mine.items()
            if any(
                dict(flattened({"settings": other.manifest.get("settings", {})})).get(key) != value
                for other in alike
            )
        ]
        labels.append(" ".join([run.label, *differing]))
    for index, run in enumerate(runs):
        twins = [k for k in range(index) if (labels[k], runs[k].seed) == (labels[index], run.seed)]
        if twins:
            labels[index] = f"{labels[index]} #{len(twins) + 1}"
    return [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]


def draw(comparison: Compared) -> list[Figure]:
    """Draw the figures of a report."""
    from themis.report.charts import draw_figures  # noqa: PLC0415 - altair loads slowly

    return draw_figures(comparison)


def _render(comparison: Compared) -> str:
    runs, labels = comparison.runs, comparison.policies
    many, drawn = len(labels) > MANY, drawn_part(comparison)
    return rendered(
        "report.html.j2",
        drawn=[(figure, inlined(figure)) for figure in draw(comparison)],
        facts=run_facts(runs),
        seeds=len({run.seed for run in runs}),
        version=runs[0].manifest.get("themis_version", ""),
        labels=labels,
        colours=[series_variable(colour) for colour in policy_colours(labels).values()],
        headline=metric_rows(runs, headline=True),
        details=metric_rows(runs, headline=False),
        many=many,
        kind="combinations" if any(run.point for run in runs) else "policies",
        drawn_labels=drawn.policies,
        notes=run_notes(drawn.runs, complete=comparison.complete),
        winners=winners_of(comparison, extremes=drawn.policies),
        cut_off=cut_off_rows(runs),
        tenants=tenant_rows(drawn),
        manifests=[
            (f"{run.label}, seed {run.seed}", flattened(run.manifest)) for run in drawn.runs
        ],
    )
