"""What the compiled core does in an auction, apart from what Python does around it."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from bench.auction_instances import Auction
from bench.instructions import build, output

import themis
from themis import AuctionOutcome, _core
from themis.auction.clearing import Solver

__all__ = ["CoreCost", "clear", "cost_in_core", "least_cpu_s"]


def clear(
    auction: Auction, solver: Solver = "prices"
) -> tuple[AuctionOutcome, Callable[[], object]]:
    """Return the outcome, and the core's last call in it to be made again."""
    outcome, call = _watched(auction, solver)
    return outcome, lambda: _core.clear_auction(*call)


def _watched(auction: Auction, solver: Solver) -> tuple[AuctionOutcome, tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    core = _core.clear_auction

    def keep(*call: Any) -> dict[str, Any]:  # noqa: ANN401 - passed on as they are
        calls.append(call)
        return core(*call)

    with patch.object(_core, "clear_auction", keep):
        outcome = themis.clear_auction(
            auction.offer, auction.apps, solver=solver, cluster_gpus=auction.gpus
        )
    return outcome, calls[-1]


@dataclass(frozen=True)
class CoreCost:
    """Of a round alone, from bidders in the core's own form to its outcome in that form.

    Parameters
    ----------
    cpu_ms
        The least CPU milliseconds of the repeats.
    peak_mb
        The most memory that a round had allocated at once, beside offer and bidders.
    """

    cpu_ms: float
    peak_mb: float


def cost_in_core(
    auction: Auction, repeats: int, solver: Solver = "prices"
) -> tuple[AuctionOutcome, CoreCost]:
    """Return the outcome, and what a round costs in a program of the core alone."""
    outcome, call = _watched(auction, solver)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "auction.txt"
        file.write_text("\n".join(_lines(*call)), encoding="ascii")
        printed = output(str(_program()), str(file), str(repeats), solver).split()
    cpu_ms, peak, objective, bound, _ = map(float, printed)
    assert (objective, bound) == (outcome.objective, outcome.upper_bound), "the same auction"
    return outcome, CoreCost(cpu_ms, peak / 2**20)


@functools.cache
def _program() -> Path:
    return build("themis-core", "auction_file")


def _lines(slots: Any, bids: Any, rules: Any) -> Iterator[str]:  # noqa: ANN401 - the core's own
    """Yield the lines of the file that `auction_file.rs` reads."""
    yield str(len(slots["gpus"]))
    yield from map("{} {} {}".format, slots["rack"], slots["machine"], slots["gpus"])
    yield str(len(bids["entrants"]))
    for app, known in zip(bids["entrants"], _core.open_auction(slots, bids, rules), strict=True):
        held = [(job, *one) for job, of_job in enumerate(known["held"]) for one in of_job]
        yield " ".join(
            map(
                repr,
                (
                    float(app.elapsed_s),
                    float(app.t_id_s),
                    known["log_v_empty"],
                    app.gang_size,
                    app.max_gpus,
                    app.jobs,
                    app.work_left_s / app.jobs,
                    *app.slowdowns(),
                    len(held),
                    *itertools.chain.from_iterable(held),
                ),
            )
        )


def least_cpu_s(call: Callable[[], object], times: int) -> float:
    """Return the least CPU seconds that a call takes, of so many."""

    def once() -> float:
        start = time.process_time()
        call()
        return time.process_time() - start

    return min(once() for _ in range(times))
