"""The flags that describe a scenario, and the scenario that they mean."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from themis.cli.console import note, print_json
from themis.cli.options import assignments, repair_option, seed_option, transform_option

if TYPE_CHECKING:
    from themis.scenario.scenario import Scenario

__all__ = ["ScenarioFlags", "say_idle_sweep", "say_scenario", "scenario_flags"]

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class ScenarioFlags:
    """What the user gave: a scenario file, flags that are laid over it, or flags alone."""

    scenario: str | None
    trace: str | None
    format: str | None
    option: Pairs
    repairs: Pairs
    generate: str | None
    transforms: tuple[str, ...]
    cluster: str | None
    capacity: str | None
    policy: str | None
    set: Pairs
    seed: int | None

    def resolve(self) -> Scenario:
        """Return the scenario that the flags mean.

        Raises
        ------
        ScenarioError
            The file, a key or a value is invalid.
        click.UsageError
            The flags name no workload or no cluster.
        """
        from themis.errors import ScenarioError  # noqa: PLC0415 - the same
        from themis.files.documents import read_toml  # noqa: PLC0415 - the same
        from themis.scenario.scenario import Scenario  # noqa: PLC0415 - the same
        from themis.settings.overrides import apply_overrides  # noqa: PLC0415 - pydantic loads slowly

        if self.scenario is None:
            self._check_complete()
        path = Path(self.scenario) if self.scenario is not None else None
        document = read_toml(path, ScenarioError) if path is not None else {}
        document = apply_overrides(self._laid_over(document), self.set)
        return Scenario.parse(
            document, directory=path.parent if path else Path(), file=self.scenario
        )

    def files(self, scenario: Scenario) -> list[Path]:
        """Return the files that a run reads, which no output may replace."""
        own = [] if self.scenario is None else [self.scenario]
        return [Path(name) for name in (*own, *scenario.input_files())]

    def _check_complete(self) -> None:
        sets = {key for key, _ in self.set}
        if not (self.trace or self.generate or sets & {"workload.trace", "workload.generate"}):
            raise click.UsageError("Name a SCENARIO file, or a workload: --trace or --generate.")
        if not (self.cluster or any(key.startswith("cluster.") for key in sets)):
            raise click.UsageError("Name the cluster: --cluster, for example --cluster '4x(8x8)'.")

    def _laid_over(self, document: Mapping[str, object]) -> dict[str, object]:
        from themis.scenario.scenario import cluster_table  # noqa: PLC0415 - pydantic loads slowly

        changed = dict(document)
        if self.seed is not None:
            changed["seed"] = self.seed
        if self.cluster is not None:
            changed["cluster"] = cluster_table(self.cluster)
        if self.capacity is not None:
            given = _table(changed, "cluster")
            given.pop("capacity", None)
            path = str(Path(self.capacity).absolute())
            changed["cluster"] = {**given, "capacity_file": path}
        if self.policy is not None:
            changed["policy"] = {**_table(changed, "policy"), "name": self.policy}
        workload = self._workload(_table(changed, "workload"))
        if workload:
            changed["workload"] = workload
        return changed

    def _workload(self, given: Mapping[str, object]) -> dict[str, object]:
        from themis.settings.overrides import parse_text_value  # noqa: PLC0415 - pydantic loads slowly
        from themis.workload.transforms import transform_table  # noqa: PLC0415 - the same

        workload = dict(given)
        if self.trace is not None or self.generate is not None:
            for key in ("trace", "format", "options", "generate", "params"):
                workload.pop(key, None)
        if self.trace is not None:
            workload["trace"] = str(Path(self.trace).absolute())
        if self.generate is not None:
            workload["generate"] = self.generate
        if self.format is not None:
            workload["format"] = self.format
        if self.option:
            place = "params" if "generate" in workload else "options"
            values = {key: parse_text_value(text) for key, text in self.option}
            workload[place] = {**_table(workload, place), **values}
        if self.repairs:
            options = _table(workload, "options")
            repair = {**_table(options, "repair"), **dict(self.repairs)}
            workload["options"] = {**options, "repair": repair}
        if self.transforms:
            listed = workload.get("transform", ())
            earlier = listed if isinstance(listed, list) else ()
            workload["transform"] = [*earlier, *map(transform_table, self.transforms)]
        return workload


def say_idle_sweep(scenario: Scenario, *, quiet: bool) -> None:
    """Note that one run has no use for the scenario's table `sweep`."""
    if scenario.sweep is not None:
        note("the scenario's table sweep is not looked at; themis sweep plays it", quiet=quiet)


def say_scenario(scenario: Scenario, *, as_json: bool) -> None:
    """Print a scenario as TOML, or as JSON."""
    text = scenario.to_toml()
    if as_json:
        print_json(tomllib.loads(text))
    else:
        click.echo(text, nl=False)


def scenario_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the scenario's flags, as one argument ``flags``.

    ``--policy`` is not among them: a command that plays one policy adds it.
    """
    names = [field.name for field in fields(ScenarioFlags)]

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:  # noqa: ANN401 - click's parameters
        flags = ScenarioFlags(**{name: given.pop(name, None) for name in names})
        return command(flags=flags, **given)

    decorated: Callable[..., Any] = wrapped
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _table(document: Mapping[str, object], key: str) -> dict[str, object]:
    value = document.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.argument("scenario", required=False, metavar="[SCENARIO]"),
    click.option("--trace", metavar="FILE", help="Trace to replay."),
    click.option("--format", metavar="NAME", help="Format of the trace; without it: recognised."),
    click.option("--generate", metavar="NAME", help="Built-in workload instead of a trace."),
    click.option(
        "--option",
        multiple=True,
        metavar="KEY=VALUE",
        callback=assignments,
        help="Option of the trace's format, or parameter of the built-in workload.",
    ),
    repair_option,
    transform_option,
    click.option(
        "--cluster",
        metavar="SPEC",
        help="racks x (machines x GPUs), such as 4x(8x8); or a TOML file or machine list.",
    ),
    click.option(
        "--capacity",
        metavar="FILE",
        help="Machines that join, leave or fail: a table of machine, at_s, gpus and cause.",
    ),
    click.option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        callback=assignments,
        help="A setting, such as lease_s=300 or policy.fairness_knob=0.5; repeatable.",
    ),
    seed_option,
)
