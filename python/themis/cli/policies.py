"""``themis policies``: the policies, and where they come from."""

from __future__ import annotations

from dataclasses import asdict

import click

from themis.cli.console import Table, print_json, print_table
from themis.cli.options import json_option, never_loud_option
from themis.policies.catalogue import known_policies

__all__ = ["policies"]


@click.command(short_help="List the policies and what each is after.")
@json_option
@never_loud_option
def policies(*, as_json: bool) -> None:
    """List the built-in policies, and those of other packages.

    Shows name, other names, what each optimises, what it needs to know, what it does, and where
    it comes from.
    """
    if as_json:
        print_json({"policies": [asdict(policy) for policy in known_policies()]})
        return
    columns = ("policy", "optimises", "needs to know", "what it does", "source")
    rows = [
        (
            " or ".join((one.name, *one.aliases)),
            one.optimises,
            one.needs,
            one.description,
            one.source,
        )
        for one in known_policies()
    ]
    print_table(Table(title="policies", columns=columns, rows=rows))
