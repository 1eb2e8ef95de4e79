"""Let Optuna's HyperBand pruner drive the searches (needs the extra `optuna`).

Optuna decides which trial goes on, after what its trials reported; Themis decides who gets GPUs,
and so when a trial reports. The curves are synthetic ones of the paper's first workload.
"""

# ruff: noqa: INP001, T201 - a script to read and run, which prints

from __future__ import annotations

import optuna

import themis

LOOKS = 27  # reports of a job on its way to its end


class OptunaAgent(themis.Agent):
    """A study for an app, a trial for a job: what the pruner drops is killed."""

    def __init__(self, name: str) -> None:
        pruner = optuna.pruners.HyperbandPruner(max_resource=LOOKS, reduction_factor=3)
        # The name decides which trials go to which bracket.
        self.study = optuna.create_study(study_name=name, pruner=pruner)
        self.trials: dict[str, optuna.trial.Trial] = {}
        self.looks: dict[str, int] = {}

    def review(self, app: themis.AppView) -> themis.Verdict:
        """Pass on what was reported, and do what the pruner says."""
        if not app.reported:
            self.trials = {job.job_id: self.study.ask() for job in app.competitors}
            return themis.Verdict(goals={job: self.next(app.job(job)) for job in self.trials})
        goals, kills = {}, {}
        for job in map(app.job, app.reported):
            trial = self.trials[job.job_id]
            if job.standing == "done":
                self.study.tell(trial, job.loss)
                continue
            trial.report(job.loss, self.looks[job.job_id])
            if trial.should_prune():
                self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                kills[job.job_id] = f"pruned by Optuna at look {self.looks[job.job_id]}"
            else:
                goals[job.job_id] = self.next(job)
        return themis.Verdict(goals=goals, kills=kills)

    def next(self, job: themis.JobReport) -> themis.Goal:
        """Return the next look, one step of the work further."""
        look = self.looks[job.job_id] = self.looks.get(job.job_id, 0) + 1
        return themis.Goal(job.work_gpu_s * look / LOOKS)


optuna.logging.set_verbosity(optuna.logging.WARNING)
cluster = themis.Cluster.preset("nsdi20-testbed")
workload = themis.generate("nsdi20-w1", seed=0)
agents = {app: OptunaAgent(app) for app in workload.apps["app_id"]}

print(f"{'':15}{'jobs done':>10}{'killed':>8}{'GPU-hours':>11}{'mean hours of an app':>22}")
for name, chosen in (("as generated", None), ("Optuna", agents)):
    figures = themis.simulate(workload, cluster, agents=chosen, seed=0).summary()
    done, killed = figures["jobs_done"], figures["jobs_killed"]
    hours, mean = figures["gpu_s"] / 3600, figures["app_completion_mean_s"] / 3600
    print(f"{name:15}{done:10}{killed:8}{hours:11.0f}{mean:22.2f}")
best = [agent.study.best_value for agent in agents.values()]
print(f"best losses of the first three apps: {', '.join(f'{loss:.4f}' for loss in best[:3])}")
