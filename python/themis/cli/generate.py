"""``themis generate``: a synthetic workload as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from themis.cli.console import Table, print_json, print_table
from themis.cli.convert import say_written
from themis.cli.options import assignments, json_option, seed_option, threads_option
from themis.errors import TraceError

if TYPE_CHECKING:
    from themis.synthetic import Spec

__all__ = ["generate", "text_value"]


@click.command(short_help="Make a synthetic workload and write it.")
@click.argument("spec", required=False, metavar="[SPEC]")
@seed_option
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    callback=assignments,
    help="Parameter of the workload, such as contention=2; repeatable.",
)
@click.option("-o", "--out", metavar="DIR", help="Where to write apps.parquet and jobs.parquet.")
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="List the workloads, or with SPEC its parameters; write nothing.",
)
@threads_option
@json_option
def generate(
    *,
    spec: str | None,
    seed: int | None,
    pairs: tuple[tuple[str, str], ...],
    out: str | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Make the workload SPEC and write it as tables of the native format."""
    if listed:
        _list(spec, as_json=as_json)
        return
    if spec is None or out is None:
        raise click.UsageError("Name a SPEC and --out DIR; --list shows the workloads.")
    from themis.settings.overrides import parse_text_value  # noqa: PLC0415 - pydantic loads slowly
    from themis.synthetic import generate as make  # noqa: PLC0415 - loads polars

    values = {key: parse_text_value(text) for key, text in pairs}
    for name in sorted({"spec", "seed"} & set(values)):
        raise TraceError(f"{spec}: parameter {name!r} is unknown: it is a flag or argument")
    workload = make(spec, seed or 0, **values)
    say_written(workload, workload.write(Path(out)), as_json=as_json)


def _list(name: str | None, *, as_json: bool) -> None:
    """Print the workloads, or the parameters of one."""
    from themis.synthetic import SPECS, resolve_spec  # noqa: PLC0415 - loads polars

    specs = list(SPECS.values()) if name is None else [resolve_spec(name)]
    if as_json:
        print_json({"workloads": [_described(spec) for spec in specs]})
    elif name is None:
        rows = [[", ".join((spec.name, *spec.aliases)), spec.summary] for spec in specs]
        print_table(Table(title="workloads", columns=["name", "what it is"], rows=rows))
    else:
        rows = [
            [one.name, text_value(one.default), one.meaning, one.source]
            for one in specs[0].parameters()
        ]
        columns = ["parameter", "default", "meaning", "source"]
        print_table(Table(title=f"{specs[0].name}: {specs[0].summary}", columns=columns, rows=rows))


def _described(spec: Spec) -> dict[str, object]:
    parameters = [one._asdict() for one in spec.parameters()]
    aliases = list(spec.aliases)
    return {
        "name": spec.name,
        "aliases": aliases,
        "summary": spec.summary,
        "parameters": parameters,
    }


def text_value(value: object) -> str:
    """Return a default as it is given to ``--set``; `unset` where there is none."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(text_value, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
