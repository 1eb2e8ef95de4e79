"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = [
    "SEEDS",
    "Assignment",
    "force_option",
    "json_option",
    "quiet_option",
    "seed_option",
    "threads_option",
]

SEEDS = click.IntRange(0, 2**63 - 1)
"""What a seed may be."""

Command = TypeVar("Command", bound=Callable[..., Any])


class Assignment(click.ParamType):
    """The text ``key=value``, as a pair."""

    name = "key=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first equals sign."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(f"{value!r} is not of the form key=value", param, ctx)
        return key.strip(), text.strip()


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
    )(command)


def quiet_option(command: Command) -> Command:
    """Add ``--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="No progress bars, no notes.")(command)


def force_option(command: Command) -> Command:
    """Add ``--force``."""
    return click.option(
        "--force", is_flag=True, help="Replace a directory that holds other files; they are lost."
    )(command)


def seed_option(command: Command) -> Command:
    """Add ``--seed``; without it the scenario's seed holds, which is 0 by default."""
    return click.option(
        "--seed", type=SEEDS, default=None, help="Seed of every random choice.  [default: 0]"
    )(command)


def threads_option(command: Command) -> Command:
    """Add ``--threads``: how many threads read and tabulate. Results never depend on it."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        default=None,
        expose_value=False,
        is_eager=True,
        callback=_limit_threads,
        help="Threads for reading and tables; results do not depend on it.",
    )(command)


def _limit_threads(_ctx: click.Context, _option: click.Parameter, value: int | None) -> None:
    if value is not None:
        os.environ["POLARS_MAX_THREADS"] = str(value)  # read when polars is first imported
