"""``themis compare``: several policies on the same workload and cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from themis.cli.console import Cell, Table, note, print_json, print_table
from themis.cli.options import SEED_COUNT, force_option, json_option, quiet_option, threads_option
from themis.cli.progress import Progress, progress_bar
from themis.cli.results import check_output, metric_table, over_seeds, say_remarks, scaled
from themis.cli.run import check_policy
from themis.cli.scenario_flags import (
    ScenarioFlags,
    say_idle_sweep,
    say_scenario,
    scenario_flags,
)

if TYPE_CHECKING:
    from themis.comparison.comparison import Comparison
    from themis.metrics import Number
    from themis.scenario.scenario import Experiment

__all__ = ["compare", "play_all", "show"]

_HOUR_S = 3600.0
_DEFAULT_POLICIES = "themis,tiresias,fifo,max_rho"


@click.command(short_help="Simulate several policies on the same workload.")
@scenario_flags
@click.option(
    "--policies",
    metavar="A,B,...",
    default=_DEFAULT_POLICIES,
    show_default=True,
    help="Policies to compare.",
)
@click.option(
    "--seeds",
    type=SEED_COUNT,
    metavar="N",
    default=1,
    show_default=True,
    help="Runs a policy: with --seed and the numbers after it.",
)
@click.option(
    "--baseline",
    metavar="NAME",
    help="Policy that the others are compared with.  [default: fifo, if it is among them]",
)
@click.option("-o", "--out", metavar="DIR", help="Directory for results, tables and report.")
@click.option(
    "--print-scenario", is_flag=True, help="Write the scenario that the flags mean; run nothing."
)
@force_option
@threads_option
@json_option
@quiet_option
def compare(
    *,
    flags: ScenarioFlags,
    policies: str,
    seeds: int,
    baseline: str | None,
    out: str | None,
    print_scenario: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Simulate several policies on the same workload and cluster.

    Flags are those of `themis run`. With several seeds the table shows medians. With --out each
    policy's result, the tables and report.html are kept; an earlier comparison there is
    replaced.
    """
    scenario = flags.resolve()
    if print_scenario:
        say_scenario(scenario, as_json=as_json)
        return
    say_idle_sweep(scenario, quiet=quiet)
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if out is not None:
        check_output(out, force=force, keeps=flags.files(scenario))
    for name in names:
        check_policy(name)
    if baseline is not None and baseline not in names:
        raise click.UsageError(f"--baseline {baseline} is not among --policies {policies}.")
    experiment = scenario.build()
    numbers = range(experiment.seed, experiment.seed + seeds)
    comparison = play_all(
        experiment, names, numbers, baseline=baseline, out=out, force=force, quiet=quiet
    )
    show(
        comparison,
        f"{', '.join(names)} on {experiment.cluster}",
        out=out,
        as_json=as_json,
        quiet=quiet,
    )
    if out is None:
        note("nothing was kept; --out DIR keeps results and report", quiet=quiet)


def play_all(
    experiment: Experiment,
    policies: Sequence[str],
    seeds: Sequence[int],
    *,
    baseline: str | None = None,
    out: str | None,
    force: bool,
    quiet: bool,
) -> Comparison:
    """Play an experiment under every policy and seed, with bars, notes and times.

    Parameters
    ----------
    experiment
        Workload, cluster and settings; its own policy is not looked at.
    policies, seeds
        Every policy is played with every seed.
    baseline
        The policy that the others are compared with, or None.
    out
        Directory for the comparison, or None.
    force, quiet
        As the flags.
    """
    from themis.comparison.comparing import compare as play  # noqa: PLC0415 - loads polars
    from themis.report.notes import run_name  # noqa: PLC0415 - the same

    watch, started = _Watch(quiet=quiet), time.perf_counter()
    with watch.stack, _keeping_finished_runs(out):
        comparison = play(
            experiment.workload,
            experiment.cluster,
            policies=policies,
            seeds=seeds,
            progress=watch,
            out=out,
            force=force,
            scenario=experiment.scenario,
            profiles=experiment.scenario.own_profiles(),
            tenants=experiment.scenario.tenants,
            baseline=baseline,
            **experiment.settings.model_dump(),
        )
    watch.finish()
    took_s = time.perf_counter() - started
    note(f"{len(comparison.runs)} runs in {took_s:.1f} s", quiet=quiet)
    played = [(run_name(run), run.manifest) for run in comparison.runs]
    say_remarks(experiment.workload, played, quiet=quiet)
    return comparison


