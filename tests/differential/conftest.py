"""The auction worked out a second time: plain enumeration, no line shared with the core."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from themis import AppState, Bid

Key = tuple[int | str, int | str, int | str]
Counts = tuple[int, ...]
Value = Callable[[Counts], float]

UNBOUNDED = -1.0e4  # log V of an unbounded rho, as the core has it


class Reference:
    """What bundles are worth, and the best that can be done with them."""

    def log_v(self, rho: float | None) -> float:
        return UNBOUNDED if rho is None or math.isinf(rho) else -math.log(rho)

    def rate(self, app: AppState, held: Mapping[Key, int]) -> float:
        """GPU-seconds of work a second of a job of the app on these GPUs (paper, Eq. 1)."""
        keys = [key for key, gpus in held.items() if gpus]
        gpus = sum(held.values())
        if not keys or gpus < app.gang_size:
            return 0.0
        racks, machines = {key[0] for key in keys}, {key[:2] for key in keys}
        level = 3 if len(racks) > 1 else 2 if len(machines) > 1 else 1 if len(keys) > 1 else 0
        return self.pace(app, min(gpus, app.max_gpus // app.jobs)) / app.slowdowns()[level]

    def pace(self, app: AppState, gpus: int) -> float:
        """Work a second of so many well placed GPUs of a job, where each of its gang does 1."""
        known = [(1, 1.0), *((n, n * eff) for n, eff in sorted(app.scaling.items()))]

        def along(gpus: int) -> float:
            if len(known) == 1:
                return float(gpus)
            at = next((k for k in range(1, len(known)) if known[k][0] >= gpus), len(known) - 1)
            (n0, p0), (n1, p1) = known[at - 1], known[at]
            return p0 + (p1 - p0) * (gpus - n0) / (n1 - n0)

        return app.gang_size * along(gpus) / along(app.gang_size)

    def whole(self, app: AppState, gpus: int) -> bool:
        """Whether a job of the app can win so many: what completes its gang, then whole gangs."""
        total = sum(app.held.values()) if app.jobs == 1 else 0
        most = app.max_gpus // app.jobs
        allowed = {0}
        start = total
        while total < most:
            missing = app.gang_size - total
            total = min(most, total + (missing if missing > 0 else app.gang_size))
            allowed.add(total - start)
        return gpus in allowed

    def rho(self, app: AppState, rates: Sequence[float]) -> float:
        rate = sum(rates)
        if rate == 0:
            return math.inf
        longest_s = app.work_left_s / app.jobs / self.pace(app, app.max_gpus // app.jobs)
        return (app.elapsed_s + max(longest_s, app.work_left_s / rate)) / app.t_id_s

    def rho_empty(self, app: AppState, lease_s: float = 600.0) -> float:
        """rho of winning nothing (min_bundle); GPUs are held by apps of one job only."""
        held = self.rate(app, app.held)
        if held:
            return self.rho(app, [held])
        worst = app.slowdowns()[0 if app.gang_size == 1 else 3]
        longest_s = app.work_left_s / app.jobs / self.pace(app, app.max_gpus // app.jobs)
        smallest_s = max(longest_s, app.work_left_s * worst / app.gang_size)
        return (app.elapsed_s + lease_s + smallest_s) / app.t_id_s

    def value(self, bid: Bid | AppState, keys: Sequence[Key]) -> Value:
        """log V of a bundle (GPUs a slot), never below that of winning nothing."""
        if isinstance(bid, Bid):
            table = {tuple(counts): self.log_v(rho) for counts, rho in _rows(bid, keys)}
            return lambda counts: max(self.log_v(bid.rho_empty), table.get(counts, UNBOUNDED))
        floor = self.log_v(self.rho_empty(bid))

        @cache
        def best_rates(counts: Counts, jobs: int) -> float:
            """The largest sum of rates over every division of the bundle among the jobs."""
            if jobs == 1:
                won = {key: n for key, n in zip(keys, counts, strict=True) if n}
                for key, gpus in bid.held.items():
                    won[key] = won.get(key, 0) + gpus
                return self.rate(bid, won) if self.whole(bid, sum(counts)) else 0.0
            return max(
                best_rates(part, 1) + best_rates(_minus(counts, part), jobs - 1)
                for part in _parts(counts)
            )

        return lambda counts: max(floor, self.log_v(self.rho(bid, [best_rates(counts, bid.jobs)])))

    def optimum(
        self,
        bids: Sequence[Bid | AppState],
        offer: Mapping[Key, int],
        skip: str | None = None,
        least: Mapping[str, float] | None = None,
    ) -> float:
        """The largest sum of log V over all disjoint bundles, of every vector of counts.

        One app can be left out: it gets nothing, and counts nothing. With `least`, only
        allocations that leave every app so much log V count; without any, minus infinity.
        """
        keys = list(offer)
        floors = least or {}
        values = {bid.app_id: self.value(bid, keys) for bid in bids if bid.app_id != skip}
        best = dict.fromkeys(_parts(tuple(offer.values())), 0.0)
        for app_id, value in values.items():
            floor = floors.get(app_id, -math.inf)
            worth = {part: v if (v := value(part)) >= floor else -math.inf for part in best}
            useful = [(part, log_v) for part, log_v in worth.items() if log_v > value(_none(keys))]
            best = {
                free: max(
                    worth[_none(keys)] + rest,
                    *(
                        log_v + best[_minus(free, part)]
                        for part, log_v in useful
                        if all(a <= b for a, b in zip(part, free, strict=True))
                    ),
                    -math.inf,
                )
                for free, rest in best.items()
            }
        return best[tuple(offer.values())]


def _rows(bid: Bid, keys: Sequence[Key]) -> list[tuple[Counts, float]]:
    """The rows of an explicit bid as vectors; the best rho where a vector stands twice."""
    best: dict[Counts, float] = {}
    for counts, rho in bid.rows:
        wanted = (
            tuple(counts.get(key, 0) for key in keys)
            if isinstance(counts, Mapping)
            else tuple(counts)
        )
        if any(wanted):
            best[wanted] = min(rho, best.get(wanted, math.inf))
    return list(best.items())


def _none(keys: Sequence[Key]) -> Counts:
    return (0,) * len(keys)


def _parts(counts: Counts) -> list[Counts]:
    return list(product(*(range(n + 1) for n in counts)))


def _minus(counts: Counts, part: Counts) -> Counts:
    return tuple(a - b for a, b in zip(counts, part, strict=True))


@pytest.fixture(scope="session")
def reference() -> Reference:
    return Reference()


@pytest.fixture(scope="session")
def instances() -> Any:  # noqa: ANN401 - a module
    """The auctions of the benchmarks."""
    path = Path(__file__).parents[2] / "bench" / "auction_instances.py"
    spec = importlib.util.spec_from_file_location("auction_instances", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
