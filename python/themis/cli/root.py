"""The ``themis`` command: its sub-commands, loaded when they are used, and its version.

Nothing here may load polars, pydantic, rich or the extension: ``themis --help`` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import click

from themis.cli.exits import exit_code

__all__ = ["COMMANDS", "cli", "main"]

_ALLOCATOR = "_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0"
"""Lets the allocator of polars give back at once what is freed, rather than after ten seconds, by
when a run of a million jobs would have taken as much again. It reads this when polars is loaded."""


class Lazy(NamedTuple):
    """Where a sub-command lives, and the line that the overview shows for it."""

    module: str
    name: str
    summary: str


COMMANDS = {
    "demo": Lazy("demo", "demo", "Run a built-in workload under every policy; write a report."),
    "check": Lazy("check", "check", "Say what is wrong with a trace, by line and class."),
    "run": Lazy("run", "run", "Simulate one policy on a workload and a cluster."),
    "compare": Lazy("compare", "compare", "Simulate several policies on the same workload."),
    "sweep": Lazy("sweep", "sweep", "Simulate a scenario at every point of a grid."),
    "reproduce": Lazy("reproduce", "reproduce", "Reproduce the figures of a paper."),
    "explain": Lazy("explain", "explain", "Say why an app waited, and what would have helped."),
    "policies": Lazy("policies", "policies", "List the policies and what each is after."),
    "auction": Lazy("auction", "auction", "Clear one auction and show every bid and its fate."),
    "generate": Lazy("generate", "generate", "Make a synthetic workload and write it."),
    "convert": Lazy("convert", "convert", "Write any trace as tables of the native format."),
    "report": Lazy("report", "report", "Draw a report from result directories."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported on use and whose errors become exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None where there is none of that name."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        command = getattr(importlib.import_module(f"themis.cli.{place.module}"), place.name)
        if not isinstance(command, click.Command):
            raise TypeError(f"themis.cli.{place.module}.{place.name} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the overview from the summaries, without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.summary) for name, place in COMMANDS.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        windows_expand_args: bool = True,  # noqa: FBT001, FBT002 - the same
        **extra: Any,  # noqa: ANN401 - the same
    ) -> Any:  # noqa: ANN401 - the same
        """Run the command line; exits with the codes of :mod:`themis.cli.exits`."""

        def call() -> object:
            return super(LazyGroup, self).main(
                args,
                prog_name,
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )

        if not standalone_mode:
            return call()
        os.environ.setdefault(*_ALLOCATOR)
        sys.exit(exit_code(call))


def _show_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value and not ctx.resilient_parsing:
        from themis import __version__  # noqa: PLC0415 - looked up only when asked for

        click.echo(f"themis {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 done, 1 a run failed, 2 wrong usage, 3 bad input, 4 a check failed, "
        "130 interrupted."
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Finish-time fair GPU-cluster scheduling.

    Replay a GPU trace and see how its users would have fared under Themis and under other
    schedulers.
    """


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # names in traces may not fit the terminal
    cli.main(prog_name="themis")
    raise AssertionError("invariant: the command line exits by itself")
