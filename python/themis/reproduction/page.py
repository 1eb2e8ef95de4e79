"""The page of a reproduction: every figure with its plots, claims and values."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from themis.report.html_page import rendered, write_page

if TYPE_CHECKING:
    from themis.reproduction.running import Reproduction

__all__ = ["write_reproduction"]


def write_reproduction(done: Reproduction, path: str | PathLike[str]) -> Path:
    """Write a reproduction as one self-contained HTML file without scripts.

    Parameters
    ----------
    done
        The figures.
    path
        The file; replaced if it exists. Its directory must exist.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ThemisError
        The file cannot be written.
    """
    from themis import __version__  # noqa: PLC0415 - loads the extension
    from themis.report.drawing import inlined  # noqa: PLC0415 - altair loads slowly
    from themis.reproduction.charts import draw  # noqa: PLC0415 - the same
    from themis.reproduction.layout import headings, rows  # noqa: PLC0415 - the same

    page = rendered(
        "reproduction.html.j2",
        done=done,
        settings=", ".join(f"{key} = {value}" for key, value in done.settings.items()),
        panels=[
            (
                table,
                [(figure, inlined(figure)) for figure in draw(table)],
                headings(table.panel),
                [[_text(cell) for cell in row] for row in rows(table)],
            )
            for table in done.tables
        ],
        version=__version__,
    )
    return write_page(page, path)


def _text(cell: str | float | None) -> str:
    if cell is None:
        return "\N{EN DASH}"
    return cell if isinstance(cell, str) else f"{cell:.4g}"
