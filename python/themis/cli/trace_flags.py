"""The flags that say how a trace is read, and the workload that it then is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from themis.cli.options import assignments, repair_option
from themis.errors import TraceError

if TYPE_CHECKING:
    from themis.workload.workload import Workload

__all__ = ["read_flagged", "trace_flags"]

Pairs = tuple[tuple[str, str], ...]
Command = TypeVar("Command", bound=Callable[..., Any])


def trace_flags(command: Command) -> Command:
    """Add the argument TRACE, and ``--format``, ``--option`` and ``--repair``."""
    for option in (
        repair_option,
        click.option(
            "--option",
            "options",
            multiple=True,
            metavar="KEY=VALUE",
            callback=assignments,
            help="Option of the format.",
        ),
        click.option("--format", "format_", metavar="NAME", help="Format; without it: recognised."),
        click.argument("trace"),
    ):
        command = option(command)
    return command


def read_flagged(trace: str, format_: str | None, options: Pairs, repairs: Pairs) -> Workload:
    """Read a trace as its flags say.

    Raises
    ------
    TraceError
        The trace cannot be read, or an option or a repair is unknown.
    """
    from themis.settings.overrides import parse_text_value  # noqa: PLC0415 - pydantic loads slowly
    from themis.traces import read_trace  # noqa: PLC0415 - loads polars

    values = {key: parse_text_value(text) for key, text in options}
    for name in sorted({"path", "format", "cluster"} & set(values)):
        raise TraceError(
            f"{trace}: option {name!r} is unknown: it is a flag or argument of its own"
        )
    if repairs:
        values["repair"] = dict(repairs)
    return read_trace(trace, format_, **values)
