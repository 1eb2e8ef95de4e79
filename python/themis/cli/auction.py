"""``themis auction``: one auction, explained app by app."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from themis.cli.console import Table, number, print_json, print_table
from themis.cli.options import SEEDS, json_option, never_loud_option
from themis.errors import ScenarioError

if TYPE_CHECKING:
    from themis.auction.file import AuctionRequest
    from themis.auction.outcome import AuctionOutcome

__all__ = ["auction"]

_PAYMENTS = ("lottery", "lease", "gpus", "gpus_random", "none")
_SOLVERS = ("prices", "greedy", "milp")


@click.command(short_help="Clear one auction and show every bid and its fate.")
@click.argument("file", metavar="FILE.json")
@click.option(
    "--payment", type=click.Choice(_PAYMENTS), help="How payments are charged, over the file's."
)
@click.option(
    "--solver", type=click.Choice(_SOLVERS), help="How the allocation is found, over the file's."
)
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of lotteries and leftovers.")
@json_option
@never_loud_option
def auction(
    *, file: str, payment: str | None, solver: str | None, seed: int | None, as_json: bool
) -> None:
    """Clear the auction that FILE.json describes: an offer, bids, and rules.

    Shows every bid, who won what, each winner's hidden payment c and what it was charged, what
    was left over for whom, and why each loser lost; then the objective (sum of log 1/rho), the
    certified upper bound, and the gap between them.
    """
    from themis.auction.file import read_auction  # noqa: PLC0415 - loads the extension

    request = read_auction(file)
    given = {"payment": payment, "solver": solver, "seed": seed}
    rules = {name: value for name, value in given.items() if value is not None}
    outcome = _cleared(replace(request, rules={**request.rules, **rules}), file)
    if as_json:
        print_json(outcome.to_dict())
        return
    offered = sum(request.offer.gpus)
    how = f"payment {outcome.payment}, solver {outcome.solver}"
    print_table(_bids(outcome))
    click.echo()
    print_table(_fates(outcome, f"outcome: {offered} GPUs on offer, {how}"))
    click.echo()
    unused = int(outcome.leftovers.get_column("gpus").sum())
    click.echo(f"left unused: {unused} GPUs")
    click.echo(f"objective:   {number(outcome.objective, 6)} (sum of log 1/rho over the bidders)")
    click.echo(f"upper bound: {number(outcome.upper_bound, 6)}")
    click.echo(f"gap:         {_percent(outcome.gap)}")


def _cleared(request: AuctionRequest, file: str) -> AuctionOutcome:
    try:
        return request.clear()
    except ScenarioError as error:
        raise ScenarioError(f"{file}: {error}") from error


def _bids(outcome: AuctionOutcome) -> Table:
    rows = [
        (app_id, gpus, locality or f"row {row}", rho)
        for app_id, gpus, locality, row, rho in outcome.bids.iter_rows()
    ]
    return Table(title="bids", columns=("app", "GPUs", "bundle", "rho"), rows=rows)


def _fates(outcome: AuctionOutcome, title: str) -> Table:
    bids = Counter(outcome.bids.get_column("app_id"))
    left: Counter[str] = Counter()
    for app_id, cause, gpus in outcome.allocation.select("app_id", "cause", "gpus").iter_rows():
        left[app_id] += gpus if cause == "leftover" else 0
    reasons = dict(outcome.reasons.select("app_id", "explanation").iter_rows())
    rows = []
    for app_id, c, won, kept, lease_fraction in outcome.payments.iter_rows():
        charged = f"{1 - lease_fraction:.4g} lease" if lease_fraction < 1 else str(won - kept)
        shown = (c, charged) if won else (None, None)
        rows.append((app_id, bids[app_id], won, *shown, kept, left[app_id], reasons[app_id]))
    columns = ("app", "bids", "won", "c", "charged", "kept", "left over", "why")
    return Table(title=title, columns=columns, rows=rows)


def _percent(gap: float) -> str:
    if not math.isfinite(gap):
        return "unbounded, as the rho of a bidder is"
    return f"{gap:.4%} of the geometric mean of 1/rho"
