"""Between the engine and an agent: names for numbers, and a check of every answer."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar, cast

import polars as pl

from themis.agents.agent import (
    Agent,
    Agents,
    AppView,
    Demand,
    Goal,
    JobReport,
    Least,
    Piece,
    Verdict,
)
from themis.boundary.columns import CoreColumns, jobs_by_app
from themis.errors import AgentError, ScenarioError
from themis.nearest import nearest
from themis.profiles import Profile
from themis.workload.workload import Workload

__all__ = ["Driver", "Row", "anew", "choose_agents", "drivers"]

Row = tuple[str, bool, float, float, int, float | None, float | None, int, int, float]
"""A job of the engine: standing, whether it competes, GPU-seconds of work in all and done, most
GPUs, iterations, loss, bracket, GPUs held, rate."""

_MOST_GPUS = 2**30

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Answer:
    """What the engine takes; jobs by their numbers within the app."""

    goals: list[tuple[int, float, int]]
    stops: list[tuple[int, bool, str]]
    over: str | None
    budget: list[tuple[float, float, float]] | None
    later: list[tuple[float, float, float]]
    ranks: list[float]
    expected_gpu_s: list[float | None]


class Driver:
    """Asks one agent.

    Parameters
    ----------
    agent
        The agent.
    app
        Its app's row of the workload.
    jobs
        The app's rows of jobs, in the engine's order.
    slowdowns
        S of each at slot, machine, rack and cluster.
    """

    def __init__(
        self,
        agent: Agent,
        app: Mapping[str, Any],
        jobs: pl.DataFrame,
        slowdowns: Sequence[Profile],
    ) -> None:
        self._agent = agent
        self._app = app
        self._ids: list[str] = jobs.get_column("job_id").to_list()
        self._numbers = {job: number for number, job in enumerate(self._ids)}
        self._gangs: list[int] = jobs.get_column("gang_size").to_list()
        self._slowdowns = slowdowns
        self._losses: list[tuple[tuple[float, float], ...]] = [()] * len(self._ids)
        self._arrived = False
        hooks = ("on_grant", "on_revoke")
        self.listens: bool = any(getattr(type(agent), h) is not getattr(Agent, h) for h in hooks)
        self.ends_with_first: bool = agent.ends_with_first
        if not isinstance(self.ends_with_first, bool):
            raise self._wrong(
                f"ends_with_first is {self.ends_with_first!r}: expected True or False"
            )

    def review(self, elapsed_s: float, reported: list[int], rows: list[Row]) -> _Answer:
        """Return all that the agent says of its app at a review."""
        self._note_losses(reported if self._arrived else range(len(rows)), rows)
        view = self._view(elapsed_s, reported, rows)
        verdict = self._call(self._agent.review, view)
        if verdict is None:
            verdict = Verdict()
        if not isinstance(verdict, Verdict):
            raise self._wrong(f"review returned {verdict!r}: expected a Verdict or None")
        budget = None if self._arrived else self._call(self._agent.budget, view)
        self._arrived = True
        return _Answer(
            goals=self._goals(verdict.goals, view),
            stops=[*self._stops("kills", verdict.kills), *self._stops("done", verdict.done)],
            over=None if verdict.over is None else self._text(verdict.over, "over"),
            budget=None if budget is None else self._demands("budget", budget),
            later=self._demands("later", self._call(self._agent.later, view)),
            ranks=self._ranks(self._call(self._agent.order, view)),
            expected_gpu_s=self._expected(self._call(self._agent.expected_gpu_s, view), view),
        )

    def moved(self, elapsed_s: float, moves: list[tuple[int, int, int]], rows: list[Row]) -> None:
        """Tell the agent which jobs (number, gained, lost) have other GPUs now."""
        view = self._view(elapsed_s, [], rows)
        for number, gained, lost in moves:
            for hook, gpus in ((self._agent.on_revoke, lost), (self._agent.on_grant, gained)):
                # Declared to return nothing; one that does was meant to decide something.
                told = (
                    self._call(cast("Callable[..., object]", hook), view, self._ids[number], gpus)
                    if gpus
                    else None
                )
                if told is not None:
                    name = hook.__name__
                    raise self._wrong(f"{name} returned {told!r}: expected None, as review decides")

    def least(
        self,
        elapsed_s: float,
        whole: bool,  # noqa: FBT001 - called by position
        rows: list[Row],
    ) -> tuple[bool, list[list[list[tuple[int | None, float, int]]]]]:
        """Return whether any chain is enough, and the chains."""
        view = self._view(elapsed_s, [], rows)
        answer = self._call(self._agent.least, view, whole=whole)
        if not isinstance(answer, Least):
            raise self._wrong(f"least returned {answer!r}: expected a Least")
        chains = [
            [
                [self._piece(piece) for piece in self._list(phase, "least: a phase", "pieces")]
                for phase in self._list(chain, "least: a chain", "phases")
            ]
            for chain in self._list(answer.chains, "least: chains", "chains")
        ]
        if answer.any and not chains:
            raise self._wrong("least has no chains: expected one at least, of which any is enough")
        return bool(answer.any), chains

    def refusal(self, job: int, problem: str) -> AgentError:
        """Return the error for a verdict that the engine can't carry out."""
        return self._wrong(problem, self._ids[job])

    def _call(self, method: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            at_s = args[0].elapsed_s if args and isinstance(args[0], AppView) else math.nan
            error.add_note(f"raised by {self._name}.{method.__name__}, {at_s} s after it arrived")
            raise

    @property
    def _name(self) -> str:
        return f"agent {type(self._agent).__name__} of app {self._app['app_id']!r}"

    def _wrong(self, problem: str, job: object = None) -> AgentError:
        where = "" if job is None else f", job {job!r}"
        return AgentError(f"{self._name}{where}: {problem}")

    def _view(self, elapsed_s: float, reported: list[int], rows: list[Row]) -> AppView:
        app = self._app
        return AppView(
            app_id=app["app_id"],
            stopping=app["stopping"],
            max_gpus=app["max_gpus"],
            target_loss=app["target_loss"],
            elapsed_s=elapsed_s,
            jobs=tuple(self._report(number, row) for number, row in enumerate(rows)),
            reported=tuple(self._ids[number] for number in reported),
        )

    def _report(self, number: int, row: Row) -> JobReport:
        standing, competes, work, done, most, iterations, loss, bracket, gpus, rate = row
        return JobReport(
            job_id=self._ids[number],
            standing=standing,  # type: ignore[arg-type] # one of those, in Rust
            competes=competes,
            work_gpu_s=work,
            done_gpu_s=done,
            gang_size=self._gangs[number],
            max_gpus=most,
            iterations=iterations,
            loss=loss,
            losses=self._losses[number],
            bracket=bracket,
            slowdowns=self._slowdowns[number],
            gpus=gpus,
            rate=rate,
        )

    def _note_losses(self, numbers: Iterable[int], rows: list[Row]) -> None:
        for number in numbers:
            job = self._report(number, rows[number])
            if job.loss is not None and job.iterations_done is not None:
                self._losses[number] += ((job.iterations_done, job.loss),)

    def _goals(self, goals: object, view: AppView) -> list[tuple[int, float, int]]:
        cap = min(view.max_gpus or _MOST_GPUS, _MOST_GPUS)
        found = []
        for job, goal in self._by_job("goals", goals):
            if not isinstance(goal, Goal):
                raise self._wrong(f"its goal is {goal!r}: expected a Goal", self._ids[job])
            until_gpu_s = self._number(goal.until_gpu_s, "until_gpu_s", self._ids[job])
            most = view.jobs[job].max_gpus if goal.max_gpus is None else goal.max_gpus
            most = self._count(most, "max_gpus", self._ids[job])
            found.append((job, until_gpu_s, min(most, cap)))
        return found

    def _stops(self, what: str, stops: object) -> list[tuple[int, bool, str]]:
        told = self._by_job(what, stops)
        return [(job, what == "done", self._text(why, what, self._ids[job])) for job, why in told]

    def _ranks(self, order: object) -> list[float]:
        listed = [self._job(job, "order") for job in self._list(order, "order", "job ids")]
        ranks = [float(len(listed))] * len(self._ids)
        for place, job in enumerate(listed):
            if ranks[job] < len(listed):
                raise self._wrong("is in order twice: expected once", self._ids[job])
            ranks[job] = float(place)
        return ranks

    def _expected(self, expected: object, view: AppView) -> list[float | None]:
        found: list[float | None] = [None] * len(self._ids)
        for job, value in self._by_job("expected_gpu_s", expected):
            gpu_s = self._number(value, "expected_gpu_s", self._ids[job])
            most = view.jobs[job].work_gpu_s
            if gpu_s > most * (1 + 1e-9):
                problem = f"expected_gpu_s is {value!r}: expected at most its work, {most}"
                raise self._wrong(problem, self._ids[job])
            found[job] = gpu_s
        return found

    def _demands(self, what: str, demands: object) -> list[tuple[float, float, float]]:
        found = []
        for demand in self._list(demands, what, "Demands"):
            if not isinstance(demand, Demand):
                raise self._wrong(f"{what} has {demand!r}: expected a Demand")
            names = ("work_gpu_s", "gpus", "longest_s")
            work, gpus, longest = (
                self._number(getattr(demand, name), f"{what}: {name}") for name in names
            )
            if work > 0 and gpus == 0:
                raise self._wrong(f"{what}: gpus is {demand.gpus!r}: expected more than 0 for work")
            found.append((work, gpus, longest))
        return found

    def _piece(self, piece: object) -> tuple[int | None, float, int]:
        if not isinstance(piece, Piece):
            raise self._wrong(f"least has {piece!r}: expected a Piece")
        job = None if piece.job_id is None else self._job(piece.job_id, "least")
        least = 1 if job is None else max(self._gangs[job], 1)
        work = self._number(piece.work_gpu_s, "least: work_gpu_s", piece.job_id)
        return job, work, self._count(piece.max_gpus, "least: max_gpus", piece.job_id, least)

    def _by_job(self, what: str, answer: object) -> list[tuple[int, object]]:
        if not isinstance(answer, Mapping):
            raise self._wrong(f"{what} is {answer!r}: expected a mapping by job id")
        return [(self._job(job, what), value) for job, value in answer.items()]

    def _list(self, answer: object, what: str, of: str) -> list[object]:
        if isinstance(answer, str) or not isinstance(answer, Sequence):
            raise self._wrong(f"{what} is {answer!r}: expected a sequence of {of}")
        return list(answer)

    def _job(self, job: object, what: str) -> int:
        number = self._numbers.get(job) if isinstance(job, str) else None
        if number is None:
            close = nearest(str(job), self._ids)
            raise self._wrong(f"{what} names job {job!r}{close}: expected a job of the app")
        return number

    def _text(self, value: object, what: str, job: str | None = None) -> str:
        if not isinstance(value, str) or not value:
            raise self._wrong(f"{what} is {value!r}: expected the reason, in words", job)
        return value.encode(errors="replace").decode()  # lone surrogates have no UTF-8

    def _number(self, value: object, what: str, job: str | None = None) -> float:
        number = math.nan
        if not isinstance(value, bool) and isinstance(value, Real):
            with contextlib.suppress(OverflowError):
                number = float(value)
        if not 0 <= number < math.inf:
            raise self._wrong(f"{what} is {value!r}: expected a finite number from 0", job)
        return number

    def _count(self, value: object, what: str, job: str | None, least: int = 1) -> int:
        good = isinstance(value, Integral) and not isinstance(value, bool)
        if not good or not least <= int(cast("Integral", value)) <= _MOST_GPUS:
            raise self._wrong(f"{what} is {value!r}: expected {least} to 2^30 whole GPUs", job)
        return int(cast("Integral", value))


def choose_agents(agents: Agents | None, workload: Workload) -> dict[str, Agent]:
    """Return the agents by app id: new, or given.

    Raises
    ------
    ScenarioError
        An app is unknown, or what is given or made for one is no agent of its own.
    """
    if agents is None:
        return {}
    ids = workload.apps.get_column("app_id").to_list()
    if isinstance(agents, Mapping):
        for app in agents:
            if app not in ids:
                close = nearest(str(app), ids)
                raise ScenarioError(f"agents: app {app!r} is not in the workload{close}")
        chosen = dict(agents)
    elif callable(agents):
        rows = workload.apps.iter_rows(named=True)
        made = ((row["app_id"], agents(row)) for row in rows)
        chosen = {app: agent for app, agent in made if agent is not None}
    else:
        raise ScenarioError(f"agents is {agents!r}: expected agents by app id, or a function")
    owners: dict[int, str] = {}
    for app, agent in chosen.items():
        if not isinstance(agent, Agent):
            raise ScenarioError(f"agents: app {app!r} has {agent!r}: expected a themis.Agent")
        if agent._spent or id(agent) in owners:  # noqa: SLF001 - ours
            used = owners.get(id(agent))
            where = "in a run before" if used is None else f"for app {used!r}"
            raise ScenarioError(
                f"agents: app {app!r} has an agent that was used {where}: expected a new one"
            )
        owners[id(agent)] = app
    return chosen


def drivers(
    agents: Mapping[str, Agent], workload: Workload, columns: CoreColumns
) -> list[tuple[int, Driver]]:
    """Return (app number, driver) for each agent, which are used up by it."""
    if not agents:
        return []
    jobs = jobs_by_app(workload).with_row_index("row")
    found = []
    for number, app in enumerate(workload.apps.iter_rows(named=True)):
        agent = agents.get(app["app_id"])
        if agent is None:
            continue
        mine = jobs.filter(pl.col("app") == number)
        profiles = columns.jobs["profile"][mine.get_column("row").to_numpy()]
        slowdowns = [Profile(*columns.slowdowns[profile].tolist()) for profile in profiles]
        agent._spent = True  # noqa: SLF001 - ours
        found.append((number, Driver(agent, app, mine, slowdowns)))
    return found


def anew(
    agents: Agents | None, chosen: Mapping[str, Agent], workload: Workload
) -> dict[str, Agent]:
    """Return agents like those chosen, for another run; call before the first one."""
    if agents is None or isinstance(agents, Mapping):
        return copy.deepcopy(dict(chosen))
    return choose_agents(agents, workload)
