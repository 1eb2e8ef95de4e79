"""Tenants: what the owners of apps are given of a cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from themis.errors import ScenarioError
from themis.nearest import nearest
from themis.schema.limits import MAX_GPUS, MAX_TIME_S, MAX_WEIGHT, MIN_WEIGHT
from themis.settings.validation import scenario_error

if TYPE_CHECKING:
    from themis.workload.workload import Workload

__all__ = [
    "Tenant",
    "TenantInput",
    "Tenants",
    "names_of_tenants",
    "notes_of_tenants",
    "read_tenants",
]

_DUST = 1e-9
"""Shares that differ by less are the same."""
_LISTED = 5


def _steps(quota: object) -> object:
    """Return a quota as steps; a number is one for all times."""
    if isinstance(quota, int) and not isinstance(quota, bool):
        return ((0.0, quota),)
    if not isinstance(quota, (list, tuple)) or not quota:
        raise ValueError("expected GPUs, or steps [[second, GPUs], ...]")
    return quota


def _ordered(quota: tuple[tuple[float, int], ...]) -> tuple[tuple[float, int], ...]:
    for (before_s, _), (at_s, _) in pairwise(quota):
        if at_s <= before_s:
            raise ValueError(f"step at {at_s:g} s after one at {before_s:g} s: expected by time")
    return quota


_Step = Annotated[
    tuple[Annotated[float, Field(ge=0, le=MAX_TIME_S)], Annotated[int, Field(ge=0, le=MAX_GPUS)]],
    Field(strict=False),
]


class Tenant(BaseModel):
    """What one tenant is given."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    weight: float = Field(
        default=1.0,
        ge=MIN_WEIGHT,
        le=MAX_WEIGHT,
        description="its part of what is not guaranteed to tenants with active apps; only ratios "
        "count",
    )
    guaranteed: float = Field(
        default=0.0, ge=0, le=1, description="share of the cluster that it is owed first; no unit"
    )
    quota_gpus: (
        Annotated[
            tuple[_Step, ...],
            BeforeValidator(_steps),
            AfterValidator(_ordered),
            Field(strict=False),
        ]
        | None
    ) = Field(
        default=None,
        description="most GPUs that its apps hold at one time: a number, or steps [[second, GPUs], "
        "...] on the workload's clock; unset, and before the first step: any",
    )


TenantInput = Tenant | Mapping[str, object]
"""A tenant, or its values by name."""


def _checked(tenants: dict[str, Tenant]) -> dict[str, Tenant]:
    guaranteed = math.fsum(tenant.guaranteed for tenant in tenants.values())
    if guaranteed > 1 + _DUST:
        raise ValueError(f"guaranteed shares add up to {guaranteed:g}: expected 1 at most")
    return tenants


Tenants = Annotated[dict[str, Tenant], AfterValidator(_checked)]
"""Tenants by name; empty: apps share as if they were all of one."""


class _Document(BaseModel):
    tenants: Tenants


def read_tenants(given: Mapping[str, TenantInput] | None) -> dict[str, Tenant]:
    """Return tenants by name, checked; none where none are given.

    Raises
    ------
    ScenarioError
        A value is unknown or out of range, or more than the cluster is guaranteed; the message
        names the tenant, the value and what was expected.
    """
    try:
        return _Document.model_validate({"tenants": dict(given or {})}).tenants
    except ValidationError as error:
        raise scenario_error(error, _Document) from None


def names_of_tenants(tenants: Mapping[str, Tenant], workload: Workload) -> list[str | None]:
    """Return the tenants of a workload in the order of their numbers: by name, then none.

    Raises
    ------
    ScenarioError
        All of the cluster is guaranteed, and a tenant of the workload has no part in it.
    """
    found: list[str | None] = sorted(
        workload.apps.get_column("tenant").unique().to_list(),
        key=lambda name: (name is None, name),
    )
    if math.fsum(tenant.guaranteed for tenant in tenants.values()) > 1 - _DUST:
        for name in found:
            if tenants.get(name or "", Tenant()).guaranteed == 0:
                who = "apps without a tenant" if name is None else f"tenant {name!r}"
                raise ScenarioError(
                    f"tenants: guaranteed shares add up to 1, and nothing is left for {who}: "
                    "expected less, or a guaranteed share for all"
                )
    return found


def notes_of_tenants(tenants: Mapping[str, Tenant], workload: Workload) -> tuple[str, ...]:
    """Say which tenants have no apps."""
    known = [name for name in workload.apps["tenant"].unique().sort() if name is not None]
    lacking = [f"{name}{nearest(name, known)}" for name in tenants if name not in known]
    if not lacking:
        return ()
    more = f" and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
    return (f"tenants without apps in this workload: {', '.join(lacking[:_LISTED])}{more}",)
