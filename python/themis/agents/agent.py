"""App schedulers of one's own: what an agent sees of its app, and what it answers.

An app is a search over jobs. The arbiter gives it GPUs and never looks inside; its agent says how
far each job runs, which are killed, who is served first, and what is still to come (Mahajan et al.,
NSDI 2020, section 4.3). :class:`Agent` is that interface; `themis.simulate(..., agents=)` plays it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from themis.profiles import Profile

__all__ = [
    "Agent",
    "Agents",
    "AppView",
    "Demand",
    "Goal",
    "JobReport",
    "Least",
    "Piece",
    "Standing",
    "Verdict",
]

Standing = Literal["future", "open", "at_goal", "done", "dropped"]
"""Not submitted yet; on its way to its goal, with GPUs or without; at its goal; done; killed, or
never able to run."""

Locality = Literal["slot", "machine", "rack", "cluster"]


@dataclass(frozen=True)
class JobReport:
    """A job as its agent sees it at one instant.

    Parameters
    ----------
    job_id, gang_size, max_gpus, iterations, bracket
        As submitted; `iterations` of the whole work, None where unknown; `bracket` 0: none.
    standing
        Where it stands.
    competes
        False for a job without work for GPUs, or of a larger gang than the cluster: it is no part
        of the search.
    work_gpu_s, done_gpu_s
        GPU-seconds on one GPU and perfect placement: in all, should it run to its end, and done.
    loss
        Its loss by now; None where unknown.
    losses
        (iterations, loss) at the arrival of the app and each time that it reported.
    slowdowns
        S on one slot, one machine, one rack, and across racks: its sensitivity to placement.
    gpus, rate
        GPUs that it holds, and GPU-seconds of work a second on them, once it is over a switch.
    """

    job_id: str
    standing: Standing
    competes: bool
    work_gpu_s: float
    done_gpu_s: float
    gang_size: int
    max_gpus: int
    iterations: float | None
    loss: float | None
    losses: tuple[tuple[float, float], ...]
    bracket: int
    slowdowns: Profile
    gpus: int
    rate: float

    @property
    def left_gpu_s(self) -> float:
        """GPU-seconds left, should it run to its end."""
        return max(self.work_gpu_s - self.done_gpu_s, 0.0)

    @property
    def iterations_done(self) -> float | None:
        """Iterations done; None where unknown."""
        if self.iterations is None or not self.competes:
            return None
        return self.iterations * self.done_gpu_s / self.work_gpu_s

    @property
    def iterations_left(self) -> float | None:
        """Iterations left, should it run to its end; None where unknown."""
        done = self.iterations_done
        return None if self.iterations is None or done is None else self.iterations - done

    def gpu_s_after(self, iterations: float) -> float:
        """Return the GPU-seconds done after so many iterations, at most all of its work.

        Raises
        ------
        ValueError
            Its iterations are unknown.
        """
        if self.iterations is None:
            raise ValueError(f"job {self.job_id!r}: its iterations are unknown")
        return self.work_gpu_s * min(iterations, self.iterations) / self.iterations

    def iteration_s(self, gpus: int, locality: Locality) -> float | None:
        """Return the seconds of an iteration on so many GPUs; None where iterations are unknown.

        Parameters
        ----------
        locality
            How close together they are: "slot", "machine", "rack" or "cluster".
        """
        if self.iterations is None:
            return None
        slowdown: float = getattr(self.slowdowns, locality)
        return self.work_gpu_s / self.iterations * slowdown / min(gpus, self.max_gpus)


@dataclass(frozen=True)
class AppView:
    """An app as its agent sees it at one instant.

    Parameters
    ----------
    app_id, stopping, max_gpus, target_loss
        Of the workload; None: no cap, no target.
    elapsed_s
        Seconds since it arrived.
    jobs
        All of its jobs, by (submission, job id).
    reported
        Those that ended or are at their goals just now; none when the app arrives.
    """

    app_id: str
    stopping: str
    max_gpus: int | None
    target_loss: float | None
    elapsed_s: float
    jobs: tuple[JobReport, ...]
    reported: tuple[str, ...]

    @property
    def competitors(self) -> tuple[JobReport, ...]:
        """The jobs that take part in the search."""
        return tuple(job for job in self.jobs if job.competes)

    def job(self, job_id: str) -> JobReport:
        """Return one of its jobs.

        Raises
        ------
        KeyError
            There is no such job.
        """
        for job in self.jobs:
            if job.job_id == job_id:
                return job
        raise KeyError(job_id)


@dataclass(frozen=True)
class Goal:
    """How far a job runs before it reports again.

    Parameters
    ----------
    until_gpu_s
        GPU-seconds done in all by then: more than now, at most all of its work.
    max_gpus
        Most GPUs that it can use on the way, at least its gang and those it holds; None: as
        submitted. Never more than the cap of its app.
    """

    until_gpu_s: float
    max_gpus: int | None = None


@dataclass(frozen=True)
class Verdict:
    """What an agent decides.

    Parameters
    ----------
    goals
        New goals by job id. A job at its goal without a new one pauses, and leaves its GPUs to the
        others. Until told otherwise a job's goal is its whole work.
    kills
        Jobs to drop, and why in words.
    done
        Jobs that did what they were for before their work is done, and why in words.
    over
        The app is over: why its other jobs are killed. None: it goes on.
    """

    goals: Mapping[str, Goal] = field(default_factory=dict)
    kills: Mapping[str, str] = field(default_factory=dict)
    done: Mapping[str, str] = field(default_factory=dict)
    over: str | None = None


@dataclass(frozen=True)
class Demand:
    """A phase: jobs that run at once.

    Parameters
    ----------
    work_gpu_s
        GPU-seconds of all of them.
    gpus
        Most GPUs that they can use in all.
    longest_s
        The time that the longest of them takes on the most GPUs that it can use.
    """

    work_gpu_s: float
    gpus: float
    longest_s: float


@dataclass(frozen=True)
class Piece:
    """Work that no schedule avoids.

    Parameters
    ----------
    work_gpu_s, max_gpus
        GPU-seconds, and the most GPUs that can be used for it.
    job_id
        Which job does it; None where that is open, so that nothing slows it down.
    """

    work_gpu_s: float
    max_gpus: int
    job_id: str | None = None


@dataclass(frozen=True)
class Least:
    """The work that no schedule avoids: chains of phases of pieces.

    Parameters
    ----------
    chains
        The pieces of a phase may run at once, the phases of a chain one after the other, and
        chains beside one another.
    any
        One of the chains is enough, instead of all.
    """

    chains: Sequence[Sequence[Sequence[Piece]]]
    any: bool = False


class Agent:
    """The scheduler of one app of one run.

    Every method has a default: that of an app whose jobs all run to their ends. A method of one's
    own sees the app as it is, and never what is still to come: losses up to now, no more.

    What it answers is checked, and a wrong answer ends the run with an
    :class:`~themis.AgentError`. What it raises ends the run as it is, with a note of where.
    Bids ask nothing: they use the answers given at the last review.
    """

    ends_with_first: ClassVar[bool] = False
    """Whether the app waits for its first job that is done, and values GPUs by that; it is still
    for `review` to end the app then."""

    _spent = False

    def review(self, app: AppView) -> Verdict | None:  # noqa: ARG002 - for those who override it
        """Decide, when the app arrives and whenever jobs of it report.

        None is a verdict that says nothing. Then, and only then, the other questions are asked.
        """
        return None

    def order(self, app: AppView) -> Sequence[str]:  # noqa: ARG002 - the same
        """Return job ids by who is served first; those left out come last.

        Within one place the app's own rule holds: the job that needs longest first.
        """
        return ()

    def expected_gpu_s(self, app: AppView) -> Mapping[str, float]:  # noqa: ARG002 - the same
        """Return by job id after how many GPU-seconds in all it is expected to be good enough.

        Bids then count work up to there, at least to the job's goal; of jobs left out, to the goal.
        """
        return {}

    def later(self, app: AppView) -> Sequence[Demand]:  # noqa: ARG002 - the same
        """Return the phases expected after that of the running jobs, for bids."""
        return ()

    def budget(self, app: AppView) -> Sequence[Demand] | None:  # noqa: ARG002 - the same
        """Return the budget of the whole search, phase by phase, for its T_ID.

        Asked once, after the first review. None: all the work that is submitted.
        """
        return None

    def least(self, app: AppView, *, whole: bool) -> Least:
        """Return the work that no schedule avoids, for `rho_floor`.

        Asked when the app is over, or the run.

        By default what was done of jobs that ended, and all work of the others; with
        `ends_with_first` any one of the jobs.

        Parameters
        ----------
        whole
            From the start; else from now on.
        """

        def piece(job: JobReport) -> Piece:
            ended = job.standing in {"done", "dropped"} and not self.ends_with_first
            until = job.done_gpu_s if ended else job.work_gpu_s
            done = 0.0 if whole else job.done_gpu_s
            return Piece(max(until - done, 0.0), job.max_gpus, job.job_id)

        pieces = [piece(job) for job in app.competitors]
        if self.ends_with_first:
            return Least([[[piece]] for piece in pieces], any=True)
        return Least([[pieces]])

    def on_grant(self, app: AppView, job_id: str, gpus: int) -> None:
        """Hear that a job was granted GPUs that it did not have: how many.

        Hooks are called after a whole decision was carried out. A renewal of the same GPUs is no
        news, nor are GPUs that a job leaves when it ends or pauses.
        """

    def on_revoke(self, app: AppView, job_id: str, gpus: int) -> None:
        """Hear that leases of a job ended and were not granted again: how many GPUs it lost.

        A job that goes on elsewhere has both: first `on_revoke`, then `on_grant`.
        """


Agents = Mapping[str, Agent] | Callable[[Mapping[str, object]], Agent | None]
"""An agent by app id, or a function of an app's row of the workload that makes one; apps without
one keep the scheduler that their `stopping` names."""
