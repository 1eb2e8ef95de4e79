"""Placement profiles: how well a job runs when its GPUs are in one slot, machine, rack, or spread.

The scores 1/S are published values: the constants of the simulator of the paper's authors
(vgg19 to googlenet), the paper's network-mix experiment (network, compute), and its footnote 3 for
an app whose profile nobody has measured yet (cold_start: S = 1, 1, 1.1, 1.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from themis.errors import ScenarioError

__all__ = ["COLD_START", "PROFILES", "Profile"]


class Profile(NamedTuple):
    """Slowdowns S >= 1 at each locality; no smaller at a coarser one."""

    slot: float
    machine: float
    rack: float
    cluster: float

    @classmethod
    def from_scores(cls, scores: Sequence[float], *, name: str = "profile") -> Profile:
        """Return the profile with placement scores 1/S at slot, machine, rack and cluster.

        Raises
        ------
        ScenarioError
            There are not four scores, one is outside (0, 1], or one grows with distance.
        """
        expected = "expected 4 scores in (0, 1], none larger than the one before"
        if len(scores) != len(cls._fields):
            raise ScenarioError(f"profile {name!r} has {len(scores)} scores: {expected}")
        last = 1.0
        for field, score in zip(cls._fields, scores, strict=True):
            if not (math.isfinite(score) and 0 < score <= last):
                raise ScenarioError(f"profile {name!r}: score at {field} is {score}: {expected}")
            last = score
        return cls(*(1 / score for score in scores))


COLD_START = "cold_start"
"""The profile of jobs that name none, or an unknown one."""

_SCORES = {
    "vgg19": (1, 1, 0.7, 0.5),
    "vgg16": (1, 1, 0.72, 0.52),
    "vgg11": (1, 1, 0.75, 0.56),
    "alexnet": (1, 1, 0.8, 0.64),
    "inception3": (1, 1, 0.98, 0.96),
    "inception4": (1, 1, 0.98, 0.96),
    "resnet50": (1, 1, 0.98, 0.96),
    "resnet101": (1, 1, 0.98, 0.96),
    "resnet152": (1, 1, 0.98, 0.96),
    "googlenet": (1, 1, 0.98, 0.96),
    "network": (1, 0.9, 0.7, 0.5),
    "compute": (1, 1, 0.98, 0.96),
}

PROFILES: Mapping[str, Profile] = {
    **{name: Profile.from_scores(scores, name=name) for name, scores in _SCORES.items()},
    COLD_START: Profile(1.0, 1.0, 1.1, 1.3),
}
"""The built-in profiles by name."""
