"""Placement profiles for workloads that name none: a seeded mix, or by the name of the model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.arguments import real
from themis.errors import TraceError
from themis.profiles import PROFILES
from themis.workload.sampling import draws

__all__ = ["mixed_profiles", "profile_of_model", "profiles_by_model"]


def mixed_profiles(app_ids: pl.Series, mix: object, seed: int) -> pl.Series:
    """Draw a profile an app, as often as `mix` (profile to share) says.

    Raises
    ------
    TraceError
        The mix is empty, or a share is negative, not finite, or all are zero.
    """
    if not isinstance(mix, Mapping) or not mix:
        raise TraceError(
            f"assign_profiles: mix is {mix!r}: expected shares by profile, such as "
            "{'vgg16': 1, 'resnet50': 3}"
        )
    names = sorted(mix)
    shares = [
        real(f"assign_profiles: share of {name}", mix[name], "0 or more", _share) for name in names
    ]
    edges = np.cumsum(np.array(shares))
    if edges[-1] <= 0:
        raise TraceError("assign_profiles: all shares are 0: expected a positive one")
    luck = draws(seed, "profile", app_ids.to_list()) * edges[-1]
    last = max(index for index, share in enumerate(shares) if share > 0)
    found = np.minimum(np.searchsorted(edges, luck, side="right"), last)
    return pl.Series(names, dtype=pl.String).gather(found)


def profiles_by_model(names: pl.Series, models: object) -> pl.Series:
    """Profile of each model name; a name without one stays as it is.

    Raises
    ------
    TraceError
        `models` is no mapping of names to profiles.
    """
    if not isinstance(models, Mapping) or not all(
        isinstance(text, str) for pair in models.items() for text in pair
    ):
        raise TraceError(
            f"assign_profiles: models is {models!r}: expected profiles by model, such as "
            "{'ResNet-18': 'resnet50'}"
        )
    table = {name: profile_of_model(name, models) for name in names.drop_nulls().unique().sort()}
    known = {name: profile for name, profile in table.items() if profile is not None}
    return names.replace(known)


def profile_of_model(name: str, models: Mapping[str, str]) -> str | None:
    """Profile of a model: as `models` says, else the built-in one of that name, else None.

    Names are equal if their letters and digits are, in any case, without what stands in brackets
    and without the v of a version: ``ResNet-50 (batch size 32)`` is ``resnet50``, ``Inception-v3``
    is ``inception3``.
    """
    known = {_plain(profile): profile for profile in PROFILES}
    known |= {_plain(model): profile for model, profile in models.items()}
    return known.get(_plain(name))


def _plain(name: str) -> str:
    letters = re.sub(r"\W|_", "", re.sub(r"\(.*?\)", "", name.lower()))
    return re.sub(r"v(?=\d)", "", letters)


def _share(value: float) -> bool:
    return value >= 0 and math.isfinite(value)
