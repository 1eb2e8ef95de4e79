"""What the compiled core does in an auction, apart from what Python does around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from bench.auction_instances import Auction

import themis
from themis import AuctionOutcome, _core
from themis.auction.clearing import Solver

__all__ = ["clear", "least_cpu_s"]


def clear(
    auction: Auction, solver: Solver = "prices"
) -> tuple[AuctionOutcome, Callable[[], object]]:
    """Return the outcome, and the core's last call in it to be made again."""
    calls: list[tuple[Any, ...]] = []
    core = _core.clear_auction

    def keep(*call: Any) -> dict[str, Any]:  # noqa: ANN401 - passed on as they are
        calls.append(call)
        return core(*call)

    with patch.object(_core, "clear_auction", keep):
        outcome = themis.clear_auction(
            auction.offer, auction.apps, solver=solver, cluster_gpus=auction.gpus
        )
    return outcome, lambda: core(*calls[-1])


def least_cpu_s(call: Callable[[], object], times: int) -> float:
    """Return the least CPU seconds that a call takes, of so many."""

    def once() -> float:
        start = time.process_time()
        call()
        return time.process_time() - start

    return min(once() for _ in range(times))
