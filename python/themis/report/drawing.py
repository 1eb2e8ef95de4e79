"""Figures as SVG and PNG."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from markupsafe import Markup

from themis.errors import ThemisError
from themis.report.palette import themed
from themis.report.wording import visible

if TYPE_CHECKING:
    from themis.report.look import Figure

__all__ = ["inlined", "png", "svg"]

_PNG_SCALE = 2.0


def svg(figure: Figure, background: str) -> str:
    """Return a figure as SVG."""
    import vl_convert  # noqa: PLC0415 - large

    spec = {**figure.chart.to_dict(), "background": background}
    drawn = str(vl_convert.vegalite_to_svg(spec, vl_version=_vega_lite()))
    return visible(_renumbered(drawn, figure.name))


def _renumbered(svg: str, name: str) -> str:
    """Name the clip paths by figure and order; the converter counts on from chart to chart."""
    found = dict.fromkeys(re.findall(r'id="(clip\d+)"', svg))
    names = {old: f"{name}-clip{k}" for k, old in enumerate(found)}
    return re.sub(r"\bclip\d+\b", lambda match: names.get(match.group(), match.group()), svg)


def png(figure: Figure) -> bytes:
    """Return a figure as PNG, two pixels a point."""
    import vl_convert  # noqa: PLC0415 - large

    spec = {**figure.chart.to_dict(), "background": "white"}
    return bytes(vl_convert.vegalite_to_png(spec, vl_version=_vega_lite(), scale=_PNG_SCALE))


def _vega_lite() -> str:
    from altair import SCHEMA_VERSION  # noqa: PLC0415 - slow

    return ".".join(SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def inlined(figure: Figure) -> Markup:
    """Return the SVG of a figure to stand inside a page: it scales, and is one image with a name.

    What its parts are is of no use to a screen reader; the name says what the whole shows.
    """
    drawn = themed(svg(figure, "transparent"))
    drawn = re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", drawn)
    opening = re.match(r"<svg[^>]*>", drawn)
    box = re.search(r'viewBox="[^"]*"', opening.group()) if opening else None
    if opening is None or box is None:
        raise ThemisError(f"figure {figure.name}: the converter gave no SVG with a view box")
    label = html.escape(f"{figure.title}. {figure.description}", quote=True)
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box.group()} role="img" aria-label="{label}">'
    )
    return Markup(start + drawn[opening.end() :])  # noqa: S704 - our own SVG, its texts escaped by Vega
