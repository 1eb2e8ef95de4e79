"""Colours: one for each policy, wherever it is drawn, and readable on light and dark pages.

Hues are spread for the common kinds of colour blindness (after Okabe and Ito, 2008) and darkened
or lightened until each has a contrast of at least 3:1 to its page.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "GRID",
    "INK",
    "PARTS",
    "SERIES_BLUE",
    "app_colours",
    "css_variables",
    "policy_colours",
    "series_variable",
    "themed",
]

INK = "#1b1f24"
"""Text and axes; follows the page's text colour where a chart is part of a page."""

GRID = "#8b949e"
"""Grid lines and rules, on light and dark pages alike."""

_SERIES = {
    "#0b65b0": "#5aa9f0",  # blue
    "#c8500a": "#f08a4b",  # vermilion
    "#6a6f76": "#a9b1ba",  # grey
    "#087f5b": "#35c197",  # green
    "#a33b87": "#e08ac7",  # purple
    "#946200": "#d9a834",  # ochre
    "#3a3f9e": "#9aa0ff",  # indigo
    "#8c2f39": "#ef8791",  # crimson
    "#0a7d8c": "#4cc9d6",  # teal
    "#5c7a00": "#a8c545",  # olive
    "#7b4b2a": "#c79a77",  # brown
    "#d0307a": "#f47fb0",  # pink
    "#1d3557": "#7fa3d1",  # navy
    "#7a1fa2": "#c77dff",  # violet
}
"""Colour on a light page, and the same hue on a dark one."""

PARTS = {
    "useful": "#2a8f8f",
    "slowed by placement": "#d08a1d",
    "switching": "#b0578d",
    "lost to failures": "#b83232",
    "idle in a gang": "#868e96",
}
"""Parts of the GPU time held."""

SERIES_BLUE = "#0b65b0"
"""The first colour of a series, where there is only one."""

_GREY, _APPS = "#6a6f76", 10

_ORDER = (
    "themis",
    "tiresias",
    "fifo",
    "max_rho",
    "gandiva",
    "optimus",
    "srtf",
    "srsf",
    "slaq",
    "drf",
    "static",
    "fsp",
    "slack",
    "fifo_backfill",
)
_FIXED = {name: place for place, name in enumerate(_ORDER)} | {"las": 1}


def policy_colours(labels: Sequence[str]) -> dict[str, str]:
    """Return a colour a label; the built-in policies always have the same one."""
    light = list(_SERIES)
    taken = {light[_FIXED[label]] for label in labels if label in _FIXED}
    free = [colour for colour in light if colour not in taken]
    colours, used = {}, set[str]()
    for label in labels:
        fixed = light[_FIXED[label]] if label in _FIXED else None
        if fixed is not None and fixed not in used:
            colours[label] = fixed
        else:
            colours[label] = free.pop(0) if free else light[len(colours) % len(light)]
        used.add(colours[label])
    return colours


def app_colours() -> list[str]:
    """Return colours for apps, which are too many for one each; grey stays free."""
    return [colour for colour in _SERIES if colour != _GREY][:_APPS]


def css_variables(*, dark: bool) -> str:
    """Return the declarations of the series colours, `--series-0` and so on."""
    chosen = _SERIES.values() if dark else _SERIES
    return "".join(f"--series-{k}:{colour};" for k, colour in enumerate(chosen))


def series_variable(colour: str) -> str:
    """Return the CSS expression of a colour that :func:`policy_colours` gave."""
    return f"var(--series-{list(_SERIES).index(colour)})"


def themed(svg: str) -> str:
    """Let the colours of a chart follow the page around it."""
    for colour in _SERIES:
        svg = svg.replace(f'"{colour}"', f'"{series_variable(colour)}"')
    return svg.replace(f'"{INK}"', '"currentColor"')