def show(
    comparison: Comparison, title: str, *, out: str | None, as_json: bool, quiet: bool
) -> None:
    """Print the table of policies and where the report is, or both as JSON."""
    report = None if out is None else str(Path(out).absolute() / "report.html")
    if as_json:
        print_json({**comparison.summary(), "report": report})
        return
    columns = over_seeds([(run.label, run.summary) for run in comparison.runs])
    if len(comparison.seeds) > 1:
        title += f": median of {len(comparison.seeds)} seeds"
    else:
        title += f", seed {comparison.seeds[0]}"
    print_table(metric_table(title, columns))
    if len(comparison.policies) > 1:
        click.echo()
        print_table(_against_baseline(comparison))
    for run in comparison.runs:
        _say_what_is_left_out(run.label, run.summary, quiet=quiet)
    if report is not None:
        click.echo(f"report: {report}")


def _against_baseline(comparison: Comparison) -> Table:
    """Return who finishes sooner and later than under the baseline, and by how much."""
    counts = {row["policy"]: row for row in comparison.winners().to_dicts()}
    columns = ("policy", "apps", "sooner", "same", "later", "cut off")
    means = ("mean gain (h)", "from", "to", "change of rho", "from", "to")
    rows: list[list[Cell]] = []
    for row in comparison.differences().to_dicts():
        who = counts[row["policy"]]
        gains = [scaled(row[f"sooner{end}_s"], _HOUR_S) for end in ("", "_low", "_high")]
        changes = [row[f"rho_change{end}"] for end in ("", "_low", "_high")]
        seen = [who[name] for name in ("policy", "apps", "better", "same", "worse")]
        rows.append([*seen, row["cut_off"], *gains, *changes])
    title = f"the same apps against {comparison.baseline}; from, to: 95 % interval of the mean"
    return Table(title=title, columns=[*columns, *means], rows=rows)


def _say_what_is_left_out(label: str, summary: Mapping[str, Number], *, quiet: bool) -> None:
    """Note the apps that no statistic of rho counts."""
    if summary["apps_infeasible"]:
        count = summary["apps_infeasible"]
        note(f"{label}: {count} apps need more GPUs than the cluster has", quiet=quiet)
    if summary["apps_unfinished"]:
        note(
            f"{label}: {summary['apps_unfinished']} apps are cut off by the horizon: rho and "
            "completion times leave them out",
            quiet=quiet,
        )


@dataclass
class _Watch:
    """Moves a bar a run, and says how long each run took that was long enough to report."""

    quiet: bool
    stack: ExitStack = field(default_factory=ExitStack)
    run: tuple[str, int] | None = None
    ended: tuple[str, int] | None = None
    started: float = 0.0
    bar: Progress | None = None

    def __call__(
        self, policy: str, seed: int, done_jobs: int, total_jobs: int, sim_time_s: float
    ) -> None:
        if self.ended == (policy, seed):
            return
        if self.run != (policy, seed):
            self.finish()
            self.run, self.started = (policy, seed), time.perf_counter()
            title = f"{policy}, seed {seed}"
            self.bar = self.stack.enter_context(progress_bar(title, quiet=self.quiet))
        if self.bar is not None:
            self.bar(done_jobs, total_jobs, sim_time_s)
        if done_jobs == total_jobs:
            self.ended = self.run
            self.finish()

    def finish(self) -> None:
        """Close the bar of the last run and say how long the run took."""
        self.stack.close()
        if self.run is not None:
            policy, seed = self.run
            took_s = time.perf_counter() - self.started
            note(f"{policy}, seed {seed}: {took_s:.1f} s", quiet=self.quiet)
        self.run = None


@contextmanager
def _keeping_finished_runs(out: str | None) -> Iterator[None]:
    """Say where the runs are that had finished when a later one failed or was interrupted."""
    existed = out is not None and Path(out).exists()
    try:
        yield
    except BaseException:
        if out is not None and not existed and Path(out).exists():
            note(f"the runs that had finished are in {Path(out).absolute()}")
        raise
