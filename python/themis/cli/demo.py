"""``themis demo``: a built-in workload under every policy."""

from __future__ import annotations

from pathlib import Path

import click

from themis.cli.compare import play_all, show
from themis.cli.options import (
    force_option,
    json_option,
    quiet_option,
    seed_option,
    threads_option,
)
from themis.cli.results import check_output

__all__ = ["demo"]

_CLUSTER = "2x(8x4)"


@click.command(short_help="Run a built-in workload under every policy; write a report.")
@click.option(
    "-o", "--out", metavar="DIR", default="themis-demo", show_default=True, help="Where to write."
)
@seed_option
@force_option
@threads_option
@json_option
@quiet_option
def demo(*, out: str, seed: int | None, force: bool, as_json: bool, quiet: bool) -> None:
    """Run a built-in workload on a small cluster under every policy.

    Prints a table and writes results and report.html. An earlier demo in the same place is
    replaced.
    """
    from themis.policies.catalogue import POLICIES  # noqa: PLC0415 - on use
    from themis.scenario.scenario import Scenario  # noqa: PLC0415 - pydantic loads slowly

    check_output(out, force=force)
    scenario = Scenario.parse(
        {"seed": seed or 0, "cluster": {"spec": _CLUSTER}, "workload": {"generate": "demo"}},
        directory=Path(),
    )
    experiment = scenario.build()
    names = [policy.name for policy in POLICIES]
    comparison = play_all(experiment, names, [experiment.seed], out=out, force=force, quiet=quiet)
    show(
        comparison, f"demo workload on {experiment.cluster}", out=out, as_json=as_json, quiet=quiet
    )
