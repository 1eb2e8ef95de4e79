"""Arguments that are what they should be, or one clear error."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from pathlib import Path

from themis.errors import ThemisError, TraceError

__all__ = ["MOST_SEEDS", "path", "real", "seed", "whole"]

MOST_SEEDS = 10_000
"""Seeds of one comparison or sweep."""

_MAX_SEED = 2**64 - 1


def real(place: str, value: object, expected: str, allowed: Callable[[float], bool]) -> float:
    """`value` as a float, if it is a number for which `allowed` holds.

    Raises
    ------
    TraceError
        It is not; the message names `place`, the value and what was `expected`.
    """
    if not isinstance(value, bool) and isinstance(value, Real) and allowed(float(value)):
        return float(value)
    raise TraceError(f"{place} is {value!r}: expected {expected}")


def whole(place: str, value: object, expected: str, allowed: Callable[[int], bool]) -> int:
    """`value` as an int, if it is a whole number for which `allowed` holds.

    Raises
    ------
    TraceError
        It is not; the message names `place`, the value and what was `expected`.
    """
    if not isinstance(value, bool) and isinstance(value, Integral) and allowed(int(value)):
        return int(value)
    raise TraceError(f"{place} is {value!r}: expected {expected}")


def seed(place: str, value: object) -> int:
    """`value` as a seed.

    Raises
    ------
    TraceError
        It is none.
    """
    expected = "a whole number from 0 to 2^64 - 1"
    return whole(f"{place}: seed", value, expected, lambda number: 0 <= number <= _MAX_SEED)


def path(place: str, value: object, error: type[ThemisError] = TraceError) -> Path:
    """`value` as a path.

    Raises
    ------
    ThemisError
        It is none, or empty; of the class `error`.
    """
    if isinstance(value, str | PathLike) and value != "":
        return Path(value)
    raise error(f"{place} is {value!r}: expected a path")
