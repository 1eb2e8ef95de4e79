"""How results look in a notebook: small HTML tables, every text in them escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["fact_table", "grid"]

_LEFT = ' style="text-align:left"'


def fact_table(
    title: str, facts: Iterable[tuple[str, object]], *, remarks: Iterable[str] = ()
) -> str:
    """Return a table with a row a fact, then remarks as a list; None is n/a."""
    return grid(title, (), [[name, value] for name, value in facts], remarks=remarks)


def grid(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    remarks: Iterable[str] = (),
) -> str:
    """Return a table whose first column names the rows.

    Parameters
    ----------
    title
        Its caption; empty: none.
    columns
        Headings; empty: none.
    rows
        Cells; floats to four digits, None as n/a.
    remarks
        Listed below.
    """
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    head = f"<thead><tr>{names}</tr></thead>" if names else ""
    body = "".join(
        f'<tr><th scope="row"{_LEFT}>{_text(first)}</th>'
        + "".join(
            f"<td{_LEFT if isinstance(cell, str) else ''}>{_text(cell)}</td>" for cell in rest
        )
        + "</tr>"
        for first, *rest in rows
    )
    items = "".join(f"<li>{html.escape(remark)}</li>" for remark in remarks)
    listed = f"<ul>{items}</ul>" if items else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{listed}"


def _text(value: object) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, float):
        return f"{value:.4g}"
    return html.escape(f"{value:,}" if type(value) is int else str(value))
