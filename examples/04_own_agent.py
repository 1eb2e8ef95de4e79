"""Write an app scheduler: asynchronous halving, which never waits for the slowest of a phase."""

# ruff: noqa: INP001, T201 - a script to read and run, which prints

from __future__ import annotations

import themis


class AsynchronousHalving(themis.Agent):
    """A job goes on while it is in the better half of all that came as far (ASHA, Li et al. 2020).

    Rungs are at an eighth, a quarter and half of the work.
    """

    rungs = (1 / 8, 1 / 4, 1 / 2, 1.0)

    def __init__(self) -> None:
        self.losses: dict[int, list[float]] = {}
        self.reached: dict[str, int] = {}
        self.revoked_gpus = 0

    def review(self, app: themis.AppView) -> themis.Verdict:
        """Send all jobs to their first rung; then each on, or out."""
        if not app.reported:
            return themis.Verdict(goals={job.job_id: self.goal(job) for job in app.competitors})
        goals, kills = {}, {}
        for job in map(app.job, app.reported):
            if job.standing != "at_goal" or job.loss is None:
                continue
            rung = self.reached.get(job.job_id, 0)
            rivals = self.losses.setdefault(rung, [])
            rivals.append(job.loss)
            rank = sorted(rivals).index(job.loss)
            if 2 * rank >= len(rivals) > 1:
                kills[job.job_id] = f"rank {rank + 1} of {len(rivals)} at rung {rung + 1}"
            else:
                self.reached[job.job_id] = rung + 1
                goals[job.job_id] = self.goal(job)
        return themis.Verdict(goals=goals, kills=kills)

    def goal(self, job: themis.JobReport) -> themis.Goal:
        """Return the next rung."""
        return themis.Goal(job.work_gpu_s * self.rungs[self.reached.get(job.job_id, 0)])

    def on_revoke(self, app: themis.AppView, job_id: str, gpus: int) -> None:  # noqa: ARG002
        """Count what leases that were not renewed took."""
        self.revoked_gpus += gpus


cluster = themis.Cluster.preset("nsdi20-testbed")
workload = themis.generate("nsdi20-w1", seed=0)
agents = {app: AsynchronousHalving() for app in workload.apps["app_id"]}

print(f"{'':15}{'jobs done':>10}{'killed':>8}{'GPU-hours':>11}{'mean hours of an app':>22}")
for name, chosen in (("as generated", None), ("asynchronous", agents)):
    result = themis.simulate(workload, cluster, agents=chosen, seed=0)
    figures = result.summary()
    done, killed = figures["jobs_done"], figures["jobs_killed"]
    hours, mean = figures["gpu_s"] / 3600, figures["app_completion_mean_s"] / 3600
    print(f"{name:15}{done:10}{killed:8}{hours:11.0f}{mean:22.2f}")
print(f"GPUs revoked from agents: {sum(agent.revoked_gpus for agent in agents.values())}")
