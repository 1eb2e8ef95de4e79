"""``themis sweep``: a scenario at every point of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from themis.cli.console import Cell, Table, note, print_json, print_table
from themis.cli.exits import ExitCode
from themis.cli.options import (
    SEED_COUNT,
    assignments,
    force_option,
    json_option,
    quiet_option,
    threads_option,
    workers_option,
)
from themis.cli.progress import run_bar
from themis.cli.results import resumable, scaled, titled
from themis.cli.scenario_flags import ScenarioFlags, say_scenario, scenario_flags

if TYPE_CHECKING:
    from themis.scenario.scenario import Scenario
    from themis.sweeps import Sweep
    from themis.sweeps.result import SweepRun
    from themis.sweeps.sweeping import Backend

__all__ = ["sweep"]

_SHOWN = (
    "rho_max",
    "rho_median",
    "jain",
    "app_completion_mean_s",
    "makespan_s",
    "utilisation",
    "placement_score",
)
"""The metrics that a terminal shows; sweep.parquet has all."""


@click.command(short_help="Simulate a scenario at every point of a grid.")
@scenario_flags
@click.option("--policy", metavar="NAME", help="Scheduling policy.  [default: themis]")
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="KEY=A,B,...",
    callback=assignments,
    help="Values to vary: a setting, a place such as workload.load, policy, cluster; repeatable.",
)
@click.option(
    "--seeds",
    type=SEED_COUNT,
    metavar="N",
    help="Vary the seed too: N of them, --seed and the numbers after it.",
)
@click.option(
    "--backend",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Processes of this machine, or a Ray cluster.",
)
@workers_option
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    default="themis-sweep",
    show_default=True,
    help="Directory for the runs; an earlier sweep there goes on.",
)
@click.option("--summaries-only", is_flag=True, help="Keep no tables of the runs.")
@click.option(
    "--print-scenario", is_flag=True, help="Write the scenario that the flags mean; run nothing."
)
@force_option
@threads_option
@json_option
@quiet_option
@click.pass_context
def sweep(
    context: click.Context,
    *,
    flags: ScenarioFlags,
    axes: tuple[tuple[str, str], ...],
    seeds: int | None,
    backend: Backend,
    workers: int | None,
    out: str,
    summaries_only: bool,
    print_scenario: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Simulate a scenario with every combination of values.

    Flags are those of `themis run`; what varies stands in the scenario's table `sweep` or in
    --axis. Stopped by whatever, the same command goes on where it stopped. A run that fails is
    reported, the others go on, and the exit code is 1.
    """
    scenario = _with_axes(flags.resolve(), axes, seeds)
    if print_scenario:
        say_scenario(scenario, as_json=as_json)
        return
    from themis.sweeps import sweep as play  # noqa: PLC0415 - loads polars

    with resumable(out), run_bar("sweep", quiet=quiet) as bar:

        def tell(finished: int, total: int, run: SweepRun | None) -> None:
            if bar is not None:
                bar(finished, total)
            if run is not None and run.error is not None:
                note(f"failed: {_named(run.values)}: {run.error}")
            elif run is None and finished:
                note(f"{finished} of {total} runs were played before", quiet=quiet)

        done = play(
            scenario,
            backend=backend,
            workers=workers,
            out=out,
            tables=not summaries_only,
            force=force,
            progress=tell,
        )
    _show(done, as_json=as_json)
    if done.failures:
        note(f"{len(done.failures)} of {len(done.plan)} runs failed")
        context.exit(ExitCode.RUN_FAILED)


def _with_axes(
    scenario: Scenario, given: tuple[tuple[str, str], ...], seeds: int | None
) -> Scenario:
    """Return the scenario with what the flags vary in its table `sweep`."""
    from themis.scenario.tables import SweepTable  # noqa: PLC0415 - the same
    from themis.settings.overrides import parse_text_value  # noqa: PLC0415 - pydantic loads slowly
    from themis.workload.transforms import split_values  # noqa: PLC0415 - the same

    table = scenario.sweep or SweepTable()
    axes = dict(table.axes)
    for index, (key, text) in enumerate(given):
        if key in dict(given[:index]):
            raise click.UsageError(f"axis {key} is given twice: name all its values at once.")
        axes[key] = [parse_text_value(part.strip()) for part in split_values(text)]
    changed = table.model_copy(update={"axes": axes, "seeds": seeds or table.seeds})
    return scenario.model_copy(update={"sweep": changed})


def _show(sweep: Sweep, *, as_json: bool) -> None:
    place = sweep.directory
    if as_json:
        print_json({**sweep.summary(), "path": str(place)})
        return
    titles = [titled(name) for name in _SHOWN]
    seeds = len(sweep.axes.get("seed", ()))
    keys = [key for key in sweep.axes if key != "seed" or seeds == 1]
    told, frame = ("state", sweep.runs) if seeds <= 1 else ("runs", sweep.medians())
    rows: list[list[Cell]] = [
        [row[key] for key in (*keys, told)]
        + [scaled(row[name], scale) for name, (_, scale) in zip(_SHOWN, titles, strict=True)]
        for row in frame.to_dicts()
    ]
    columns = [*keys, told, *(title for title, _ in titles)]
    over = f", medians over {seeds} seeds" if seeds > 1 else ""
    print_table(Table(title=f"{len(sweep.plan)} runs{over}", columns=columns, rows=rows))
    click.echo(f"sweep: {place}")


def _named(values: Mapping[str, object]) -> str:
    from themis.sweeps.result import shown  # noqa: PLC0415 - on use

    return ", ".join(f"{key}={shown(value)}" for key, value in values.items())
