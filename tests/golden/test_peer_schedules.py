"""The peers' policies against schedules computed by hand, and where two policies must differ."""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.small import play, spans
from tests.golden.cases import TEN, Case, check
from tests.golden.serving_cases import SERVING
from tests.golden.sharing_cases import SHARING

import themis
from themis.results.result import Result

PEERS = {**SERVING, **SHARING}


@pytest.mark.parametrize(
    ("policy", "case"),
    [
        pytest.param(policy, case, id=f"{policy}-{case.name.replace(' ', '-')}")
        for policy, cases in PEERS.items()
        for case in cases
    ],
)
def test_schedules_computed_by_hand(policy: str, case: Case) -> None:
    check(policy, case._replace(settings={**TEN, **case.settings}))


def test_five_or_more_each() -> None:
    assert min(map(len, PEERS.values())) >= 5


def played(policy: str, case: Case, **settings: Any) -> Result:  # noqa: ANN401 - as in play
    return play(case.cluster, case.jobs, policy, first=case.first, **{**TEN, **settings})


def starts(policy: str, case: Case, **settings: Any) -> dict[str, float | None]:  # noqa: ANN401
    return {job: start for job, (start, _) in spans(played(policy, case, **settings)).items()}


def case_of(policy: str, name: str) -> Case:
    return next(case for case in PEERS[policy] if case.name == name)


@pytest.mark.parametrize(
    ("policy", "name", "other", "differs"),
    [
        # Placement, or service: a came first and has had as little as b.
        ("gandiva", "the best placed goes first", "tiresias", {"a": 0, "b": 10}),
        # Fewest held, or all to the first: a1, a2, b1, b2.
        ("gandiva", "a tie goes to the app with the fewest GPUs", "tiresias", {"b2": 0, "c": 10}),
        # Equal shares at every instant, or all to the first.
        ("drf", "equals share", "tiresias", {"b": 10}),
        # Placement, or need.
        ("gandiva", "the best placed goes first", "slack", {"a": 0, "b": 20}),
        # Time, or GPU time.
        ("srtf", "the shortest time goes first", "srsf", {"a": 0, "b": 20}),
        ("srtf", "the placement on offer counts", "srsf", {"a": 0}),
        # Work left, or service attained: b's turn at 20.
        ("srsf", "what is left counts, not the whole", "tiresias", {"b": 20}),
        # A step each, or all to the first.
        ("optimus", "equals share", "srtf", {"b": 10}),
        ("static", "halves", "slack", {"b": 10}),
        # A short job behind a gang waits, or not.
        ("fifo_backfill", "a short job behind starts", "fifo", {"c": 100}),
        # There is a line, or not.
        ("fifo_backfill", "a GPU that the head will not need", "drf", {"d": 30}),
        # Work left in equal shares, or in the run: c has 15 left at 20, b 20.
        ("fsp", "a newcomer does not overtake its equals", "srsf", {"b": 35, "c": 20}),
        ("fsp", "a share is worth no more than the demand", "srsf", {"a": 0, "b": 20}),
        ("fsp", "the first to end in equal shares goes first", "tiresias", {"a": 0}),
        # Learning, or throughput, time, work.
        ("slaq", "the largest decrease goes first", "optimus", {"a": 0, "b": 10}),
        ("slaq", "no decrease beyond the end", "srtf", {"a": 0, "b": 2}),
    ],
)
def test_where_two_policies_must_differ(
    policy: str, name: str, other: str, differs: dict[str, float]
) -> None:
    case = case_of(policy, name)
    mine, theirs = starts(policy, case), starts(other, case)
    assert {job: theirs[job] for job in differs} == differs
    assert all(mine[job] != theirs[job] for job in differs)


def test_optimus_looks_at_speed_where_drf_counts_gpus() -> None:
    case = case_of("optimus", "the larger ratio takes the last GPU")
    optimus, drf = (played(name, case) for name in ("optimus", "drf"))
    held = [dict(one.apps.select("app_id", "gpu_s").iter_rows()) for one in (optimus, drf)]
    assert held[0] == {"a": 40, "b": 60}
    assert held[1]["a"] > 40


def test_a_static_share_stays_idle_where_drf_gives_it_away() -> None:
    case = case_of("static", "an unused share stands idle")
    ends = {name: spans(played(name, case))["b"][1] for name in ("static", "drf")}
    # Three GPUs of the four: 80 / 3.
    assert ends == {"static": 40, "drf": 26.666667}


def test_slack_is_max_rho_without_an_eye_on_holdings() -> None:
    case = case_of("slack", "what an app holds counts for nothing")
    assert starts("max_rho", case) == starts("slack", case)
    assert starts("slack", case, filter_key="holdings")["b"] == 20


ALIKE = {frozenset(("slack", "max_rho"))}
"""Policies that differ by settings only."""


@pytest.mark.parametrize("policy", PEERS)
def test_every_other_policy_differs_in_a_case_known_by_hand(policy: str) -> None:
    others = {one.name for one in themis.POLICIES if {one.name, policy} not in ALIKE} - {policy}
    for case in PEERS[policy]:
        others = {other for other in others
                  if spans(played(other, case, **case.settings)) == case.expected}  # fmt: skip
    assert others == set()
