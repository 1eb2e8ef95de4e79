"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from themis.arguments import MOST_SEEDS

__all__ = [
    "SEEDS",
    "SEED_COUNT",
    "assignments",
    "force_option",
    "json_option",
    "never_loud_option",
    "quiet_option",
    "repair_option",
    "seed_option",
    "threads_option",
    "transform_option",
    "workers_option",
]

SEEDS = click.IntRange(min=0, max=2**64 - 1)
"""What a seed may be."""

SEED_COUNT = click.IntRange(min=1, max=MOST_SEEDS)
"""How many seeds one command may run."""

_PARALLEL = click.IntRange(min=1, max=1024)

Command = TypeVar("Command", bound=Callable[..., Any])


def assignments(
    _ctx: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Split texts of the form ``key=value``, each at its first equals sign.

    Raises
    ------
    click.BadParameter
        A text has no key or no equals sign.
    """
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{text!r} is not of the form key=value.")
        pairs.append((key.strip(), value.strip()))
    return tuple(pairs)


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
    )(command)


def quiet_option(command: Command) -> Command:
    """Add ``--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="No progress bars, no notes.")(command)


def never_loud_option(command: Command) -> Command:
    """Accept ``--quiet`` where there is neither a progress bar nor a note."""
    return click.option(
        "-q", "--quiet", is_flag=True, expose_value=False, help="Nothing to silence here."
    )(command)


def force_option(command: Command) -> Command:
    """Add ``--force``."""
    return click.option(
        "--force", is_flag=True, help="Replace a directory that holds other files; they are lost."
    )(command)


def seed_option(command: Command) -> Command:
    """Add ``--seed``; without it the scenario's seed holds, which is 0 by default."""
    return click.option(
        "--seed", type=SEEDS, metavar="N", help="Seed of every random choice.  [default: 0]"
    )(command)


def repair_option(command: Command) -> Command:
    """Add ``--repair``, which may stand several times."""
    return click.option(
        "--repair",
        "repairs",
        multiple=True,
        metavar="RULE=CHOICE",
        callback=assignments,
        help="What to do with a class of trouble, such as conflicting_id=latest; repeatable.",
    )(command)


def transform_option(command: Command) -> Command:
    """Add ``--transform``, which may stand several times."""
    return click.option(
        "--transform",
        "transforms",
        multiple=True,
        metavar="KIND:KEY=VALUE,...",
        help="Transform the workload, such as window:end_s=86400; repeatable, in this order.",
    )(command)


def workers_option(command: Command) -> Command:
    """Add ``--workers``: how many runs are played at once. Results never depend on it."""
    return click.option(
        "--workers",
        type=_PARALLEL,
        metavar="N",
        help="Runs at once.  [default: as many as there are processors]",
    )(command)


def threads_option(command: Command) -> Command:
    """Add ``--threads``: how many threads read and tabulate. Results never depend on it."""
    return click.option(
        "--threads",
        type=_PARALLEL,
        metavar="N",
        expose_value=False,
        is_eager=True,
        callback=_limit_threads,
        help="Threads for reading and tables; results do not depend on it.",
    )(command)


def _limit_threads(_ctx: click.Context, _option: click.Parameter, value: int | None) -> None:
    if value is not None:
        os.environ["POLARS_MAX_THREADS"] = str(value)  # read when polars is first imported
