"""What an auction may be asked: ranges of numbers, names of choices, labels of slots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from themis.errors import ScenarioError
from themis.nearest import nearest

__all__ = [
    "CHOICES",
    "MOST_GPUS",
    "check_label",
    "check_number",
    "check_rules",
    "check_whole",
    "is_label",
    "is_whole",
]

CHOICES: Mapping[str, tuple[str, ...]] = {
    "solver": ("prices", "greedy", "milp"),
    "payment": ("lottery", "lease", "gpus", "gpus_random", "none"),
    "outside_option": ("min_bundle", "fair_share", "cached", "unbounded"),
    "leftover": ("random", "holders_first", "worst_first"),
}
"""The rules that are a choice of names."""

MOST_GPUS = 2**24

_REAL = (int, float)


def check_rules(rules: Mapping[str, Any]) -> None:
    """Refuse rules of a round that are out of range; those not given are fine.

    Raises
    ------
    ScenarioError
        The first rule that is wrong, with its value and what was expected.
    """
    for name, choices in CHOICES.items():
        if name in rules and rules[name] not in choices:
            hint = nearest(str(rules[name]), choices)
            raise ScenarioError(
                f"{name} is {rules[name]!r}{hint}: expected one of {', '.join(choices)}"
            )
    if "seed" in rules:
        check_whole("seed", rules["seed"], least=0, most=2**64 - 1)
    if "fairness_knob" in rules:
        check_number("fairness_knob", rules["fairness_knob"], "from 0 to 1", least=0, most=1)
    if "lease_s" in rules:
        check_number("lease_s", rules["lease_s"], "above 0", above=0)
    if rules.get("cluster_gpus") is not None:
        check_whole("cluster_gpus", rules["cluster_gpus"], least=1)


def is_whole(value: object, least: int, most: int) -> bool:
    """Whether it is a whole number from `least` to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def check_whole(where: str, value: object, *, least: int, most: int = MOST_GPUS) -> None:
    """Refuse what is no whole number from `least` to `most`.

    Raises
    ------
    ScenarioError
        `where`, the value, and the range.
    """
    if not is_whole(value, least, most):
        raise ScenarioError(
            f"{where} is {_short(value)}: expected a whole number from {least} to {most}"
        )


def check_number(  # noqa: PLR0913 - kinds of bounds
    where: str,
    value: object,
    expected: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    infinite: bool = False,
) -> None:
    """Refuse what is no number in range, or not finite; `infinite` allows infinity.

    Raises
    ------
    ScenarioError
        `where`, the value, and `expected` in words.
    """
    number = math.nan
    if isinstance(value, _REAL) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # a whole number of more than 308 digits
            number = math.nan
    fine = math.isfinite(number) or (infinite and number == math.inf)
    if not (fine and number > above and least <= number <= most):
        raise ScenarioError(f"{where} is {_short(value)}: expected a number {expected}")


def is_label(value: object) -> bool:
    """Whether it can name an app, rack, machine or slot: 64 bits, or text that UTF-8 can write."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    return is_whole(value, -(2**63), 2**63 - 1)


def check_label(where: str, value: object) -> None:
    """Refuse what can't name an app, rack, machine or slot.

    Raises
    ------
    ScenarioError
        It is neither a whole number of 64 bits nor text that UTF-8 can write.
    """
    if not is_label(value):
        raise ScenarioError(f"{where} is {_short(value)}: expected a whole number or Unicode text")


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - one line
