"""``themis report``: a page drawn from directories that earlier runs left."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from themis.cli.console import print_json
from themis.cli.options import json_option, never_loud_option
from themis.cli.results import check_page

if TYPE_CHECKING:
    from themis.comparison.comparison import Comparison
    from themis.results.result import Result

__all__ = ["report"]


@click.command(short_help="Draw a report from result directories.")
@click.argument("directories", nargs=-1, required=True, metavar="DIR...")
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    default="report.html",
    show_default=True,
    help="The page, one HTML file.",
)
@click.option("--figures", metavar="DIR", help="Write each figure there too, as PNG and SVG.")
@click.option(
    "--baseline",
    metavar="RUN",
    help="The policy, as the page calls it, that gains and losses are against.  "
    "[default: that of the comparison, else fifo or the first]",
)
@click.option("--force", is_flag=True, help="Replace a file that is not an HTML page.")
@json_option
@never_loud_option
def report(
    *,
    directories: tuple[str, ...],
    out: str,
    figures: str | None,
    baseline: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Draw a report from results of `themis run`, or from one comparison or sweep.

    The page needs no network. An earlier page of that name is replaced.
    """
    check_page(Path(out), force=force)
    import themis.report as pages  # noqa: PLC0415 - charts load slowly

    path = pages.write_report(_load(directories), out, baseline=baseline).absolute()
    files = []
    if figures is not None:
        files = pages.figures(_load(directories), figures, baseline=baseline)
    if as_json:
        drawn = [str(file.absolute()) for file in files]
        print_json({"report": str(path), "figures": drawn})
        return
    for file in files:
        click.echo(f"figure: {file.absolute()}")
    click.echo(f"report: {path}")


def _load(directories: tuple[str, ...]) -> Comparison | Iterable[Result]:
    """Return a comparison or sweep, or results, loaded one by one; several must be results."""
    from themis.comparison.comparison import load_comparison  # noqa: PLC0415 - loads polars
    from themis.files.atomic_directory import read_json_object  # noqa: PLC0415 - on use
    from themis.results.result import load_result  # noqa: PLC0415 - the same
    from themis.sweeps import load_sweep  # noqa: PLC0415 - the same

    if len(directories) == 1:
        manifest = Path(directories[0]) / "manifest.json"
        kind = read_json_object(manifest).get("kind") if manifest.is_file() else None
        if kind == "comparison":
            return load_comparison(directories[0])
        if kind == "sweep":
            return load_sweep(directories[0]).comparison()
    return map(load_result, directories)
