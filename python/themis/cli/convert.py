"""``themis convert``: any trace as files of the native format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from themis.cli.console import note, print_json
from themis.cli.options import json_option, quiet_option, threads_option
from themis.cli.results import say_remarks
from themis.cli.trace_flags import read_flagged, trace_flags

if TYPE_CHECKING:
    from themis.workload.workload import Workload

__all__ = ["convert", "say_written"]


@click.command(short_help="Write any trace as tables of the native format.")
@trace_flags
@click.option(
    "--to",
    "form",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    show_default=True,
    help="Kind of the files.",
)
@click.option("-o", "--out", metavar="DIR", required=True, help="Where to write apps and jobs.")
@threads_option
@json_option
@quiet_option
def convert(
    *,
    trace: str,
    format_: str | None,
    options: tuple[tuple[str, str], ...],
    repairs: tuple[tuple[str, str], ...],
    form: str,
    out: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write TRACE, of any format that is known, as a table of apps and one of jobs."""
    workload = read_flagged(trace, format_, options, repairs)
    say_remarks(workload, [], quiet=quiet)
    place = workload.write(Path(out), form=form)
    if form == "csv" and (workload.source.origin or workload.notes):
        note("CSV keeps neither the date of second 0 nor notes; Parquet does", quiet=quiet)
    say_written(workload, place, as_json=as_json)


def say_written(workload: Workload, place: Path, *, as_json: bool) -> None:
    """Say what was written, and where."""
    arrivals = workload.apps.get_column("arrival_s")
    if as_json:
        print_json(
            {
                "format": workload.source.format,
                "recognised": workload.source.recognised,
                "sha256": workload.source.sha256,
                "apps": workload.apps.height,
                "jobs": workload.jobs.height,
                "gpu_s": workload.gpu_seconds,
                "last_arrival_s": float(arrivals[-1]),
                "notes": list(workload.notes),
                "path": str(place.absolute()),
            }
        )
        return
    click.echo(
        f"{workload.source.format} ({workload.source.recognised}): {workload.apps.height:,} apps, "
        f"{workload.jobs.height:,} jobs, {workload.gpu_seconds / 3600:,.0f} GPU-hours, last "
        f"arrival at {arrivals[-1]:,.0f} s"
    )
    click.echo(f"workload: {place.absolute()}")
