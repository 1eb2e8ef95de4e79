"""Placement profiles: the built-in ones, and what a profile must be."""

from __future__ import annotations

import math
import re
from importlib.resources import files

import polars as pl
import pytest

from themis.errors import ScenarioError
from themis.profiles import (
    COLD_START,
    PROFILES,
    SCALING,
    SPEEDS,
    Profile,
    check_scaling,
    read_profiles,
)


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


def test_efficiencies_are_sorted_and_their_keys_may_be_text() -> None:
    assert list(check_scaling("p", {"8": 0.5, 2: 0.9}).items()) == [(2, 0.9), (8, 0.5)]
    assert check_scaling("p", {}) == {}
    assert read_profiles({"mine": {"scaling": {4: 1}}}).scaling["mine"] == {4: 1.0}


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ([0.9], "scaling is [0.9]: expected efficiencies by GPUs"),
        ({1: 0.9}, "scaling at 1 GPUs: expected a whole number from 2 to 1000000"),
        ({2.0: 0.9}, "scaling at 2.0 GPUs: expected a whole number"),
        ({"many": 0.9}, "scaling at 'many' GPUs: expected a whole number"),
        ({True: 0.9}, "scaling at True GPUs: expected a whole number"),
        ({2: 0}, "scaling at 2 GPUs is 0: expected a number above 0 and at most 1"),
        ({2: 1.2}, "scaling at 2 GPUs is 1.2: expected a number above 0 and at most 1"),
        ({2: float("nan")}, "scaling at 2 GPUs is nan: expected a number above 0"),
        ({2: "0.9"}, "scaling at 2 GPUs is '0.9': expected a number above 0"),
        ({2: 0.8, 4: 0.9}, "scaling at 4 GPUs is 0.9: expected 0.4 to 0.8"),
        ({2: 0.8, 4: 0.3}, "scaling at 4 GPUs is 0.3: expected 0.4 to 0.8"),
        ({2: 0.4}, "scaling at 2 GPUs is 0.4: expected 0.5 to 1, since it is 1 at 1"),
    ],
)
def test_other_efficiencies_are_refused(scaling: object, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(f"profile 'mine': {message}")):
        read_profiles({"mine": {"scaling": scaling}})  # type: ignore[dict-item]


def measured() -> pl.DataFrame:
    """Steps a second on one machine, by model and batch size, of the table that is shipped."""
    text = files("themis.traces").joinpath("gavel_steps.csv").read_bytes()
    steps = pl.read_csv(text).filter(pl.col("steps_per_s") > 0)
    model = pl.col("job_type").str.replace(r" \(.*", "").str.to_lowercase().str.replace("-", "")
    alone = steps.filter(gpus=1).select("job_type", "gpu_type", alone="steps_per_s")
    return steps.with_columns(model=model).join(alone, on=["job_type", "gpu_type"])


def test_measured_profiles_are_the_medians_of_what_was_measured() -> None:
    steps = measured()
    fastest = steps.filter(gpus=1, gpu_type="v100").select("job_type", v100="alone")
    speed = steps.filter(gpus=1).join(fastest, on="job_type")
    speed = speed.group_by("model", "gpu_type").agg((pl.col("alone") / pl.col("v100")).median())
    found = {(model, kind): value for model, kind, value in speed.iter_rows()}
    told = {(name[6:], kind): v for name, by in SPEEDS.items() for kind, v in by.items()}
    assert told == pytest.approx(found, abs=0.006)
    eff = pl.col("steps_per_s") / pl.col("alone") / pl.col("gpus")
    many = steps.filter(pl.col("gpus") > 1).group_by("model", "gpus").agg(eff.median())
    least = pl.col("steps_per_s").cum_min().over("model")
    rows = many.sort("gpus").with_columns(least).iter_rows()
    wanted = {f"{model} {gpus}": value for model, gpus, value in rows}
    scaling = {f"{name[6:]} {n}": v for name, by in SCALING.items() for n, v in by.items()}
    assert scaling == pytest.approx(wanted, abs=0.006)
    for name in (*SPEEDS, *SCALING):
        assert name in PROFILES
        check_scaling(name, SCALING.get(name, {}))
