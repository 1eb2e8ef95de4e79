"""What commands print: tables and JSON on standard output, notes on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

__all__ = ["Cell", "Table", "note", "number", "print_json", "print_table"]

Cell = str | int | float | bool | None

_LONGEST_NOTE = 4000
_LONG = 1e15  # from here on digits hide how large a number is


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table to print: text columns stand left, all others right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


def note(text: str, *, quiet: bool = False) -> None:
    """Write a remark to standard error, unless the user asked for quiet.

    As in tables, no name steers the terminal, and none makes a line of its own: only lines that
    are set in by two blanks stay lines. What is long is cut.
    """
    if quiet:
        return
    lines = [_printable(line) for line in re.split(r"\n(?=  )", text)]
    whole = "\n".join(lines)
    cut = f" ... ({len(whole):,} characters)" if len(whole) > _LONGEST_NOTE else ""
    click.echo(f"themis: {whole[:_LONGEST_NOTE]}{cut}", err=True)


def print_json(document: Mapping[str, object]) -> None:
    """Write one JSON document to standard output; NaN is refused."""
    click.echo(json.dumps(document, allow_nan=False, indent=2))


def number(value: Cell, digits: int = 4) -> str:
    """Return a cell's text: ``digits`` significant digits, grouped thousands, n/a for None.

    Control characters of a text are written out, so that no name steers the terminal.
    """
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        grouped = 10 ** (digits - 1) <= abs(value) < _LONG
        return f"{value:,.0f}" if grouped else f"{value:.{digits}g}"
    return _printable(value)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def print_table(table: Table) -> None:
    """Write a table to standard output: drawn on a terminal, plain aligned text elsewhere."""
    texts = [[number(cell) for cell in row] for row in table.rows]
    right = [
        any(isinstance(row[k], (int, float)) for row in table.rows)
        for k in range(len(table.columns))
    ]
    if sys.stdout.isatty():
        _print_drawn(table, texts, right)
    else:
        _print_plain(table, texts, right)


def _print_plain(table: Table, texts: list[list[str]], right: list[bool]) -> None:
    lines = [list(table.columns), *texts]
    widths = [max(len(line[k]) for line in lines) for k in range(len(table.columns))]
    click.echo(table.title)
    for line in lines:
        cells = (
            text.rjust(width) if flush else text.ljust(width)
            for text, width, flush in zip(line, widths, right, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def _print_drawn(table: Table, texts: list[list[str]], right: list[bool]) -> None:
    from rich import box  # noqa: PLC0415 - loaded only for a terminal
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table as Drawn  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    drawn = Drawn(title=table.title, title_justify="left", box=box.SIMPLE_HEAD)
    for name, flush in zip(table.columns, right, strict=True):
        drawn.add_column(Text(name), justify="right" if flush else "left", overflow="fold")
    for line in texts:
        drawn.add_row(*map(Text, line))
    Console(file=sys.stdout).print(drawn)
