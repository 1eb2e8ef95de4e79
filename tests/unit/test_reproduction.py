"""Figures of the paper: rules that judge orderings and shapes, and tables that they judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

import themis
from themis.errors import ScenarioError
from themis.reproduction import reproduce
from themis.reproduction.experiments import EXPERIMENTS, POLICIES, Run
from themis.reproduction.layout import headings, rows
from themis.reproduction.measures import HONEST_GAIN, LIAR_GAIN, PLACED_PERFECTLY
from themis.reproduction.panels import PANELS, Panel
from themis.reproduction.rules import (
    Ahead,
    Alike,
    AtLeast,
    AtMost,
    Falling,
    Grid,
    Highest,
    Knee,
    Level,
    Lowest,
    Rising,
    Rule,
)
from themis.reproduction.tables import fill, paper_grid

RULED = [(panel, rule) for panel in PANELS for rule in panel.rules]


def grid(*x: object, **values: Sequence[float | None]) -> Grid:
    return Grid(x, values)


@pytest.mark.parametrize(
    ("panel", "rule"), RULED, ids=[f"{panel.name}-{rule}" for panel, rule in RULED]
)
def test_every_rule_holds_of_the_papers_own_values(panel: Panel, rule: Rule) -> None:
    paper = paper_grid(panel.name, rule.measure)
    if paper.rows:
        assert rule.judge(paper, "it").ok
    else:
        assert (panel.name, rule.measure) in {
            ("9", "jain"),
            ("10", "jain"),
            ("18 work", "liar_gain"),
            ("19 lease", "gpu_h"),
        }


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_the_papers_values_are_of_what_is_played(panel: Panel) -> None:
    experiment = EXPERIMENTS[panel.experiment]
    axis = experiment.axes.get(panel.x or "", [None])
    assert (panel.chart == "lines") == (panel.x is not None)
    printed = [paper_grid(panel.name, measure.name) for measure in panel.measures]
    for paper in (one for one in printed if one.rows):
        assert set(paper.x) <= set(axis)
        if panel.series == "policy" and "policy" in experiment.axes:
            assert set(paper.rows) == set(experiment.axes["policy"]) <= set(POLICIES)


@pytest.mark.parametrize(
    ("rule", "holds", "fails"),
    [
        (
            Lowest("m"),
            grid(1, 2, themis=[1.0, 1.0], srtf=[0.995, 2.0]),  # within 1 %: a tie
            grid(1, 2, themis=[1.0, 1.0], srtf=[2.0, 0.98]),
        ),
        (Highest("m"), grid(1, themis=[0.9], srtf=[0.905]), grid(1, themis=[0.9], srtf=[0.92])),
        (Ahead("m"), grid(1, themis=[1.0], tiresias=[1.1]), grid(1, themis=[1], tiresias=[1.005])),
        (Alike("m"), grid(1, a=[1.0], b=[1.05]), grid(1, a=[1.0], b=[1.06])),
        (Rising("m"), grid(1, 2, 3, themis=[1, 0.995, 1.2]), grid(1, 2, 3, themis=[1, 2, 1.9])),
        (Rising("m"), grid(1, 2, themis=[1, 1.02]), grid(1, 2, themis=[1, 1.005])),
        (
            Rising("m", places=(1, 3)),
            grid(1, 2, 3, themis=[1, 0.5, 1.2]),
            grid(1, 2, 3, themis=[1, 2, 1]),
        ),
        (Falling("m"), grid(1, 2, 3, themis=[1, 1, 0.5]), grid(1, 2, themis=[1, 1])),
        (Level("m"), grid(1, 2, 3, themis=[1, 1.15, 1]), grid(1, 2, 3, themis=[1, 1.16, 1])),
        (
            Knee("m"),
            grid(0, 0.8, 1, themis=[2.0, 1.0, 1.1]),
            grid(0, 0.8, 1, themis=[2.0, 1.0, 1.05]),
        ),
        (
            Knee("m"),
            grid(0, 0.7, 0.8, 1, themis=[2.0, 0.995, 1.0, 1.2]),
            grid(0, 0.7, 0.8, 1, themis=[2.0, 0.9, 1.0, 1.2]),
        ),
        (
            AtLeast("m", bound=0.5),
            grid(1, 2, themis=[0.5, None]),
            grid(1, 2, themis=[0.5, 0.4]),
        ),
        (
            AtMost("m", bound=0.5, since=2),
            grid(1, 2, themis=[0.9, 0.5]),
            grid(1, 2, themis=[0.1, 0.6]),
        ),
    ],
)
def test_a_rule_holds_and_fails(rule: Rule, holds: Grid, fails: Grid) -> None:
    assert rule.judge(holds, "it").word == "ok"
    verdict = rule.judge(fails, "it")
    assert (verdict.word, verdict.ok) == ("differs", False)
    assert "it" in verdict.claim
    assert verdict.because


@pytest.mark.parametrize(
    "rule",
    [Lowest("m"), Ahead("m"), Alike("m"), Rising("m"), Level("m"), Knee("m"), AtLeast("m")],
    ids=repr,
)
def test_a_rule_says_when_there_is_too_little_to_judge(rule: Rule) -> None:
    assert rule.judge(grid(1), "it").word == "not run"
    assert rule.judge(grid(1, themis=[None]), "it").word == "not run"


def run(summary: Mapping[str, float], seed: int = 0, **values: object) -> Run:
    empty = pl.DataFrame({"rho": pl.Series([], dtype=pl.Float64)})
    return Run({"seed": seed, **values}, summary, lambda: empty, lambda: themis.generate("search"))


def test_a_table_has_the_median_and_range_over_the_seeds_of_its_own_places() -> None:
    panel = next(panel for panel in PANELS if panel.name == "14")
    runs = [
        run({"rho_max": value}, seed, policy="themis", **{panel.x or "": place})
        for place, of_place in ((1.0, (3.0, 1.0, 2.0)), (4.0, (5.0, 7.0, 6.5)))
        for seed, value in enumerate(of_place)
    ]
    table = fill(panel, runs)
    first, last = (table.cells["rho_max", "themis", x] for x in (1.0, 4.0))
    assert (first.median, first.low, first.high, first.seeds) == (2.0, 1.0, 3.0, 3)
    assert (last.median, last.low, last.high, last.paper) == (6.5, 5.0, 7.0, 1.28)
    assert [one.word for one in table.verdicts] == ["not run", "differs"]  # no peers; 2 to 6.5
    assert headings(panel) == ["contention", "policy", "max rho", "range", "paper"]
    assert rows(table)[0] == ["1", "themis", 2.0, "1 to 3", 1.22]
    other = fill(next(panel for panel in PANELS if panel.name == "9"), [])
    assert (other.cells, [one.ok for one in other.verdicts]) == ({}, [None, None])


def test_gains_are_shares_of_the_honest_time() -> None:
    apps = pl.DataFrame(
        {
            "lied": [True, False, False],
            "t_sh_s": [90.0, 110.0, 100.0],
            "lie_gain_s": [10.0, -10.0, 0.0],
        }
    )
    lies = Run({}, {}, lambda: apps, lambda: themis.generate("search"))
    assert LIAR_GAIN.of_run(lies) == pytest.approx(0.1)
    assert HONEST_GAIN.of_run(lies) == pytest.approx(-0.05)


def test_placed_perfectly_is_the_share_of_the_time_within_a_machine() -> None:
    """Two jobs of two GPUs: the first gets the machine of two, the second is spread."""
    cluster = themis.Cluster.parse("1x2+2x1")
    workload = themis.generate("jobs", apps=2, gangs=(2,), gap_s=100.0, profiles=("vgg16",))
    result = themis.simulate(workload, cluster, policy="tiresias", lease_s=1e6)
    played = Run({}, result.summary(), lambda: result.apps, lambda: workload)
    read = PLACED_PERFECTLY.of_run(played)
    first, second = (row["gpu_s"] for row in result.apps.iter_rows(named=True))
    assert result.apps["placement_score"].to_list() == pytest.approx([1.0, 0.72])
    assert read == pytest.approx(first / (first + second))


def test_a_seed_among_the_settings_is_refused() -> None:
    with pytest.raises(ScenarioError, match="seed is no setting here"):
        reproduce(["table5"], settings={"seed": 1})


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"figure is 'table4' \(did you mean 'table5'\?\)"):
        reproduce(["table4"])
