"""The tables of docs/reproduction.md, from what `themis reproduce nsdi20 --json` printed.

themis reproduce nsdi20 -o out/ --json > out/nsdi20.json
python bench/reproduction_page.py out/nsdi20.json --write docs/reproduction.md
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.pages import put, table

from themis.reproduction.layout import place_name
from themis.reproduction.panels import PANELS, Panel

Cells = Mapping[tuple[str, str, object], Mapping[str, Any]]


def sections(document: Mapping[str, Any]) -> Iterator[str]:
    """Heading, table and claims of each panel."""
    panels = {panel.name: panel for panel in PANELS}
    for figure in document["figures"]:
        panel = panels[f"{figure['figure']} {figure['part']}".strip()]
        cells = {(one["measure"], one["series"], one["x"]): one for one in figure["cells"]}
        yield f"\n### {panel.heading}: {panel.title}\n\n{values(panel, cells)}\n"
        yield from (f"- {claim['verdict']}: {claim['claim']}\n" for claim in figure["claims"])


def values(panel: Panel, cells: Cells) -> str:
    """Places side by side where several series have one measure, else its measures."""
    series = list(dict.fromkeys(one for _, one, _ in cells))
    places = list(dict.fromkeys(x for _, _, x in cells))
    if panel.x is not None and len(panel.measures) == 1 and len(series) > 1:
        measure = panel.measures[0]
        head = [f"{measure.title}, ours / paper", *(place_name(panel, x) for x in places)]
        lines = ([one, *(pair(cells[measure.name, one, x]) for x in places)] for one in series)
        return table(head, lines)
    head = [*([] if panel.x is None else [panel.x_title]), ""]
    rows = []
    for x in places:
        for one in series:
            row = [one] if panel.x is None else [place_name(panel, x), one]
            for measure in panel.measures:
                cell = cells[measure.name, one, x]
                low, high = number(cell["low"]), number(cell["high"])
                row += [f"{number(cell['median'])} ({low} to {high})", number(cell["paper"])]
            rows.append(row)
    return table([*head, *(word for of in panel.measures for word in (of.title, "paper"))], rows)


def pair(cell: Mapping[str, Any]) -> str:
    """Our median and the paper's value."""
    return f"{number(cell['median'])} / {number(cell['paper'])}"


def number(value: float | None) -> str:
    """Three digits; a dash where there is none."""
    if value is None:
        return "\N{EN DASH}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    """Write the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("json", type=Path, help="what --json printed")
    options.add_argument("--write", type=Path, metavar="PAGE", help="page with the markers")
    given = options.parse_args()
    document = json.loads(given.json.read_text(encoding="utf-8"))
    put("".join(sections(document)), "reproduction", given.write)


if __name__ == "__main__":
    main()
