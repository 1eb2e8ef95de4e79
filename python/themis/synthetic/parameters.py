"""Parameters of a generator: a checked table with a default and a meaning for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from themis.schema.workload import MAX_GPUS

__all__ = ["Gangs", "Names", "Parameters", "Share", "Shares", "check_shares", "check_some"]

Share = Annotated[float, Field(ge=0, le=1)]
Gangs = Annotated[tuple[Annotated[int, Field(ge=1, le=MAX_GPUS // 1000)], ...], Field(strict=False)]
Shares = Annotated[tuple[Annotated[float, Field(ge=0, le=1e9)], ...], Field(strict=False)]
Names = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False)]


class Parameters(BaseModel):
    """What the parameters of all generators have in common."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    replaces: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """A parameter that is given puts a workload's own values of these out of force."""


def check_some(name: str, values: tuple[object, ...]) -> None:
    """Refuse an empty list.

    Raises
    ------
    ValueError
        As pydantic expects it.
    """
    if not values:
        raise ValueError(f"{name} is []: expected at least one")


def check_shares(name: str, shares: tuple[float, ...], kinds: tuple[object, ...]) -> None:
    """Refuse shares that are not one for each of `kinds`, or all 0; none at all means equal ones.

    Raises
    ------
    ValueError
        As pydantic expects it.
    """
    if shares and len(shares) != len(kinds):
        raise ValueError(f"{name} is {list(shares)}: expected {len(kinds)} shares, one for each")
    if shares and sum(shares) <= 0:
        raise ValueError(f"{name} is {list(shares)}: expected a positive share")
