"""What may be done with rows in trouble, where there is a choice.

A rule is named like the class of trouble, with underscores: ``conflicting_id``; ``still_running``
is the rule of both such classes. The choices of one reading are kept beside the call, not handed
from function to function, so that every reader, those of other packages included, offers them by
using :class:`~themis.traces.rows.RowChecks` and :class:`~themis.traces.gathered.Gathered`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from themis.errors import TraceError
from themis.nearest import nearest

__all__ = ["RULES", "choices_left", "chosen", "given", "parse_repairs", "repairing"]

RULES: Mapping[str, tuple[str, ...]] = {
    "conflicting_id": ("earliest", "latest", "separate", "join"),
    "repeated_row": ("once", "separate"),
    "negative_duration": ("leave_out", "zero"),
    "end_before_start": ("leave_out", "zero"),
    "fraction_of_a_gpu": ("leave_out", "round_up"),
    "no_gpu": ("keep", "leave_out"),
    "no_work": ("keep", "leave_out"),
    "ends_with_the_trace": ("keep", "leave_out"),
    "still_running": ("leave_out", "to_the_end"),
}
"""Choices by rule; the first is what is done without a repair."""

_CHOSEN: ContextVar[Mapping[str, str]] = ContextVar("themis_repairs")


def parse_repairs(place: str, given: object) -> dict[str, str]:
    """Return `given`, a mapping of rules to choices, if all of them are known.

    Raises
    ------
    TraceError
        A rule or choice is unknown; the message begins with `place`.
    """
    if not isinstance(given, Mapping):
        raise TraceError(
            f"{place}: option repair is {given!r}: expected choices by rule, such as "
            "{'conflicting_id': 'latest'}"
        )
    for rule, choice in given.items():
        if rule not in RULES:
            raise TraceError(
                f"{place}: repair {rule!r} is unknown{nearest(str(rule), RULES)}: expected some of "
                f"{', '.join(RULES)}"
            )
        if choice not in RULES[rule]:
            raise TraceError(
                f"{place}: repair {rule} is {choice!r}{nearest(str(choice), RULES[rule])}: "
                f"expected one of {', '.join(RULES[rule])}"
            )
    return {str(rule): str(choice) for rule, choice in given.items()}


@contextmanager
def repairing(repairs: Mapping[str, str]) -> Iterator[None]:
    """Let `repairs` hold for what is read inside."""
    token = _CHOSEN.set(repairs)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def chosen(trouble: str) -> str | None:
    """Return what is done with a class of trouble; None where there is no choice."""
    rule = _rule(trouble)
    choices = RULES.get(rule)
    return None if choices is None else _CHOSEN.get({}).get(rule, choices[0])


def given(trouble: str) -> str | None:
    """Return what the caller said is to be done with a class of trouble, if anything."""
    return _CHOSEN.get({}).get(_rule(trouble))


def choices_left(trouble: str) -> tuple[str, ...]:
    """Return the other choices that there are, as ``rule=choice``."""
    rule = _rule(trouble)
    return tuple(f"{rule}={other}" for other in RULES.get(rule, ()) if other != chosen(trouble))


def _rule(trouble: str) -> str:
    return trouble.lower().split(" at the ")[0].replace(" ", "_")
