"""The built-in app schedulers written again, as a user would: agents in Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from themis.agents.agent import Agent, AppView, Demand, Goal, JobReport, Least, Piece, Verdict

__all__ = ["Everything", "First", "Halving"]


class Everything(Agent):
    """Every job runs to its end."""


class First(Agent):
    """The first job that is done ends the app."""

    ends_with_first = True

    def review(self, app: AppView) -> Verdict | None:
        ended = [app.job(job) for job in app.reported]
        first = [
            job for job in ended if job.standing == "done" and (job.competes or not app.competitors)
        ]
        return Verdict(over="another job of its app was done first") if first else None


@dataclass
class Bracket:
    """Jobs that halve together, by position in the app; those still in the race."""

    jobs: list[int]
    live: list[int] = field(init=False)
    phase: int = 0

    def __post_init__(self) -> None:
        self.live = list(self.jobs)

    @property
    def phases(self) -> int:
        return 1 + (len(self.jobs) - 1).bit_length()

    def cut(self, job: JobReport, phases: int) -> float:
        """Return the GPU-seconds that a job has done after so many phases."""
        if phases >= self.phases:
            return job.work_gpu_s
        share = (2.0**phases - 1) / (2.0**self.phases - 1)
        if job.iterations is None:
            return share * job.work_gpu_s
        whole = float(int(share * job.iterations * (1 + 1e-12)))
        return job.work_gpu_s * min(max(whole, float(phases)), job.iterations) / job.iterations


class Halving(Agent):
    """Successive halving, in the brackets of HyperBand."""

    def __init__(self, *, doubling: bool) -> None:
        self.doubling = doubling
        self.brackets: list[Bracket] = []
        self.ahead: list[Demand] = []

    def most(self, app: AppView, job: JobReport, phase: int) -> int:
        cap = job.max_gpus * 2**phase if self.doubling else job.max_gpus
        return min(cap, app.max_gpus or 2**30)

    def review(self, app: AppView) -> Verdict:
        begins = not self.brackets
        if begins:
            numbers = [n for n, job in enumerate(app.jobs) if job.competes]
            kinds = dict.fromkeys(app.jobs[n].bracket for n in numbers)
            for kind in kinds:
                mine = [n for n in numbers if app.jobs[n].bracket == kind]
                self.brackets.append(Bracket(mine))
        goals: dict[str, Goal] = {}
        kills: dict[str, str] = {}
        moved = begins
        for bracket in self.brackets:
            before = bracket.phase
            while bracket.phase + 1 < bracket.phases and self.is_through(app, bracket):
                kills.update(self.halve(app, bracket))
            if begins or bracket.phase > before:
                moved = True
                for job in (app.jobs[n] for n in bracket.live):
                    if job.standing != "done":
                        until = bracket.cut(job, bracket.phase + 1)
                        goals[job.job_id] = Goal(until, self.most(app, job, bracket.phase))
        if moved:
            self.ahead = self.outlook(app, 1)
        return Verdict(goals=goals, kills=kills)

    def is_through(self, app: AppView, bracket: Bracket) -> bool:
        def waits(job: JobReport) -> bool:
            if job.standing == "at_goal":
                return job.done_gpu_s < bracket.cut(job, bracket.phase + 1) * (1 - 1e-9)
            return job.standing in {"future", "open"}

        return not any(waits(app.jobs[n]) for n in bracket.live)

    def halve(self, app: AppView, bracket: Bracket) -> dict[str, str]:
        def loss(number: int) -> float:
            found = app.jobs[number].loss
            return float("inf") if found is None else found

        ranked = sorted(bracket.live, key=lambda number: (loss(number), number))
        kept = left_after(len(ranked), 1)
        bracket.phase += 1
        bracket.live = sorted(ranked[:kept])
        return {
            app.jobs[number].job_id: f"rank {rank} of {len(ranked)} "
            f"({'by loss' if loss(number) < float('inf') else 'by number, loss unknown'}) "
            f"after phase {bracket.phase} of {bracket.phases}"
            for rank, number in enumerate(ranked[kept:], kept + 1)
            if app.jobs[number].standing == "at_goal"
        }

    def outlook(self, app: AppView, first: int) -> list[Demand]:
        """Return the phases from so many ahead on, all brackets at once."""
        left = max((b.phases - b.phase for b in self.brackets), default=0)
        found = []
        for ahead in range(first, left):
            work, gpus, longest = 0.0, 0.0, 0.0
            for bracket in (b for b in self.brackets if b.phase + ahead < b.phases):
                mine = self.demand(app, bracket, ahead)
                work, gpus = work + mine.work_gpu_s, gpus + mine.gpus
                longest = max(longest, mine.longest_s)
            found.append(Demand(work, min(gpus, float(app.max_gpus or 2**32 - 1)), longest))
        return found

    def demand(self, app: AppView, bracket: Bracket, ahead: int) -> Demand:
        phase = bracket.phase + ahead

        def one(number: int) -> Demand:
            job = app.jobs[number]
            work = bracket.cut(job, phase + 1) - bracket.cut(job, phase)
            gpus = self.most(app, job, phase)
            return Demand(work, gpus, work / gpus)

        live = sorted(bracket.live, key=lambda n: (app.jobs[n].work_gpu_s, n))
        if ahead == 0:
            each = [one(number) for number in bracket.live]
            work, gpus = 0.0, 0.0
            for mine in each:
                work, gpus = work + mine.work_gpu_s, gpus + mine.gpus
            return Demand(work, gpus, max(mine.longest_s for mine in each))
        median = one(live[(len(live) - 1) // 2])
        jobs = left_after(len(live), ahead)
        return Demand(jobs * median.work_gpu_s, jobs * median.gpus, median.longest_s)

    def later(self, app: AppView) -> list[Demand]:  # noqa: ARG002 - kept since the last phase
        return self.ahead

    def budget(self, app: AppView) -> list[Demand]:
        return self.outlook(app, 0)

    def least(self, app: AppView, *, whole: bool) -> Least:
        return Least(
            [
                [
                    self.pieces(app, bracket, phase, whole=whole)
                    for phase in range(0 if whole else bracket.phase, bracket.phases)
                ]
                for bracket in self.brackets
            ]
        )

    def pieces(self, app: AppView, bracket: Bracket, phase: int, *, whole: bool) -> list[Piece]:
        found = []
        for number in bracket.jobs:
            job = app.jobs[number]
            start, end = bracket.cut(job, phase), bracket.cut(job, phase + 1)
            if phase < bracket.phase or number not in bracket.live:
                end = min(end, job.done_gpu_s)
            if not whole:
                start = max(start, job.done_gpu_s)
            most = self.most(app, job, phase)
            found.append((number, Piece(max(end - start, 0.0), most, job.job_id)))
        if phase <= bracket.phase:
            return [piece for _, piece in found]
        # Who goes on is open: the smallest works, on the most GPUs.
        live = [piece for number, piece in found if number in bracket.live]
        live.sort(key=lambda piece: piece.work_gpu_s)
        most = max(piece.max_gpus for piece in live)
        left = left_after(len(bracket.live), phase - bracket.phase)
        return [Piece(piece.work_gpu_s, most) for piece in live[:left]]


def left_after(jobs: int, halvings: int) -> int:
    """Return the jobs left after so many halvings, rounded up each time."""
    for _ in range(halvings):
        jobs = (jobs + 1) // 2
    return jobs
