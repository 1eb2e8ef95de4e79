"""Numbers as people read them: durations, percentages, GPU-hours."""

from __future__ import annotations

import math
import re

from themis.metrics import Number
from themis.metrics.catalogue import Unit

__all__ = ["duration", "visible", "worded"]

_SCALED = {
    Unit.SHARE: (100.0, "\N{NO-BREAK SPACE}%"),
    Unit.GPU_SECONDS: (1 / 3600.0, "\N{NO-BREAK SPACE}GPU-h"),
}
_MOST_DECIMALS = 6
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0


def visible(text: str) -> str:
    """Return a text with replacement characters for what steers a terminal or a parser.

    Marks that turn the direction of reading are replaced too; line ends and tabs stay.
    """
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def worded(value: Number, unit: Unit) -> str:
    """Return `value` with its unit, to about three digits; a dash where there is none."""
    if value is None:
        return "\N{EN DASH}"
    if unit is Unit.FLAG:
        return "yes" if value else "no"
    number = float(value)
    if unit is Unit.SECONDS:
        return duration(number)
    if unit is Unit.COUNT:
        return f"{number:,.0f}"
    factor, name = _SCALED.get(unit, (1.0, ""))
    number *= factor
    return f"{number:,.{_decimals(number)}f}{name}"


def duration(seconds: float, *, gap: str = "\N{NO-BREAK SPACE}") -> str:
    """Return a length of time in its natural unit: 41.5 s, 12.0 min, 3.25 h, 18.4 d.

    `gap` stands between number and unit.
    """
    for unit_s, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if abs(seconds) >= 2 * unit_s:
            number = seconds / unit_s
            return f"{number:,.{_decimals(number)}f}{gap}{name}"
    return f"{seconds:.{_decimals(seconds)}f}{gap}s"


def _decimals(number: float) -> int:
    """Decimals that leave three digits: 123, 12.3, 1.23, 0.123, 0.0123; six at most."""
    if number == 0:
        return 0
    return min(max(2 - math.floor(math.log10(abs(number))), 0), _MOST_DECIMALS)
