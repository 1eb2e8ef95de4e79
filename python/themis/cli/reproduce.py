"""``themis reproduce``: figures of a paper, ours beside the paper's."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from themis.cli.console import Table, note, print_json, print_table
from themis.cli.exits import ExitCode
from themis.cli.options import (
    SEED_COUNT,
    assignments,
    force_option,
    json_option,
    quiet_option,
    threads_option,
    workers_option,
)
from themis.cli.progress import RunsDone, run_bar
from themis.cli.results import check_page, resumable

if TYPE_CHECKING:
    from themis.reproduction import Reproduction
    from themis.sweeps.result import SweepRun

__all__ = ["reproduce"]


@click.command(short_help="Reproduce the figures of a paper.")
@click.argument("paper", type=click.Choice(["nsdi20"]))
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="N",
    help="A figure, 9 to 19, or table3, table5; repeatable.  [default: all]",
)
@click.option("--quick", is_flag=True, help="Fewer seeds and fewer points, in under a minute.")
@click.option(
    "--seeds",
    type=SEED_COUNT,
    metavar="N",
    help="Runs a point.  [default: 11, quick: 3]",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    callback=assignments,
    help="A setting of all runs, such as preset=nsdi20; repeatable.",
)
@workers_option
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    default="themis-nsdi20",
    show_default=True,
    help="Directory for the page and the runs; what was played there is not played again.",
)
@force_option
@threads_option
@json_option
@quiet_option
@click.pass_context
def reproduce(
    context: click.Context,
    *,
    paper: str,  # noqa: ARG001 - the only one there is
    figures: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    pairs: tuple[tuple[str, str], ...],
    workers: int | None,
    out: str,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Reproduce the figures of PAPER: Mahajan et al., NSDI 2020.

    Simulates the paper's workloads, prints each figure as a table with ours (median over the
    seeds, lowest and highest) beside the paper's, and says of each claim about orderings and
    shapes whether it holds. A claim that does not hold is no failure: the exit code is 0.
    """
    from themis.settings.overrides import parse_text_value  # noqa: PLC0415 - pydantic loads slowly

    page = Path(out).absolute() / "report.html"
    if page.parent.exists():
        check_page(page, force=force)
    settings = {key: parse_text_value(text) for key, text in pairs}
    started = time.perf_counter()
    with resumable(out), _Bars(quiet=quiet) as bars:
        from themis.reproduction import reproduce as play  # noqa: PLC0415 - loads polars

        done = play(
            figures or None,
            quick=quick,
            seeds=seeds,
            settings=settings,
            out=out,
            workers=workers,
            force=force,
            progress=bars,
        )
    note(f"{bars.played} runs in {time.perf_counter() - started:.0f} s", quiet=quiet)
    from themis.reproduction.page import write_reproduction  # noqa: PLC0415 - charts load slowly

    write_reproduction(done, page)
    _show(done, page, as_json=as_json)
    if done.failures:
        for failure in done.failures:
            note(f"failed: {failure}")
        context.exit(ExitCode.RUN_FAILED)


class _Bars:
    """A bar an experiment."""

    def __init__(self, *, quiet: bool) -> None:
        self.played = 0
        self._quiet = quiet
        self._name = ""
        self._stack = ExitStack()
        self._bar: RunsDone | None = None

    def __call__(self, name: str, finished: int, total: int, run: SweepRun | None) -> None:
        if name != self._name:
            self._stack.close()
            self._bar = self._stack.enter_context(run_bar(name, quiet=self._quiet))
            self._name = name
        self.played += run is not None
        if self._bar is not None:
            self._bar(finished, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _show(done: Reproduction, page: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({**done.summary(), "report": str(page)})
        return
    from themis.reproduction.layout import headings, rows  # noqa: PLC0415 - loads polars

    for table in done.tables:
        panel = table.panel
        title = f"{panel.heading}: {panel.title}"
        print_table(Table(title=title, columns=headings(panel), rows=rows(table)))
        for one in table.verdicts:
            click.echo(
                f"{one.word + ':':9}{one.claim}" + (f" ({one.because})" if one.because else "")
            )
        click.echo(f"note: {panel.note}\n" if panel.note else "")
    said = f"{done.count('ok')} claims hold, {done.count('differs')} differ"
    missing = done.count("not run")
    click.echo(f"{said}, {missing} not run" if missing else said)
    click.echo(f"report: {page}")
