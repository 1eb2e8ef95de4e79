"""Schedules computed by hand: how a case is written, and how it is checked."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.differential.small import Job, play, spans

__all__ = ["TEN", "Case", "check"]

TEN = {"lease_s": 10.0}


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
