"""Contention from arrivals, ends, weights and tenants: whole numbers and fractions throughout."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby

import polars as pl

from themis.auditing.run import Run, problems

__all__ = ["contention_is_that_of_the_lives"]

_UNIT = 1 << 80
"""Of contention: so fine that rounding to it can't be seen."""


@dataclass
class _Pool:
    """The apps that share what one tenant has: their weights, and contention at weight 1."""

    weight: Fraction
    guaranteed: Fraction
    apps: int = 0
    weights: Fraction = Fraction(0)
    times: list[int] = field(default_factory=lambda: [0])
    levels: list[int] = field(default_factory=lambda: [0])
    areas: list[int] = field(default_factory=lambda: [0])

    def area(self, at_us: int) -> int:
        """Return units times microseconds up to an instant."""
        last = bisect.bisect_right(self.times, at_us) - 1
        return self.areas[last] + self.levels[last] * (at_us - self.times[last])

    def change(self, at_us: int, level: Fraction) -> None:
        """Note contention from an instant on."""
        self.areas.append(self.area(at_us))
        self.times.append(at_us)
        self.levels.append(round(level * _UNIT))


Life = tuple[int, int, str | None, float]
"""Of an app: from when to when it is active in microseconds, its tenant and weight."""


def contention(
    lives: list[Life], tenants: Mapping[str, Mapping[str, object]] | None
) -> list[float | None]:
    """Return the mean contention of each app over its life; None for one of no time.

    At an instant it is 1 over the app's share of the cluster: by weight of what its tenant has; a
    tenant with active apps has its guaranteed share and by weight a part of the rest. Without
    tenants all apps are of one.
    """
    pools: dict[str | None, _Pool] = {}
    turns: list[tuple[int, str | None, int, Fraction]] = []
    for start, end, name, number in lives:
        weight = Fraction(number)
        tenant = None if tenants is None else name
        table = (tenants or {}).get(tenant or "", {})
        pools.setdefault(tenant, _Pool(_part(table, "weight", 1), _part(table, "guaranteed", 0)))
        turns += [(start, tenant, 1, weight), (end, tenant, -1, weight)]
    turns.sort(key=lambda turn: turn[0])
    for at, group in groupby(turns, key=lambda turn: turn[0]):
        before = {name for name, pool in pools.items() if pool.apps}
        changed = set()
        for _, tenant, by, weight in group:
            pools[tenant].apps += by
            pools[tenant].weights += by * weight
            changed.add(tenant)
        active = {name for name, pool in pools.items() if pool.apps}
        weights = sum((pools[name].weight for name in active), Fraction(0))
        rest = 1 - sum((pools[name].guaranteed for name in active), Fraction(0))
        for name in changed if active == before else active | changed:
            pool = pools[name]
            share = pool.guaranteed + (pool.weight / weights * rest if weights else 0)
            pool.change(at, pool.weights / share if pool.apps else Fraction(0))
    return [
        _mean(pools[None if tenants is None else name], start, end, Fraction(number))
        for start, end, name, number in lives
    ]


def _part(table: Mapping[str, object], key: str, default: int) -> Fraction:
    value = table.get(key, default)
    return Fraction(value if isinstance(value, (int, float)) else default)


def _mean(pool: _Pool, start: int, end: int, weight: Fraction) -> float | None:
    if end <= start:
        return None
    units = (pool.area(end) - pool.area(start)) / weight
    return max(1.0, float(units / (_UNIT * (end - start))))


def contention_is_that_of_the_lives(run: Run) -> pl.DataFrame:
    """n_avg is 1 over the share of an app, on average over its life: 1 at least.

    Unless weights or tenants say otherwise, that is the number of active apps.
    """
    lives = run.active.select("app_id", "arrival_us", "gpu_end_us", "tenant")
    lives = lives.join(run.weights, on="app_id", how="left", maintain_order="left")
    n_avg = contention(lives.drop("app_id").rows(), run.tenants)
    truth = lives.with_columns(n_avg_of_lives=pl.Series(n_avg, dtype=pl.Float64))
    apps = run.apps.select("app_id", "n_avg").join(
        truth, on="app_id", how="left", maintain_order="left"
    )
    told, found = pl.col("n_avg"), pl.col("n_avg_of_lives")
    most = pl.max_horizontal(1.0, told, found)
    return problems(
        apps,
        {
            "below 1": told < 1,
            "has no work for GPUs by then": told.is_not_null() & pl.col("arrival_us").is_null(),
            "is missing": told.is_null() & pl.col("arrival_us").is_not_null(),
            "not that of arrivals and ends": (told - found).abs() > 1e-9 * most,
        },
        *apps.columns,
    )
