"""A figure's table as rows of text and numbers, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence

from themis.reproduction.panels import Panel
from themis.reproduction.tables import Cell, PanelTable

__all__ = ["headings", "place_name", "rows"]


def headings(panel: Panel) -> list[str]:
    """Return the columns: place, series, and of each measure ours, its range, and the paper's."""
    found = [panel.x_title] if panel.x is not None else []
    found.append(panel.series.rsplit(".", 1)[-1].removesuffix("s"))
    for measure in panel.measures:
        found += [measure.title, "range", "paper"]
    return found


def rows(table: PanelTable) -> list[list[str | float | None]]:
    """Return a row a series at each place."""
    panel = table.panel
    found = []
    for x in table.x:
        for one in table.series:
            row: list[str | float | None] = (
                [one] if panel.x is None else [place_name(panel, x), one]
            )
            for measure in panel.measures:
                row += _cells(table.cells.get((measure.name, one, x)))
            found.append(row)
    return found


def place_name(panel: Panel, x: object) -> str:
    """Return what a place on a panel's axis is called."""
    return panel.x_names.get(x, f"{x:g}" if isinstance(x, float | int) else str(x))


def _cells(cell: Cell | None) -> Sequence[str | float | None]:
    if cell is None or cell.median is None:
        return [None, "", None if cell is None else cell.paper]
    one = cell.seeds == 1 or cell.low == cell.high
    return [cell.median, "" if one else f"{cell.low:.4g} to {cell.high:.4g}", cell.paper]
