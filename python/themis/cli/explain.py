"""``themis explain``: why an app or a job waited, and what would have started it sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from themis.cli.console import Cell, Table, note, print_json, print_table
from themis.cli.options import json_option, quiet_option, threads_option

if TYPE_CHECKING:
    import polars as pl

    from themis.explanations import Explanation

__all__ = ["explain"]

_MOST_ROWS = 10
_MOST_EVENTS, _LAST_EVENTS = 40, 12


@click.command(short_help="Say why an app waited, and what would have helped.")
@click.argument("directory", metavar="DIR")
@click.option("--app", "app_id", metavar="ID", help="The app to explain.")
@click.option("--job", "job_id", metavar="ID", help="Or the job.")
@click.option(
    "--at",
    "at_s",
    type=float,
    metavar="S",
    help="Explain the decision at this second.  [default: the one that ended its longest wait]",
)
@click.option(
    "--no-what-if", is_flag=True, help="Try no changes that would have started it sooner."
)
@threads_option
@json_option
@quiet_option
def explain(
    *,
    directory: str,
    app_id: str | None,
    job_id: str | None,
    at_s: float | None,
    no_what_if: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Explain what happened to an app or a job of a result.

    DIR is a result of `themis run`, or one of a comparison. Shows its timeline, who held the GPUs
    while it waited, the auction that decided, and the smallest change that would have started it
    sooner, found by playing the scenario again with changes.
    """
    if (app_id is None) == (job_id is None):
        raise click.UsageError("Name what to explain: either --app ID or --job ID.")
    from themis.explanations import explain as explained  # noqa: PLC0415 - loads polars

    found = explained(
        directory,
        app_id=app_id,
        job_id=job_id,
        at_s=at_s,
        what_if=not no_what_if,
        tell=lambda text: note(text, quiet=quiet),
    )
    if as_json:
        print_json(found.to_dict())
        return
    _show(found)
    for remark in found.notes:
        note(remark, quiet=quiet)


def _show(found: Explanation) -> None:
    for line in found.why:
        click.echo(line)
    _print("timeline", found.timeline, last=_LAST_EVENTS, most=_MOST_EVENTS)
    if not found.holders.is_empty():
        columns = ("app_id", "user", "arrival_s", "gpus_mean", "share")
        _print("who held GPUs while it waited", found.holders.select(columns))
    if found.auction is not None:
        _print("winners of the auction", found.auction.winners)
    if found.changes is not None:
        _print("what would have started it sooner", found.changes, most=_MOST_EVENTS)


def _print(title: str, frame: pl.DataFrame, *, most: int = _MOST_ROWS, last: int = 0) -> None:
    """Print the first rows of a frame and, of those that are too many, the last ones."""
    rows: list[tuple[Cell, ...]] = frame.rows()
    if len(rows) > most:
        title = f"{title} ({most} of {len(rows):,} rows; --json has all)"
        rows = [*rows[: most - last], *rows[len(rows) - last :]]
    click.echo()
    print_table(Table(title=title, columns=frame.columns, rows=rows))
