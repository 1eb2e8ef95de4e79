"""Contention by its definition: at every instant, one over what an app deserves of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Life", "Owner", "reference_contention"]


class Owner(NamedTuple):
    """What a tenant is given."""

    weight: float = 1.0
    guaranteed: float = 0.0


class Life(NamedTuple):
    """When an app is active, in whole microseconds, its weight and its tenant."""

    start: int
    end: int
    weight: float
    tenant: str | None = None


def _deserved(app: Life, active: list[Life], owners: Mapping[str | None, Owner] | None) -> Fraction:
    mine = [one for one in active if owners is None or one.tenant == app.tenant]
    part = Fraction(app.weight) / sum(Fraction(one.weight) for one in mine)
    if owners is None:
        return part
    tenants = {one.tenant: owners.get(one.tenant, Owner()) for one in active}
    free = 1 - sum(Fraction(owner.guaranteed) for owner in tenants.values())
    own = tenants[app.tenant]
    rest = Fraction(own.weight) / sum(Fraction(owner.weight) for owner in tenants.values())
    return part * (Fraction(own.guaranteed) + rest * free)


def reference_contention(
    lives: Mapping[str, Life], owners: Mapping[str | None, Owner] | None = None
) -> dict[str, float]:
    """Return the mean contention over its life by app; those of no time are left out."""
    times = sorted({at for life in lives.values() for at in (life.start, life.end)})
    found = {}
    for name, app in lives.items():
        area = Fraction(0)
        for start, end in pairwise(times):
            if app.start <= start < app.end:
                active = [one for one in lives.values() if one.start <= start < one.end]
                area += (end - start) / _deserved(app, active, owners)
        if app.end > app.start:
            found[name] = float(area / (app.end - app.start))
    return found
