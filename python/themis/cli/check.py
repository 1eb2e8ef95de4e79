"""``themis check``: what is wrong with a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from themis.cli.console import note, print_json
from themis.cli.exits import ExitCode
from themis.cli.options import (
    json_option,
    quiet_option,
    threads_option,
    transform_option,
)
from themis.cli.results import check_page
from themis.cli.trace_flags import read_flagged, trace_flags

if TYPE_CHECKING:
    from themis.cluster.cluster import Cluster

__all__ = ["check"]


@click.command(short_help="Say what is wrong with a trace, by line and class.")
@trace_flags
@click.option(
    "--cluster",
    metavar="SPEC",
    help="Report the load that the trace would offer: 4x(8x8), a TOML file, or a machine list.",
)
@transform_option
@click.option(
    "--strict", is_flag=True, help="Exit with 4 when there are problems that no --repair settles."
)
@click.option("--html", metavar="FILE", help="Write the report as a page with charts, too.")
@threads_option
@json_option
@quiet_option
@click.pass_context
def check(
    context: click.Context,
    *,
    trace: str,
    format_: str | None,
    options: tuple[tuple[str, str], ...],
    repairs: tuple[tuple[str, str], ...],
    transforms: tuple[str, ...],
    cluster: str | None,
    strict: bool,
    html: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say what is wrong with TRACE, by line and class, and what was done about it.

    Totals before and after show that no work was lost in silence.
    """
    from themis.workload.transforms import apply_transforms, parse_transforms  # noqa: PLC0415 - pydantic

    steps = parse_transforms(transforms)
    # Where the jobs' CPU cores and memory count, so do those of the machines.
    place = None if cluster is None else _cluster(cluster, dict(options).get("host", "leave_out"))
    if html is not None:
        check_page(Path(html), force=False)
    workload = read_flagged(trace, format_, options, repairs)
    workload = apply_transforms(workload, steps, cluster=place, seed=0)
    report = workload.check(place)
    if html is not None:
        from themis.report.check_page import write_check_page  # noqa: PLC0415 - charts load slowly

        page = write_check_page(report, workload, html).absolute()
        note(f"page: {page}", quiet=quiet)
    if as_json:
        print_json(report.to_dict())
    else:
        click.echo(report.to_text(), nl=False)
    if strict and not report.passed:
        context.exit(ExitCode.CHECK_FAILED)


def _cluster(text: str, host: str) -> Cluster:
    from themis.cluster.cluster import Cluster  # noqa: PLC0415 - loads polars
    from themis.scenario.scenario import cluster_table  # noqa: PLC0415 - the same
    from themis.traces.machine_lists import read_cluster  # noqa: PLC0415 - the same

    table = cluster_table(text)
    if "file" in table:
        return read_cluster(table["file"], host=host)
    return Cluster.parse(table["spec"])
