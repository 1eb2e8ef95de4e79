"""The auction by size, as a Markdown table: time, memory, gap, greedy beside it, payments.

    python bench/auction_table.py --seeds 0 1 2 --sizes 64/10 4096/400

Each row stands for the seeds and the shares on offer that it names. Time is CPU time of a round in
the core alone (bids, allocation, bound, payments, charging, leftovers), the least of several runs
of each auction in a program of its own (`auction_file.rs` of themis-core, built by cargo). Memory
is the most that a round has allocated at once, beside offer and bidders. The gap is the certified
one. Payments are compared with those of an integer program where no more than `MOST_EXACT` GPUs are
on offer: |c - c exact| over the winners of both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.auction_instances import LARGER, SIZES, Auction, Style, draw_auction
from bench.core_calls import CoreCost, clear, cost_in_core

from themis import AuctionOutcome

MOST_EXACT = 32
MOST_GREEDY = 1024
"""GPUs of the cluster up to which greedy is run: its payments are a run without each winner."""

STYLES: tuple[Style, ...] = ("base", "hard")
CLOSE = 1e-6


@dataclass(frozen=True)
class Round:
    """What was measured of one auction."""

    cost: CoreCost
    outcome: AuctionOutcome
    greedy: tuple[float, float] | None
    """CPU ms and gap."""
    exact: AuctionOutcome | None


def measure(auction: Auction, repeats: int) -> Round:
    """Clear an auction by every solver that its size allows."""
    outcome, cost = cost_in_core(auction, repeats)
    greedy = None
    if auction.gpus <= MOST_GREEDY:
        by_gain, cost_of_greedy = cost_in_core(auction, 5, "greedy")
        greedy = cost_of_greedy.cpu_ms, by_gain.gap
    small = sum(auction.offer.gpus) <= MOST_EXACT
    exact = clear(auction, "milp")[0] if small else None
    return Round(cost, outcome, greedy, exact)


def payment_errors(rounds: Sequence[Round]) -> list[float]:
    """|c - c exact| of the apps that win with both solvers."""
    errors = []
    for one in rounds:
        if one.exact is not None:
            mine, exact = winners(one.outcome), winners(one.exact)
            errors += [abs(mine[app] - exact[app]) for app in mine.keys() & exact.keys()]
    return errors


def winners(outcome: AuctionOutcome) -> Mapping[str, float]:
    return dict(outcome.winners.select("app_id", "c").iter_rows())


def cells(rounds: Sequence[Round]) -> Iterator[str]:
    """The measured cells of a row."""
    yield worst_of([one.cost.cpu_ms for one in rounds], "{:.3g}")
    yield f"{max(one.cost.peak_mb for one in rounds):.3g}"
    yield worst_of([100 * one.outcome.gap for one in rounds], "{:.3f}")
    greedy = [one.greedy for one in rounds if one.greedy]
    yield worst_of([cpu_ms for cpu_ms, _ in greedy], "{:.3g}")
    yield worst_of([100 * gap for _, gap in greedy], "{:.3f}")
    exact = [(one.outcome, one.exact) for one in rounds if one.exact]
    equal = sum(mine.objective > best.objective - CLOSE for mine, best in exact)
    yield f"{equal} of {len(exact)}" if exact else ""
    errors = payment_errors(rounds)
    yield f"{fmean(errors):.4f} ({max(errors):.3f})" if errors else ""


def worst_of(figures: Sequence[float], form: str) -> str:
    """The median, and in brackets the worst."""
    if not figures:
        return ""
    return f"{form.format(median(figures))} ({form.format(max(figures))})"


def table(
    sizes: Sequence[tuple[int, int]], percents: Sequence[int], seeds: Sequence[int], *, each: bool
) -> Iterator[str]:
    """Yield the lines of the table; `each`: a row for every share on offer."""
    shown = ", ".join(map(str, seeds))
    yield f"Seeds {shown}; medians, and the worst in brackets.\n"
    yield (
        "| GPUs / bidders | style | on offer | CPU ms | peak MB | gap % | greedy: CPU ms | gap % "
        "| equal to the MIP | error of c: mean (worst) |"
    )
    yield "|" + "---|" * 10
    for gpus, apps in sizes:
        for style in STYLES:
            for group in [[percent] for percent in percents] if each else [percents]:
                rounds = [
                    measure(draw_auction(gpus, apps, percent, style, seed), repeats(gpus))
                    for percent in group
                    for seed in seeds
                ]
                head = (f"{gpus:,} / {apps:,}", style, f"{', '.join(map(str, group))} %")
                yield "| " + " | ".join((*head, *cells(rounds))) + " |"


def repeats(gpus: int) -> int:
    return 50 if gpus <= 1024 else 5


def size_of(text: str) -> tuple[int, int]:
    gpus, apps = text.replace(",", "").split("/")
    return int(gpus), int(apps)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=size_of, default=[*SIZES, *LARGER[:2]])
    parser.add_argument("--percents", nargs="+", type=int, default=[10, 50, 100])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--each", action="store_true", help="a row for every share on offer")
    given = parser.parse_args()
    for line in table(given.sizes, given.percents, given.seeds, each=given.each):
        print(line, flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    main()
