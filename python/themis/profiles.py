"""Profiles: how well a job runs when its GPUs are close or far apart, by GPU type, and on many.

The scores 1/S are published values: the constants of the simulator of the paper's authors
(vgg19 to googlenet), the paper's network-mix experiment (network, compute), and its footnote 3 for
an app whose profile nobody has measured yet (cold_start: S = 1, 1, 1.1, 1.3). Profiles named
``gavel_*`` are derived from the throughputs that the authors of Gavel measured; docs/simulation.md
says how.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from themis.errors import ScenarioError
from themis.schema.limits import MAX_GPUS

__all__ = [
    "COLD_START",
    "PROFILES",
    "SCALING",
    "SPEEDS",
    "KnownProfiles",
    "Profile",
    "ProfileInput",
    "check_scaling",
    "check_speeds",
    "read_profiles",
]


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
    "gavel_resnet18": (1, 1, 0.73, 0.73),
    "gavel_resnet50": (1, 1, 1, 1),
    "gavel_transformer": (1, 1, 0.75, 0.75),
    "gavel_lm": (1, 1, 0.52, 0.52),
    "gavel_recommendation": (1, 1, 1, 1),
    "gavel_a3c": (1, 1, 1, 1),
    "gavel_cyclegan": (1, 1, 1, 1),
}

PROFILES: Mapping[str, Profile] = {
    **{name: Profile.from_scores(scores, name=name) for name, scores in _SCORES.items()},
    COLD_START: Profile(1.0, 1.0, 1.1, 1.3),
}
"""The built-in profiles by name."""

SPEEDS: Mapping[str, Mapping[str, float]] = {
    "gavel_resnet18": {"k80": 0.15, "p100": 0.93, "v100": 1},
    "gavel_resnet50": {"k80": 0.15, "p100": 0.63, "v100": 1},
    "gavel_transformer": {"k80": 0.29, "p100": 0.74, "v100": 1},
    "gavel_lm": {"k80": 0.25, "p100": 0.83, "v100": 1},
    "gavel_recommendation": {"k80": 1.4, "p100": 2.22, "v100": 1},  # as measured: v100 is slowest
    "gavel_a3c": {"k80": 0.48, "p100": 0.79, "v100": 1},
    "gavel_cyclegan": {"k80": 0.11, "p100": 0.54, "v100": 1},
}
"""Speeds by GPU type of the built-in profiles that say some."""

SCALING: Mapping[str, Mapping[int, float]] = {
    "gavel_resnet18": {2: 0.92, 4: 0.9, 8: 0.9},
    "gavel_resnet50": {2: 0.91, 4: 0.84, 8: 0.78},
    "gavel_transformer": {2: 0.83, 4: 0.65, 8: 0.65},
    "gavel_lm": {2: 0.7, 4: 0.45, 8: 0.45},
}
"""Efficiencies by GPUs of the built-in profiles that say some."""


class ProfileTable(TypedDict, total=False):
    """Scores 1/S at slot, machine, rack and cluster, speeds by GPU type, efficiencies by GPUs."""

    scores: Sequence[float]
    speeds: Mapping[str, float]
    scaling: Mapping[int, float] | Mapping[str, float]


ProfileInput = Sequence[float] | ProfileTable
"""A profile of one's own: four scores, or a table of scores, speeds and scaling."""


@dataclass(frozen=True)
class KnownProfiles:
    """Profiles by name.

    Parameters
    ----------
    slowdowns
        S by locality, of the built-in ones too.
    speeds
        Speeds by GPU type, where a profile says some: the work that a GPU does in the time in which
        one of speed 1, to which `serial_time_s` refers, does 1.
    scaling
        Efficiencies by GPUs, rising from 2 on, where a profile says some (:func:`check_scaling`).
    """

    slowdowns: Mapping[str, Profile]
    speeds: Mapping[str, Mapping[str, float]]
    scaling: Mapping[str, Mapping[int, float]]


def read_profiles(given: Mapping[str, ProfileInput]) -> KnownProfiles:
    """Return the profiles given and the built-in ones.

    Raises
    ------
    ScenarioError
        A profile has neither scores nor speeds nor scaling, an unknown key, or a score, speed or
        efficiency out of range.
    """
    profiles, speeds, scaling = dict(PROFILES), dict(SPEEDS), dict(SCALING)
    for name, value in given.items():
        table = value if isinstance(value, Mapping) else {"scores": value}
        unknown = [key for key in table if key not in ProfileTable.__annotations__]
        where = f"profile {name!r}"
        if unknown or not table:
            what = f"key {unknown[0]!r} is unknown" if unknown else "it is empty"
            raise ScenarioError(f"{where}: {what}: expected scores, speeds or scaling")
        known = profiles.get(name, PROFILES[COLD_START])
        scores = table.get("scores")
        profiles[name] = known if scores is None else Profile.from_scores(scores, name=name)
        if "speeds" in table:
            speeds[name] = check_speeds(where, table["speeds"])
        if "scaling" in table:
            scaling[name] = check_scaling(where, table["scaling"])
    return KnownProfiles(profiles, speeds, scaling)


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


def check_scaling(where: str, given: object) -> dict[int, float]:
    """Return efficiencies by GPUs, sorted.

    The efficiency of n GPUs is their pace over n times that of one.

    Raises
    ------
    ScenarioError
        A count is no whole number from 2 on, an efficiency is outside (0, 1], grows with the GPUs,
        or falls so fast that more GPUs are slower; `where` says whose they are.
    """
    if not isinstance(given, Mapping):
        raise ScenarioError(f"{where}: scaling is {given!r}: expected efficiencies by GPUs")
    found = dict(sorted(_efficiency(where, gpus, eff) for gpus, eff in given.items()))
    before, last = 1, 1.0
    for gpus, eff in found.items():
        if eff > last or gpus * eff < before * last:
            limits = f"{before * last / gpus:g} to {last:g}"
            raise ScenarioError(
                f"{where}: scaling at {gpus} GPUs is {eff!r}: expected {limits}, since it is "
                f"{last:g} at {before}: it must not grow, nor make more GPUs slower"
            )
        before, last = gpus, eff
    return found


def _efficiency(where: str, gpus: object, eff: object) -> tuple[int, float]:
    whole = int(gpus) if isinstance(gpus, str) and gpus.isdecimal() else gpus
    if not isinstance(whole, int) or isinstance(whole, bool) or not 1 < whole <= MAX_GPUS:
        raise ScenarioError(
            f"{where}: scaling at {gpus!r} GPUs: expected a whole number from 2 to {MAX_GPUS}"
        )
    number = isinstance(eff, int | float) and not isinstance(eff, bool)
    if not isinstance(eff, int | float) or not number or not 0 < eff <= 1:
        raise ScenarioError(
            f"{where}: scaling at {whole} GPUs is {eff!r}: expected a number above 0 and at most 1"
        )
    return whole, float(eff)
