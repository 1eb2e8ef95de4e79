"""``themis run``: one policy on one workload and cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from themis.cli.console import note, print_json, print_table
from themis.cli.exits import ExitCode
from themis.cli.options import force_option, json_option, quiet_option, threads_option
from themis.cli.progress import progress_bar
from themis.cli.results import check_output, metric_table, say_remarks, tenant_table
from themis.cli.scenario_flags import (
    ScenarioFlags,
    say_idle_sweep,
    say_scenario,
    scenario_flags,
)

if TYPE_CHECKING:
    from themis.auditing import AuditReport
    from themis.results.result import Result
    from themis.scenario.scenario import Experiment

__all__ = ["check_policy", "run"]


@click.command(short_help="Simulate one policy on a workload and a cluster.")
@scenario_flags
@click.option("--policy", metavar="NAME", help="Scheduling policy.  [default: themis]")
@click.option("-o", "--out", metavar="DIR", help="Directory for the result.")
@click.option(
    "--print-scenario", is_flag=True, help="Write the scenario that the flags mean; run nothing."
)
@click.option(
    "--audit",
    "audited",
    is_flag=True,
    help="Check every invariant of the result; exit code 4 if not.",
)
@force_option
@threads_option
@json_option
@quiet_option
@click.pass_context
def run(
    context: click.Context,
    *,
    flags: ScenarioFlags,
    out: str | None,
    print_scenario: bool,
    audited: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Simulate one policy on a workload and a cluster.

    SCENARIO is a TOML file; flags are laid over it, or stand alone: --trace and --cluster are
    enough. With --out the result is kept: manifest, summary and Parquet tables. An earlier
    result there is replaced.
    """
    scenario = flags.resolve()
    if print_scenario:
        say_scenario(scenario, as_json=as_json)
        return
    say_idle_sweep(scenario, quiet=quiet)
    if out is not None:
        check_output(out, force=force, keeps=flags.files(scenario))
    check_policy(scenario.policy.name)
    experiment = scenario.build()
    started = time.perf_counter()
    result = play(experiment, quiet=quiet)
    note(f"simulated in {time.perf_counter() - started:.1f} s", quiet=quiet)
    say_remarks(experiment.workload, [(result.policy, result.manifest)], quiet=quiet)
    if out is not None:
        result.write(out, force=force)
    report = audit(result) if audited else None
    if as_json:
        place = None if out is None else str(Path(out).absolute())
        checked = {} if report is None else {"audit": report.to_json()}
        print_json(
            {
                "manifest": result.manifest,
                "summary": result.summary(),
                "tenants": result.tenants().to_dicts(),
                "path": place,
                **checked,
            }
        )
    else:
        show(result, experiment, out, quiet=quiet)
        if report is not None:
            click.echo(report.to_text())
    if report is not None and not report.passed:
        context.exit(ExitCode.CHECK_FAILED)


def show(result: Result, experiment: Experiment, out: str | None, *, quiet: bool) -> None:
    """Print the metrics of a result, and where it is kept."""
    print_table(
        metric_table(
            f"{result.policy} on {experiment.cluster}, seed {result.seed}",
            {result.policy: result.summary()},
        )
    )
    of_tenants = tenant_table(result.tenants().to_dicts())
    if of_tenants is not None:
        print_table(of_tenants)
    if out is None:
        note("nothing was kept; --out DIR keeps the result", quiet=quiet)
    else:
        click.echo(f"result: {Path(out).absolute()}")


def audit(result: Result) -> AuditReport:
    """Check every invariant of a result."""
    from themis.auditing import audit as audit_result  # noqa: PLC0415 - on use

    return audit_result(result)


def check_policy(name: str) -> None:
    """Refuse an unknown policy before anything is read.

    Raises
    ------
    PolicyError
        There is no policy of that name; the message names the nearest one.
    """
    from themis.policies.catalogue import resolve_policy  # noqa: PLC0415 - on use

    resolve_policy(name)


def play(experiment: Experiment, *, quiet: bool) -> Result:
    """Simulate an experiment with a progress bar."""
    from themis.simulation.simulate import simulate  # noqa: PLC0415 - loads the extension

    with progress_bar(experiment.policy, quiet=quiet) as progress:
        result = simulate(
            experiment.workload,
            experiment.cluster,
            policy=experiment.policy,
            seed=experiment.seed,
            progress=progress,
            profiles=experiment.scenario.own_profiles(),
            tenants=experiment.scenario.tenants,
            **experiment.settings.model_dump(),
        )
    return result.with_scenario(experiment.scenario)
