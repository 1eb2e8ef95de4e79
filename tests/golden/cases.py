"""Schedules computed by hand: how a case is written, and how it is checked."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.differential.small import Job, play, spans

__all__ = ["ELASTIC", "EQUAL", "SPREAD", "TEN", "TURNS", "Case", "check"]

TEN = {"lease_s": 10.0}

EQUAL = [Job("a", 0, 1, 20), Job("b", 0, 1, 20)]
SPREAD = [Job("a", 0, 3, 30, profile="network"), Job("b", 0, 2, 40)]
TURNS: dict[str, tuple[float | None, float | None]] = {"a": (0, 30), "b": (10, 40)}
ELASTIC = [Job("a", 0, 1, 40, 4), Job("b", 0, 1, 40, 4)]


class Case(NamedTuple):
    """A cluster, jobs, and (start, end) of each; `first`: apps that their first job ends."""

    name: str
    cluster: str
    jobs: list[Job]
    expected: dict[str, tuple[float | None, float | None]]
    first: tuple[str, ...] = ()
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed


def check(policy: str, case: Case) -> None:
    """Play a case under a policy and compare."""
    result = play(case.cluster, case.jobs, policy, first=case.first, **case.settings)
    assert spans(result) == case.expected
