"""Agents: what they see, when they are asked, and how every wrong answer is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.differential.small import FREE_SWITCHES, Job, Search, spans, workload

import themis
from themis.agents.agent import Agent, AppView, Demand, Goal, Least, Piece, Verdict
from themis.policies.policy import Decision, Policy, PolicyView
from themis.results.result import Result

TWO = [
    Job("a0", 0, 1, 100, 2, "a", iterations=10.0, loss=(0.5, 1.0, 0.0)),
    Job("a1", 0, 1, 200, 2, "a", profile="network"),
]


def play(agent: Agent, jobs: Sequence[Job] = TWO, cluster: str = "1x4", **settings: Any) -> Result:  # noqa: ANN401 - each setting has its own type
    """Return what becomes of the jobs when an agent schedules app a."""
    load = workload(jobs, searches={"a": Search("all")})
    where = themis.Cluster.parse(cluster)
    return themis.simulate(load, where, agents={"a": agent}, **{**FREE_SWITCHES, **settings})


class Says(Agent):
    """Answers review after review with what it is given, then with nothing."""

    def __init__(self, *verdicts: object) -> None:
        self.verdicts = list(verdicts)
        self.seen: list[AppView] = []

    def review(self, app: AppView) -> Verdict | None:
        self.seen.append(app)
        return self.verdicts.pop(0) if self.verdicts else None  # type: ignore[return-value] # may be wrong


def test_an_agent_sees_the_papers_information() -> None:
    goals = {"a0": Goal(40.0, 1), "a1": Goal(200.0, 2)}
    agent = Says(Verdict(goals=goals), Verdict(goals={"a0": Goal(100.0)}))
    play(agent, cluster="1x4/1")
    start, goal, *_ = agent.seen
    assert (start.app_id, start.stopping, start.elapsed_s, start.reported) == ("a", "all", 0, ())
    a0, a1 = start.jobs
    assert (a0.standing, a0.loss, a0.losses) == ("future", 1.0, ((0.0, 1.0),))
    assert (a0.iterations_done, a0.iterations_left, a0.left_gpu_s) == (0, 10, 100)
    assert (a1.iterations_done, a1.iterations_left, a1.loss, a1.losses) == (None, None, None, ())
    assert a1.slowdowns == themis.PROFILES["network"]
    assert (goal.elapsed_s, goal.reported) == (40, ("a0",))
    a0, a1 = goal.job("a0"), goal.job("a1")
    # 4 of 10 iterations: 1 / (0.5 x 4 + 1). a1 has run on two GPUs of one machine, a slot each.
    assert (a0.standing, a0.done_gpu_s, a0.iterations_left) == ("at_goal", 40, 6)
    assert a0.losses == ((0.0, 1.0), (4.0, a0.loss)) == ((0.0, 1.0), (4.0, 1 / 3))
    assert (a1.standing, a1.gpus) == ("open", 2)
    assert a1.done_gpu_s == pytest.approx(40 * a1.rate)
    assert a1.rate == pytest.approx(2 / a1.slowdowns.machine)


def test_figures_of_a_job() -> None:
    agent = Says()
    play(agent)
    a0, a1 = agent.seen[0].jobs
    assert (a0.gpu_s_after(3), a0.gpu_s_after(99)) == (30, 100)
    assert (a0.iteration_s(1, "slot"), a0.iteration_s(4, "slot")) == (10, 5)
    assert a0.iteration_s(1, "cluster") == 10 * a0.slowdowns.cluster
    assert a1.iteration_s(1, "slot") is None
    with pytest.raises(ValueError, match="job 'a1': its iterations are unknown"):
        a1.gpu_s_after(3)
    with pytest.raises(KeyError):
        agent.seen[0].job("b")


def test_kills_done_and_over() -> None:
    jobs = [Job(f"a{k}", 0, 1, 100, 1, "a") for k in range(4)]

    class Chooses(Agent):
        def review(self, app: AppView) -> Verdict:
            if not app.reported:
                return Verdict(goals={"a0": Goal(30), "a1": Goal(30)}, kills={"a3": "unlikely"})
            return Verdict(kills={"a0": "poor"}, done={"a1": "good enough"}, over="a1 is good")

    result = play(Chooses(), jobs)
    ended = dict(zip(result.jobs["job_id"], result.jobs["state"], strict=True))
    assert ended == {"a0": "killed", "a1": "done", "a2": "killed", "a3": "killed"}
    assert result.jobs["reason"].to_list() == ["poor", "good enough", "a1 is good", "unlikely"]
    assert result.jobs["work_gpu_s"].to_list() == [30, 30, 30, 0]
    assert result.apps["end_s"].to_list() == [30]
    # What was done can't be avoided: 90 GPU-s on 4 GPUs, but no job in less than 30 s.
    floor = result.apps["rho_floor"][0] * result.apps["t_id_s"][0]
    assert floor == pytest.approx(30)


def test_order_of_service_and_who_may_use_how_many() -> None:
    class Last(Agent):
        def order(self, app: AppView) -> Sequence[str]:
            return [job.job_id for job in reversed(app.jobs)]

    jobs = [Job(f"a{k}", 0, 1, 100, 1, "a") for k in range(3)]
    assert spans(play(Last(), jobs, "1x1", lease_s=1e6)) == {
        "a2": (0, 100),
        "a1": (100, 200),
        "a0": (200, 300),
    }


def test_budget_is_the_t_id_and_bids_use_what_is_expected() -> None:
    class Budgets(Agent):
        def budget(self, app: AppView) -> Sequence[Demand]:
            assert app.elapsed_s == 0
            return [Demand(100, 4, 50), Demand(60, 2, 30)]

        def expected_gpu_s(self, app: AppView) -> Mapping[str, float]:
            return {app.jobs[0].job_id: 60}

        def later(self, app: AppView) -> Sequence[Demand]:
            return [Demand(app.jobs[0].work_gpu_s, 2, 50)]

    result = play(Budgets(), TWO)
    assert result.apps["t_id_s"].to_list() == [160 / 4]
    assert set(result.jobs["state"]) == {"done"}


def test_hooks_hear_of_gpus_that_come_and_go() -> None:
    heard: list[tuple[float, str, str, int, int]] = []

    class Listens(Agent):
        def on_grant(self, app: AppView, job_id: str, gpus: int) -> None:
            heard.append((app.elapsed_s, "+", job_id, gpus, app.job(job_id).gpus))

        def on_revoke(self, app: AppView, job_id: str, gpus: int) -> None:
            heard.append((app.elapsed_s, "-", job_id, gpus, app.job(job_id).gpus))

    # Leases of 100 s, one GPU: a, then b, who has had nothing, then a again to its end at 250.
    jobs = [Job("a0", 0, 1, 150, 1, "a"), Job("b", 50, 1, 100)]
    play(Listens(), jobs, "1x1", policy="tiresias", lease_s=100.0)
    assert heard == [(0, "+", "a0", 1, 1), (100, "-", "a0", 1, 0), (200, "+", "a0", 1, 1)]


def test_a_renewal_is_no_news() -> None:
    heard: list[str] = []

    class Listens(Agent):
        def on_grant(self, app: AppView, job_id: str, gpus: int) -> None:
            heard.append(f"{job_id} +{gpus} at {app.elapsed_s}")

    jobs = [Job("a0", 0, 1, 250, 1, "a"), Job("b", 50, 1, 200)]
    play(Listens(), jobs, "1x1", policy="fifo")
    assert heard == ["a0 +1 at 0.0"]


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        ("go on", r"review returned 'go on': expected a Verdict or None"),
        (Verdict(goals=["a0"]), r"goals is \['a0'\]: expected a mapping by job id"),  # type: ignore[arg-type]
        (Verdict(goals={"a9": Goal(5)}), r"goals names job 'a9' .*: expected a job of the app"),
        (Verdict(kills={7: "x"}), "kills names job 7: expected a job of the app"),  # type: ignore[dict-item]
        (Verdict(goals={"a0": 5}), "job 'a0': its goal is 5: expected a Goal"),  # type: ignore[dict-item]
        (Verdict(goals={"a0": Goal(float("nan"))}), "job 'a0': until_gpu_s is nan: expected"),
        (Verdict(goals={"a0": Goal("5")}), "job 'a0': until_gpu_s is '5': expected"),  # type: ignore[arg-type]
        (Verdict(goals={"a0": Goal(True)}), "job 'a0': until_gpu_s is True: expected"),  # noqa: FBT003
        (Verdict(goals={"a0": Goal(0)}), "'a0': goal 0 GPU-seconds; more than 0, at most 100"),
        (Verdict(goals={"a0": Goal(101)}), "'a0': goal 101 GPU-seconds; more than 0, at most 100"),
        (Verdict(goals={"a0": Goal(9, 0)}), r"'a0': max_gpus is 0: expected 1 to 2\^30"),
        (Verdict(goals={"a0": Goal(9, 2.0)}), r"'a0': max_gpus is 2.0: expected 1 to 2\^30"),  # type: ignore[arg-type]
        (Verdict(goals={"a0": Goal(9, 2**31)}), r"'a0': max_gpus is 2147483648: expected 1 to"),
        (Verdict(kills={"a0": ""}), "'a0': kills is '': expected the reason, in words"),
        (Verdict(done={"a0": None}), "'a0': done is None: expected the reason"),  # type: ignore[dict-item]
        (Verdict(over=True), "over is True: expected the reason"),  # type: ignore[arg-type]
        (Verdict(kills={"a0": "x"}, done={"a0": "y"}), "'a0': is stopped, but not unfinished"),
        (Verdict(done={"a0": "x"}), "'a0': is done, but has not begun"),
        (Verdict({"a0": Goal(9)}, {"a0": "x"}), "'a0': has a goal, but is not unfinished"),
    ],
)
def test_a_wrong_verdict_is_refused(verdict: object, message: str) -> None:
    with pytest.raises(themis.AgentError, match=rf"^agent Says of app 'a'.*{message}") as refused:
        play(Says(verdict))
    assert isinstance(refused.value, themis.PolicyError)


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (Verdict(goals={"a0": Goal(100)}), "'a0': has a goal, but is not unfinished"),
        (Verdict(kills={"a0": "late"}), "'a0': is stopped, but not unfinished"),
        (Verdict(goals={"a1": Goal(1)}), r"'a1': goal 1 GPU-seconds; more than \d+"),
        (Verdict(goals={"a1": Goal(200, 1)}), "'a1': at most 1 GPUs; 2 or more"),
    ],
)
def test_what_has_happened_can_not_be_undone(verdict: Verdict, message: str) -> None:
    with pytest.raises(themis.AgentError, match=f"agent Says of app 'a', job {message}"):
        play(Says(None, verdict))


def test_a_goal_takes_work_for_gpus() -> None:
    jobs = [Job("a0", 0, 1, 100, 1, "a"), Job("a1", 0, 0, 100, 0, "a")]
    with pytest.raises(themis.AgentError, match="'a1': has a goal, but no work that needs GPUs"):
        play(Says(Verdict(goals={"a1": Goal(50, 1)})), jobs)


def test_a_gang_is_never_cut() -> None:
    with pytest.raises(themis.AgentError, match="'a0': at most 2 GPUs; 3 or more"):
        play(Says(Verdict(goals={"a0": Goal(50, 2)})), [Job("a0", 0, 3, 100, 4, "a")])


def test_an_app_that_would_wait_for_ever_is_refused() -> None:
    stuck = Says(Verdict(goals={"a0": Goal(50), "a1": Goal(60)}))
    with pytest.raises(
        themis.AgentError, match="job 'a0': pauses like all that is left of the app"
    ):
        play(stuck)


ANSWERS: list[tuple[str, object, str]] = [
    ("order", None, "order is None: expected a sequence of job ids"),
    ("order", "a0", "order is 'a0': expected a sequence of job ids"),
    ("order", ["a0", "a0"], "job 'a0': is in order twice: expected once"),
    ("order", ["b"], "order names job 'b'.*: expected a job of the app"),
    ("expected_gpu_s", [5], r"expected_gpu_s is \[5\]: expected a mapping by job id"),
    ("expected_gpu_s", {"a0": -1}, "job 'a0': expected_gpu_s is -1: expected a finite number"),
    ("expected_gpu_s", {"a0": 101}, "'a0': expected_gpu_s is 101: expected at most its work, 100"),
    ("expected_gpu_s", {"a0": 10**400}, "'a0': expected_gpu_s is 10+: expected a finite number"),
    ("later", Demand(1, 1, 1), "later is Demand.*: expected a sequence of Demands"),
    ("later", [1], "later has 1: expected a Demand"),
    ("later", [Demand(1, float("inf"), 1)], "later: gpus is inf: expected a finite number"),
    ("later", [Demand(1, 0, 1)], "later: gpus is 0: expected more than 0 for work"),
    ("budget", 7, "budget is 7: expected a sequence of Demands"),
    ("budget", [Demand(-1, 1, 1)], "budget: work_gpu_s is -1: expected a finite number"),
    ("least", None, "least returned None: expected a Least"),
    ("least", Least([Piece(1, 1)]), "least: a chain is Piece.*: expected a sequence of phases"),  # type: ignore[list-item]
    ("least", Least([[[1]]]), "least has 1: expected a Piece"),  # type: ignore[list-item]
    ("least", Least([[[Piece(1, 0)]]]), "least: max_gpus is 0: expected"),
    ("least", Least([[[Piece(1, 1, "b")]]]), "least names job 'b'.*: expected a job of the app"),
    ("least", Least([], any=True), "least has no chains: expected one at least"),
    ("on_grant", Verdict(), "on_grant returned Verdict.*: expected None, as review decides"),
]


@pytest.mark.parametrize(("method", "answer", "message"), ANSWERS)
def test_every_other_wrong_answer_is_refused(method: str, answer: object, message: str) -> None:
    def says(*_args: object, **_kwargs: object) -> object:
        return answer

    says.__name__ = method
    agent = type("Odd", (Agent,), {method: says})()
    with pytest.raises(themis.AgentError, match=f"^agent Odd of app 'a'.*{message}"):
        play(agent)


@pytest.mark.parametrize("method", ["review", "order", "least", "on_grant"])
def test_what_an_agent_raises_comes_out_with_a_note(method: str) -> None:
    def fails(*_args: object, **_kwargs: object) -> object:
        raise LookupError("no such thing")

    fails.__name__ = method
    agent = type("Fails", (Agent,), {method: fails})()
    with pytest.raises(LookupError, match="no such thing") as raised:
        play(agent)
    where = f"raised by agent Fails of app 'a'.{method}"
    assert [note for note in raised.value.__notes__ if note.startswith(where)]


def test_which_apps_have_agents() -> None:
    load = workload([*TWO, Job("b", 0, 1, 10)])
    cluster = themis.Cluster.parse("1x4")
    made: list[object] = []

    def make(app: Mapping[str, object]) -> Agent | None:
        made.append(app["app_id"])
        return Says() if app["app_id"] == "b" else None

    result = themis.simulate(load, cluster, agents=make)
    assert made == ["a", "b"]
    assert result.manifest["notes"] == ["1 apps are scheduled by agents: 1 by Says"]
    one = Says()
    for agents, message in [
        ({"c": Says()}, "^agents: app 'c' is not in the workload"),
        ({"a": "all"}, "app 'a' has 'all': expected a themis.Agent"),
        ({"a": Says}, "app 'a' has <class .*>: expected a themis.Agent"),
        (
            {"a": one, "b": one},
            "app 'b' has an agent that was used for app 'a': expected a new one",
        ),
        (3, "^agents is 3: expected agents by app id, or a function"),
    ]:
        with pytest.raises(themis.ScenarioError, match=message):
            themis.simulate(load, cluster, agents=agents)  # type: ignore[arg-type]
    play(one)
    with pytest.raises(themis.ScenarioError, match="app 'a' has an agent that was used in a run"):
        play(one)


def test_a_run_with_liars_asks_fresh_agents_in_the_honest_run() -> None:
    reviews: list[int] = []

    class Counts(Agent):
        def __init__(self) -> None:
            self.reviews = 0

        def review(self, app: AppView) -> Verdict | None:  # noqa: ARG002 - only counts
            self.reviews += 1
            reviews.append(self.reviews)
            return None

    play(Counts(), TWO, liars={"share": 1.0})
    assert reviews == [1, 2, 3, 1, 2, 3]


def test_wrong_answers_of_class_attributes() -> None:
    agent = type("Odd", (Agent,), {"ends_with_first": 1})()
    with pytest.raises(themis.AgentError, match="ends_with_first is 1: expected True or False"):
        play(agent)


def test_gpus_that_an_agent_gives_up_for_an_infeasible_job_are_free() -> None:
    """a0 is killed when a1 turns out too large: a2 and b share its 4 GPUs from then on."""
    agent = Says(None, Verdict(kills={"a0": "in vain"}))
    jobs = [
        Job("a0", 0, 4, 4000, app="a"),
        Job("b", 5, 2, 400),
        Job("a1", 10, 8, 100, app="a"),
        Job("a2", 10, 2, 200, app="a"),
    ]
    result = play(agent, jobs, audit=True)
    assert spans(result) == {"a0": (0, 10), "b": (10, 210), "a1": (None, None), "a2": (10, 110)}


def test_gpus_that_an_agent_gives_up_for_a_rejected_job_are_free_at_once() -> None:
    """a0 runs; a1 is rejected at 10 s, a0 is killed for it, and b is served at that instant."""

    small = 7

    class Refuses(Policy):
        name = "refuses"
        leases = False

        def decide(self, view: PolicyView) -> Decision:
            waiting = view.jobs.job[view.jobs.gpus == 0]
            rejects = dict.fromkeys(view.jobs.job[view.jobs.work_left_gpu_s == small], "closed")
            grants = [grant for job in waiting if job not in rejects and (grant := view.claim(job))]
            return Decision(grants, rejects=rejects)

    agent = Says(None, Verdict(kills={"a0": "in vain"}))
    jobs = [Job("a0", 0, 3, 3000, app="a"), Job("a1", 10, 1, small, app="a"), Job("b", 10, 2, 400)]
    result = play(agent, jobs, policy=Refuses(), audit=True)
    assert spans(result) == {"a0": (0, 10), "a1": (None, 10), "b": (10, 210)}
