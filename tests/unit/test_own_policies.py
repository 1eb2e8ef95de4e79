"""What a policy in Python sees and may answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from tests.differential.small import Job, Search, play, spans, workload

import themis
from themis.cluster.cluster import Cluster
from themis.errors import PolicyAnswerError, PolicyError
from themis.policies.policy import Decision, Grant, Policy, PolicyView
from themis.results.result import Result

Answer = Callable[[PolicyView], Decision | Iterable[Grant] | None]


class Scripted(Policy):
    """Answers what it is told; without leases."""

    name = "scripted"
    leases = False

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def decide(self, view: PolicyView) -> Decision | Iterable[Grant] | None:
        return self.answer(view)


class WithALock(Scripted):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.lock = threading.Lock()


def run(answer: Answer, jobs: list[Job], cluster: str = "2x2", **settings: Any) -> Result:  # noqa: ANN401 - each setting has its own type
    return play(cluster, jobs, Scripted(answer), **settings)


def first_come(view: PolicyView) -> list[Grant]:
    waiting = view.jobs.job[view.jobs.gpus == 0]
    return [grant for job in waiting if (grant := view.claim(job)) is not None]


TWO = [Job("a", 0, 2, 200), Job("b", 10, 2, 20, app="B")]


def later(*grants: Any) -> Answer:  # noqa: ANN401 - anything that a policy may return
    """Start job 0 on slot 0 at 0 s; the rest at 10 s, when job 1 has come."""
    return lambda view: [Grant(0, {0: 2})] if view.now_s == 0 else list(grants)


@pytest.mark.parametrize(
    ("grants", "problem"),
    [
        ([Grant(1, {1: 1})], "app 'B', job 'b': 1 GPUs in all; 2 to 2"),
        ([Grant(1, {1: 2}), Grant(1, {1: 1})], "app 'B', job 'b': 1 GPUs of slot 1: 0 are on"),
        ([Grant(1, {0: 1, 1: 1})], "app 'B', job 'b': 1 GPUs of slot 0: 0 are on offer"),
        ([Grant(1, {1: 3})], "app 'B', job 'b': 3 GPUs of slot 1: 2 are on offer"),
        ([Grant(0, {1: 1})], "app 'a', job 'a': 3 GPUs in all; 2 to 2"),
        ([Grant(1, {2: 2})], "app 'B', job 'b': slot 2 is unknown: expected 0 to 1"),
        ([Grant(1, {-1: 2})], "app 'B', job 'b': slot -1 is unknown"),
        ([Grant(1, {1: 0})], "app 'B', job 'b': slot 1: 0 GPUs: expected a whole number from 1"),
        ([Grant(1, {1: -2})], "app 'B', job 'b': slot 1: -2 GPUs"),
        ([Grant(1, {1: 2.0})], "app 'B', job 'b': slot 1: 2.0 GPUs"),  # type: ignore[dict-item]
        ([Grant(1, {1: True})], "app 'B', job 'b': slot 1: True GPUs"),
        ([Grant(1, {1: 10**30})], "app 'B', job 'b': slot 1: 1000000000000"),
        ([Grant(1, {})], "app 'B', job 'b': the grant names no GPU"),
        ([Grant(1, [1])], r"app 'B', job 'b': slots is \[1\]"),  # type: ignore[arg-type]
        ([Grant(1, {1: 2}, 0.0)], "app 'B', job 'b': 0 of a lease; more than 0, at most 1"),
        ([Grant(1, {1: 2}, 1.5)], "app 'B', job 'b': 1.5 of a lease"),
        ([Grant(1, {1: 2}, float("nan"))], "app 'B', job 'b': lease_fraction is nan"),
        ([Grant(2, {1: 2})], "a grant names job 2: expected a number from 0 to 1"),
        ([Grant(-1, {1: 2})], "a grant names job -1"),
        ([Grant("b", {1: 2})], "a grant names job 'b'"),  # type: ignore[arg-type]
        ([(1, {1: 2})], r"decide returned \(1, \{1: 2\}\) among its grants: expected a Grant"),
    ],
)
def test_wrong_grants_are_refused_by_name(grants: list[Any], problem: str) -> None:
    with pytest.raises(PolicyAnswerError, match=rf"^policy scripted, at 10.0 s: {problem}"):
        run(later(*grants), TWO)


def test_a_refused_answer_changes_nothing() -> None:
    # The first grant of the wrong answer is right: nothing of it may have happened.
    seen = []

    def answer(view: PolicyView) -> list[Grant]:
        seen.append(view.free.tolist())
        return [Grant(0, {0: 2}), Grant(1, {1: 3})]

    with pytest.raises(PolicyAnswerError):
        run(answer, [Job("a", 0, 2, 20), Job("b", 0, 2, 20)])
    assert seen == [[2, 2]]


@pytest.mark.parametrize("value", [17, "text", {0: 1}, b"x"])
def test_an_answer_that_is_no_list_is_refused(value: object) -> None:
    with pytest.raises(PolicyAnswerError, match=r"policy scripted, at 0.0 s: decide returned"):
        run(lambda _: value, TWO)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("at", [10.0, 0.0, -1, float("inf"), float("nan"), "soon", True])
def test_a_wake_that_is_not_to_come_is_refused(at: object) -> None:
    def answer(view: PolicyView) -> Decision:
        wake: Any = at if view.now_s == 10 else None
        return Decision(first_come(view), wake_at_s=wake)

    with pytest.raises(PolicyAnswerError, match=r"at 10.0 s: wake_at_s is"):
        run(answer, TWO)


def test_what_a_policy_raises_is_its_cause() -> None:
    def answer(view: PolicyView) -> list[Grant]:
        return [Grant(0, {0: dict[str, int]()["x"]})] if view.now_s else first_come(view)

    with pytest.raises(
        PolicyAnswerError, match=r"at 10.0 s: decide raised KeyError: 'x'"
    ) as raised:
        run(answer, TWO)
    assert isinstance(raised.value.__cause__, KeyError)

    def lazy(_: PolicyView) -> Iterable[Grant]:
        yield Grant(0, {0: 2})
        raise RuntimeError("in the midst")

    with pytest.raises(PolicyAnswerError, match="decide raised RuntimeError: in the midst"):
        run(lazy, TWO)
    with pytest.raises(PolicyAnswerError, match="decide raised NotImplementedError"):
        play("2x2", TWO, Policy())


def test_an_interrupt_passes() -> None:
    def answer(_: PolicyView) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(answer, TWO)


def test_what_a_policy_sees() -> None:
    views: list[PolicyView] = []

    class Watcher(Policy):
        def decide(self, view: PolicyView) -> list[Grant]:
            views.append(view)
            return [grant for app in view.apps.app for grant in view.claim_app(app)]

    jobs = [
        Job("a1", 0, 2, 400, 3, app="a", profile="vgg16"),
        Job("a2", 5, 1, 50, app="a"),
        Job("b1", 5, 2, 60, app="b"),
        Job("c1", 7, 1, 60, app="c"),
    ]
    play("1x(1x2)+1x(1x4/2)", jobs, Watcher(), lease_s=10.0)
    first, second = views[:2]
    assert (first.now_s, first.lease_s, first.free_gpus) == (0.0, 10.0, 3)
    assert first.app_ids == ["a", "b", "c"]
    assert first.job_ids == ["a1", "a2", "b1", "c1"]
    assert [x.tolist() for x in (first.slots.machine, first.slots.rack, first.slots.gpus)] == [
        [0, 1, 1],
        [0, 1, 1],
        [2, 2, 2],
    ]
    jobs_then, apps_then = second.jobs, second.apps
    assert second.now_s == 5.0
    assert jobs_then.job.tolist() == [0, 1, 2]
    assert jobs_then.app.tolist() == [0, 0, 1]
    assert jobs_then.submit_s.tolist() == [0.0, 5.0, 5.0]
    assert jobs_then.gang_size.tolist() == [2, 1, 2]
    assert jobs_then.max_gpus.tolist() == [3, 1, 2]
    assert jobs_then.gpus.tolist() == [3, 0, 0]
    assert jobs_then.attained_gpu_s.tolist() == [15.0, 0.0, 0.0]
    assert jobs_then.slowdowns.shape == (3, 4)
    assert jobs_then.speeds.tolist() == [[1.0], [1.0], [1.0]]
    # Three GPUs of the machine of two slots: 15 GPU-seconds at the pace of its profile.
    pace = themis.PROFILES["vgg16"].machine
    assert jobs_then.work_left_gpu_s[0] == pytest.approx(400 - 15 / pace)
    assert apps_then.arrival_s.tolist() == [0.0, 5.0]
    assert apps_then.gpus.tolist() == [3, 0]
    assert apps_then.attained_gpu_s.tolist() == [15.0, 0.0]
    assert apps_then.unmet_gpus.tolist() == [1, 2]
    assert apps_then.work_left_gpu_s.tolist() == pytest.approx(
        [jobs_then.work_left_gpu_s[:2].sum(), 60.0]
    )
    third = views[2]
    # All leases end at 10 s: everything is on offer, with whom it was.
    assert third.now_s == 10.0
    assert third.apps.gpus.tolist() == [0, 0, 0]
    assert third.apps.offered_gpus.tolist() == [4, 2, 0]
    assert third.holdings(0)[1] == {1: 2, 2: 1}
    with pytest.raises(ValueError, match="read-only"):
        third.jobs.gpus[0] = 1


def test_claims_take_from_the_view() -> None:
    def answer(view: PolicyView) -> list[Grant]:
        assert view.free.tolist() == [2, 2]
        assert np.isinf(view.rho()).all()
        best = view.best_rho().tolist()
        grants = [view.claim(0, most=1), view.claim(1), view.claim(0)]
        assert grants == [Grant(0, {0: 1}), Grant(1, {1: 2}), Grant(0, {0: 1})]
        assert view.claim(0) is None
        assert (view.free_gpus, view.spare_gpus(0), view.holdings(0)) == (0, 2, ({0: 2}, {}))
        # With two GPUs each, half of all: what the ideal of one of two apps has.
        assert view.rho().tolist() == pytest.approx([1.0, 1.0])
        assert view.best_rho().tolist() == best
        with pytest.raises(KeyError, match="job 7 is not in this view"):
            view.claim(7)
        with pytest.raises(KeyError, match="app 9 is not in this view"):
            view.claim_app(9)
        return [grant for grant in grants if grant is not None]

    jobs = [Job("a", 0, 1, 200, 2, "a"), Job("b", 0, 2, 60, 2, "b")]
    result = run(answer, jobs, searches={"a": Search("fixed", max_gpus=4)}, t_id="demand_capped")
    assert spans(result) == {"a": (0.0, 100.0), "b": (0.0, 30.0)}


def test_an_app_is_granted_no_more_than_its_cap() -> None:
    # Two jobs that use up to two GPUs each, of an app that may have three.
    def greedy(_: PolicyView) -> list[Grant]:
        return [Grant(0, {0: 2}), Grant(1, {1: 2})]

    jobs = [Job("a", 0, 1, 200, 2, "a"), Job("b", 0, 1, 200, 2, "a")]
    message = r"app 'a', job 'a': 4 GPUs for the app; at most 3"
    with pytest.raises(PolicyAnswerError, match=message):
        run(greedy, jobs, searches={"a": Search("all", max_gpus=3)})


def test_a_policy_may_wait_and_be_woken() -> None:
    """Nothing else happens: each job starts when it was to, at the instants asked for."""

    def answer(view: PolicyView) -> Decision:
        due = [job for job in view.jobs.job if view.now_s >= 100 * (int(job) + 1)]
        claimed = [view.claim(job) for job in due]
        wake = 100 * (view.now_s // 100 + 1)
        return Decision([grant for grant in claimed if grant], wake_at_s=wake)

    result = run(answer, [Job("a", 0, 1, 5), Job("b", 3, 1, 5)])
    assert spans(result) == {"a": (100.0, 105.0), "b": (200.0, 205.0)}


@pytest.mark.parametrize("every_s", [60.0, 1e-6, 1e11])
@pytest.mark.parametrize("horizon_s", [None, 500.0])
def test_a_policy_that_only_asks_to_be_woken_ends(every_s: float, horizon_s: float | None) -> None:
    """Case 23 b: beside a job that runs, and with somebody who waits for ever."""

    def answer(view: PolicyView) -> Decision:
        grants = [grant for grant in [view.claim(0)] if grant] if 0 in view.jobs.job else []
        return Decision(grants, wake_at_s=view.now_s + every_s)

    if every_s > 1:
        served = run(answer, [Job("a", 0, 1, 400)], horizon_s=horizon_s)
        assert spans(served) == {"a": (0.0, 400.0)}
    asked = run(answer, [Job("a", 0, 1, 1e-4), Job("b", 0, 1, 10)], horizon_s=horizon_s)
    assert dict(asked.jobs.select("job_id", "state").iter_rows()) == {
        "a": "done",
        "b": "unfinished",
    }
    reason = "the policy never served it" if horizon_s is None else "cut off by the horizon"
    assert asked.jobs["reason"].to_list() == [None, reason]


@pytest.mark.parametrize("reject", [True, False])
def test_a_policy_that_serves_nobody_ends(*, reject: bool) -> None:
    """Case 23 a: every job is in one state, and the counts add up."""
    jobs = [Job("a", 0, 1, 5), Job("b", 3, 2, 5, app="a"), Job("c", 7, 9, 5), Job("d", 9, 0, 4)]

    def answer(view: PolicyView) -> Decision:
        return Decision(rejects=dict.fromkeys(view.jobs.job, "closed") if reject else {})

    result = run(answer, jobs)
    state = "rejected" if reject else "unfinished"
    assert result.jobs["state"].to_list() == [state, state, "infeasible", "done"]
    assert result.manifest["job_states"] == {"done": 1, "infeasible": 1, state: 2}
    assert result.apps["state"].to_list() == [state, "infeasible", "done"]
    assert result.usage["gpus_used"].sum() == 0
    if reject:
        assert result.jobs["reason"].to_list()[:2] == ["closed", "closed"]
        assert result.jobs["end_s"].to_list()[:2] == [0.0, 3.0]
        assert result.apps["reason"][0] == "2 of 2 jobs are rejected by the policy: no rho"
        assert result.apps["rho"][0] is None
    else:
        assert result.apps["reason"][0].startswith("the policy never served it: rho counts")
        assert result.apps["rho_is_bound"][0]


def test_a_rejected_job_loses_the_race_of_its_search() -> None:
    """One of two jobs is rejected at once; the other goes on: 2 GPU-s on one GPU, 4 on two."""
    jobs = [Job(name, 0, 1, 6, app="s", iterations=6, loss=(0, 1, 0)) for name in ("a", "b")]

    def answer(view: PolicyView) -> Decision:
        grants = [grant for grant in [view.claim(1)] if grant] if 1 in view.jobs.job else []
        return Decision(grants, rejects={0: "no"} if 0 in view.jobs.job else {})

    result = run(answer, jobs, searches={"s": Search("successive_halving")})
    assert dict(result.jobs.select("job_id", "state").iter_rows()) == {"a": "rejected", "b": "done"}
    assert result.jobs["end_s"].to_list() == [0.0, 4.0]


@pytest.mark.parametrize(
    ("rejects", "problem"),
    [
        ({0: "late"}, "app 'a', job 'a': is rejected: only a job that waits"),
        ({1: "late"}, "app 'B', job 'b': is rejected: only a job that waits"),
        ({1: ""}, "app 'B', job 'b': is rejected for '': expected the reason"),
        ({5: "late"}, "rejects names job 5"),
        (["b"], r"rejects is \['b'\]"),
    ],
)
def test_only_jobs_that_wait_are_rejected(rejects: Any, problem: str) -> None:  # noqa: ANN401 - anything
    def answer(view: PolicyView) -> Decision:
        return Decision(first_come(view), rejects=rejects if view.now_s == 10 else {})

    with pytest.raises(PolicyAnswerError, match=f"at 10.0 s: {problem}"):
        run(answer, TWO)


def test_leases_and_their_shares_are_the_engines() -> None:
    class Halves(Policy):
        def decide(self, view: PolicyView) -> list[Grant]:
            first = view.apps.app[np.argsort(view.apps.attained_gpu_s, kind="stable")]
            return [g for app in first for g in view.claim_app(app)]

    result = play("1x1", [Job("a", 0, 1, 15), Job("b", 0, 1, 15)], Halves(), lease_s=10.0)
    assert spans(result) == {"a": (0.0, 25.0), "b": (10.0, 30.0)}
    assert result.policy == "Halves"


def test_an_object_may_be_played_again_and_stays_as_it_is() -> None:
    class Counting(Policy):
        leases = False

        def __init__(self) -> None:
            self.asked = 0

        def decide(self, view: PolicyView) -> list[Grant]:
            self.asked += 1
            return first_come(view) if self.asked > 1 else []

    policy = Counting()
    results = [play("2x2", TWO, policy) for _ in range(2)]
    assert policy.asked == 0
    assert results[0].apps.equals(results[1].apps)
    assert spans(results[0])["a"][0] == 10.0


def test_a_policy_of_ones_own_in_a_comparison() -> None:
    comparison = themis.compare(
        workload(TWO), Cluster.parse("2x2"), policies=["fifo", Scripted(first_come)], seeds=[0, 1]
    )
    assert comparison.policies == ["fifo", "scripted"]
    ends = [comparison.results["scripted", 0].jobs, comparison.results["fifo", 1].jobs]
    assert ends[0].equals(ends[1])


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (Scripted, "it is a class, not an object of it: expected one of themis, tir"),
        (17, "policy is 17: expected one of .*, or a themis.Policy"),
        (
            "scripted",
            r"policy is 'scripted' \(did you mean 'srtf'\?\): expected one of themis, tiresias",
        ),
    ],
)
def test_what_is_no_policy_is_refused(policy: Any, problem: str) -> None:  # noqa: ANN401 - anything
    with pytest.raises(PolicyError, match=problem):
        play("2x2", TWO, policy)


@pytest.mark.parametrize("name", ["a/b", "../x", "fifo", "las", "", 3])
def test_a_name_must_do_for_a_directory_and_be_new(name: Any) -> None:  # noqa: ANN401 - anything
    policy = Scripted(first_come)
    policy.name = name
    if name:
        with pytest.raises(PolicyError, match=r"name"):
            play("2x2", TWO, policy)
    else:
        assert play("2x2", TWO, policy).policy == "Scripted"


def test_a_policy_that_cannot_be_copied_is_refused() -> None:
    with pytest.raises(
        PolicyError, match=r"policy scripted: it cannot be copied for a run: TypeErr"
    ):
        play("2x2", TWO, WithALock(first_come))
    policy = Scripted(first_come)
    policy.leases = 1  # type: ignore[assignment]
    with pytest.raises(PolicyError, match="leases is 1: expected True or False"):
        play("2x2", TWO, policy)


def test_the_note_says_whose_policy_it_is() -> None:
    notes = run(first_come, TWO).manifest["notes"]
    assert isinstance(notes, list)
    assert any(note.endswith("test_own_policies:Scripted, which is not built in") for note in notes)


QUOTA = {"x": {"quota_gpus": [[0, 3], [50, 1]]}}


def test_a_view_tells_the_room_that_a_quota_leaves() -> None:
    seen = []

    def answer(view: PolicyView) -> list[Grant]:
        seen.append([view.spare_gpus(int(app)) for app in view.apps.app])
        return first_come(view)

    # c's room is x's less the two GPUs of a, kept or just claimed; d has no tenant.
    jobs = [Job("a", 0, 2, 400), Job("c", 10, 2, 20), Job("d", 10, 1, 20)]
    owners = {"a": "x", "c": "x"}
    result = run(answer, jobs, "1x8", owners=owners, tenants=QUOTA, horizon_s=20.0)
    assert [spare[:2] for spare in seen] == [[3], [1, 1]]
    assert spans(result) == {"a": (0, None), "c": (None, None), "d": (10, None)}


@pytest.mark.parametrize(
    ("at_s", "gang", "problem"),
    [
        (10, 2, r"2 GPUs for tenant \"x\": its quota of 3 leaves 1"),
        (60, 1, r"1 GPUs for tenant \"x\": its quota of 1 leaves 0"),
    ],
)
def test_grants_above_a_quota_are_refused(at_s: int, gang: int, problem: str) -> None:
    jobs = [Job("a", 0, 2, 400), Job("c", at_s, gang, 20)]
    owners = {"a": "x", "c": "x"}
    grants = {0: Grant(0, {0: 2}), at_s: Grant(1, {1: gang})}
    answer = {at: [grant] for at, grant in grants.items()}
    with pytest.raises(PolicyAnswerError, match=problem):
        run(lambda view: answer.get(int(view.now_s)), jobs, owners=owners, tenants=QUOTA)
