"""Tables of studies: as Markdown, on standard output or between the markers of a page."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["put", "table"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def put(text: str, study: str, page: Path | None) -> None:
    """Print the tables of a study, or let them replace what its markers in a page enclose."""
    if page is None:
        sys.stdout.write(text)
        return
    marks = f"<!-- {study} -->\n", f"<!-- end of {study} -->\n"
    before, first, rest = page.read_text(encoding="utf-8").partition(marks[0])
    _, last, after = rest.partition(marks[1])
    if not (first and last):
        raise SystemExit(f"{page}: lacks the markers {marks[0].strip()} and {marks[1].strip()}")
    page.write_text(f"{before}{first}{text}\n{last}{after}", encoding="utf-8")
