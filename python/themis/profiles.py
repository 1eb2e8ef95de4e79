"""Placement profiles: how well a job runs when its GPUs are in one slot, machine, rack, or spread.

The scores 1/S are published values: the constants of the simulator of the paper's authors
(vgg19 to googlenet), the paper's network-mix experiment (network, compute), and its footnote 3 for
an app whose profile nobody has measured yet (cold_start: S = 1, 1, 1.1, 1.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

from themis.errors import ScenarioError

__all__ = ["COLD_START", "PROFILES", "Profile", "ProfileInput", "check_speeds", "read_profiles"]


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


_LEAST = 1e-3  # the smallest speed that is believed, and 1 / the largest

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


class ProfileTable(TypedDict, total=False):
    """Placement scores 1/S at slot, machine, rack and cluster, and relative speeds by GPU type."""

    scores: Sequence[float]
    speeds: Mapping[str, float]


ProfileInput = Sequence[float] | ProfileTable
"""A profile of one's own: four scores, or a table of scores and speeds."""


def read_profiles(
    given: Mapping[str, ProfileInput],
) -> tuple[dict[str, Profile], dict[str, dict[str, float]]]:
    """Return slowdowns by profile, the built-in ones included, and speeds by profile and GPU type.

    A speed is the work that a GPU does in the time in which one of speed 1, to which
    `serial_time_s` refers, does 1.

    Raises
    ------
    ScenarioError
        A profile has neither scores nor speeds, an unknown key, or a score or speed out of range.
    """
    profiles, speeds = dict(PROFILES), {}
    for name, value in given.items():
        table = value if isinstance(value, Mapping) else {"scores": value}
        unknown = [key for key in table if key not in ("scores", "speeds")]
        if unknown or not table:
            what = f"key {unknown[0]!r} is unknown" if unknown else "it is empty"
            raise ScenarioError(f"profile {name!r}: {what}: expected scores, speeds or both")
        known = profiles.get(name, PROFILES[COLD_START])
        scores = table.get("scores")
        profiles[name] = known if scores is None else Profile.from_scores(scores, name=name)
        if "speeds" in table:
            speeds[name] = check_speeds(f"profile {name!r}", table["speeds"])
    return profiles, speeds


def check_speeds(where: str, given: object) -> dict[str, float]:
    """Return speeds by GPU type.

    Raises
    ------
    ScenarioError
        There is none, or one is out of range; `where` says whose they are.
    """
    if not isinstance(given, Mapping) or not given:
        raise ScenarioError(f"{where}: speeds is {given!r}: expected speeds by GPU type")
    for gpu_type, speed in given.items():
        number = isinstance(speed, int | float) and not isinstance(speed, bool)
        if not isinstance(gpu_type, str) or not number or not _LEAST <= speed <= 1 / _LEAST:
            raise ScenarioError(
                f"{where}: speed on {gpu_type!r} is {speed!r}: "
                f"expected a number from {_LEAST:g} to {1 / _LEAST:g}"
            )
    return {gpu_type: float(speed) for gpu_type, speed in given.items()}
