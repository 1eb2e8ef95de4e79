"""The report: one HTML file without scripts or anything from elsewhere; and single figures."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from themis.comparison import Comparison
from themis.digest import RunDigest, app_rows, digest
from themis.errors import ThemisError
from themis.report.notes import run_facts, run_notes
from themis.report.palette import css_variables, policy_colours, series_variable, themed
from themis.report.tables import flattened, metric_rows, winners_of
from themis.result import Result

if TYPE_CHECKING:
    from themis.report.charts import Figure

__all__ = ["Reportable", "figures", "write_report"]

Reportable = Result | Comparison | Iterable[Result]
"""What a report can be about."""

_FORMATS = ("png", "svg")
_PNG_SCALE = 2.0


def write_report(subject: Reportable, path: str | PathLike[str]) -> Path:
    """Write a report on one run or several as one self-contained HTML file.

    The page has static SVG charts and no script, and refers to nothing outside itself. The same
    subject gives the same bytes.

    Parameters
    ----------
    subject
        A result, several (an iterator is drained one by one), or a comparison.
    path
        The file; replaced if it exists. Its directory must exist.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ThemisError
        There is no run to report on, or the file cannot be written.
    """
    target = Path(path)
    page = _render(_gathered(subject))
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ThemisError(f"{target}: cannot be written: {error.strerror}") from error
    return target


def figures(
    subject: Reportable, directory: str | PathLike[str], formats: Sequence[str] = _FORMATS
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
        for figure in _figures(_gathered(subject).runs):
            for suffix in formats:
                file = root / f"{figure.name}.{suffix}"
                if suffix == "svg":
                    file.write_text(_svg(figure, "white"), encoding="utf-8")
                else:
                    file.write_bytes(_png(figure))
                files.append(file)
    except OSError as error:
        raise ThemisError(f"{root}: cannot be written: {error.strerror}") from error
    return files


def _gathered(subject: Reportable) -> Comparison:
    """All runs of the subject side by side; of its results only the digests are kept."""
    if isinstance(subject, Comparison):
        return subject
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
    return Comparison(runs, pl.concat(rows), results={})


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


def _render(comparison: Comparison) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - slow
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    environment = Environment(
        loader=PackageLoader("themis.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    runs, labels = comparison.runs, comparison.policies
    drawn = [
        (figure, Markup(_inlined(figure)))  # noqa: S704 - our own SVG, its texts escaped by Vega
        for figure in _figures(runs)
    ]
    return environment.get_template("report.html.j2").render(
        facts=run_facts(runs),
        seeds=len({run.seed for run in runs}),
        version=runs[0].manifest.get("themis_version", ""),
        labels=labels,
        colours=[series_variable(colour) for colour in policy_colours(labels).values()],
        headline=metric_rows(runs, headline=True),
        details=metric_rows(runs, headline=False),
        notes=run_notes(runs, complete=comparison.complete),
        winners=winners_of(comparison),
        drawn=drawn,
        manifests=[(f"{run.label}, seed {run.seed}", flattened(run.manifest)) for run in runs],
        light=Markup(css_variables(dark=False)),  # noqa: S704 - our own constants
        dark=Markup(css_variables(dark=True)),  # noqa: S704 - our own constants
    )


def _figures(runs: Sequence[RunDigest]) -> list[Figure]:
    from themis.report.charts import draw_figures  # noqa: PLC0415 - altair loads slowly

    return draw_figures(runs)


def _svg(figure: Figure, background: str) -> str:
    import vl_convert  # noqa: PLC0415 - large

    spec = {**figure.chart.to_dict(), "background": background}
    svg = str(vl_convert.vegalite_to_svg(spec, vl_version=_vega_lite()))
    return _renumbered(svg, figure.name)


def _renumbered(svg: str, name: str) -> str:
    """Name the clip paths by figure and order; the converter counts on from chart to chart."""
    found = dict.fromkeys(re.findall(r'id="(clip\d+)"', svg))
    names = {old: f"{name}-clip{k}" for k, old in enumerate(found)}
    return re.sub(r"\bclip\d+\b", lambda match: names.get(match.group(), match.group()), svg)


def _png(figure: Figure) -> bytes:
    import vl_convert  # noqa: PLC0415 - large

    spec = {**figure.chart.to_dict(), "background": "white"}
    return bytes(vl_convert.vegalite_to_png(spec, vl_version=_vega_lite(), scale=_PNG_SCALE))


def _vega_lite() -> str:
    from altair import SCHEMA_VERSION  # noqa: PLC0415 - slow

    return ".".join(SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _inlined(figure: Figure) -> str:
    """Return the SVG of a figure to stand inside a page: it scales, and is one image with a name.

    What its parts are is of no use to a screen reader; the name says what the whole shows.
    """
    svg = themed(_svg(figure, "transparent"))
    svg = re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", svg)
    opening = re.match(r"<svg[^>]*>", svg)
    box = re.search(r'viewBox="[^"]*"', opening.group()) if opening else None
    if opening is None or box is None:
        raise ThemisError(f"figure {figure.name}: the converter gave no SVG with a view box")
    label = html.escape(f"{figure.title}. {figure.description}", quote=True)
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box.group()} role="img" aria-label="{label}">'
    )
    return start + svg[opening.end() :]
