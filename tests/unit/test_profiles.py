"""Placement profiles: the built-in ones, and what a profile must be."""

from __future__ import annotations

import math

import pytest

from themis.errors import ScenarioError
from themis.profiles import COLD_START, PROFILES, Profile


def test_built_in_profiles_are_sane() -> None:
    assert COLD_START in PROFILES
    for name, profile in PROFILES.items():
        assert len(profile) == 4, name
        assert profile[0] == 1, name
        assert list(profile) == sorted(profile), name
        assert all(math.isfinite(slowdown) for slowdown in profile), name


def test_published_values() -> None:
    # Footnote 3 of the paper; the rack and cluster scores of VGG16 in the authors' simulator.
    assert PROFILES[COLD_START] == (1.0, 1.0, 1.1, 1.3)
    assert PROFILES["vgg16"] == pytest.approx((1, 1, 1 / 0.72, 1 / 0.52))


def test_scores_become_slowdowns() -> None:
    assert Profile.from_scores((1, 0.8, 0.5, 0.25)) == (1, 1.25, 2, 4)


@pytest.mark.parametrize(
    "scores",
    [
        (),
        (1, 1, 1),
        (1, 1, 1, 1, 1),
        (1, 1, 1, 0),
        (1, 1, 1, -0.5),
        (1.1, 1, 1, 1),
        (1, 0.5, 0.6, 0.5),
        (1, 1, 1, float("nan")),
        (float("inf"), 1, 1, 1),
    ],
)
def test_other_scores_are_refused(scores: tuple[float, ...]) -> None:
    with pytest.raises(ScenarioError, match=r"profile 'mine'.*expected 4 scores"):
        Profile.from_scores(scores, name="mine")
