"""The paper's workloads: what it states, each parameter, and that nothing ever changes."""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from themis.errors import TraceError
from themis.schema.host import OF_GPU
from themis.schema.workload import STOPPING
from themis.synthetic import SPECS, generate
from themis.workload.workload import Workload

W2_JOBS = [
    *(1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 5, 5, 5, 6, 7, 8, 9, 10, 11, 13, 14, 20, 24, 25, 27, 29),
    *(65, 78, 88, 90),
]
PAPER = [name for name in SPECS if name.startswith("nsdi20-")]


def sizes(workload: Workload) -> list[int]:
    return sorted(workload.jobs.group_by("app_id").len()["len"].to_list())


def job_shares(workload: Workload, column: str) -> dict[object, float]:
    counts = workload.jobs[column].value_counts()
    return {key: count / workload.jobs.height for key, count in counts.iter_rows()}


@pytest.mark.parametrize("seed", range(4))
def test_workload_1_is_what_the_paper_states(seed: int) -> None:
    workload = generate("nsdi20-w1", seed)
    assert sizes(workload) == [1, 10, 20, 20, 43, 56, 56, 70, 81, 91]
    assert job_shares(workload, "gang_size") == pytest.approx({1: 0.705, 2: 0.295}, abs=5e-4)
    assert workload.gpu_seconds / 3600 == pytest.approx(1229, rel=1e-4)
    assert set(workload.apps["stopping"]) == {"all"}
    models = dict(workload.apps["profile"].value_counts().iter_rows())
    assert models == {"resnet50": 1, "vgg16": 6, "alexnet": 3}


@pytest.mark.parametrize("seed", range(4))
def test_workload_2_is_what_the_paper_states(seed: int) -> None:
    first, second = generate("nsdi20-w1", seed), generate("nsdi20-w2", seed)
    assert sizes(second) == W2_JOBS
    shares = {1: 0.233, 2: 0.158, 4: 0.608}
    assert job_shares(second, "gang_size") == pytest.approx(shares, abs=1e-3)
    assert set(second.apps["stopping"]) == {"successive_halving"}
    assert second.apps["arrival_s"].head(10).equals(first.apps["arrival_s"])


def test_halving_does_the_work_that_the_paper_measured() -> None:
    """Rungs by hand: n, n/2, ... 1 jobs, rounded up; each rung asks twice the work of the last."""
    whole = 0.0
    for jobs in W2_JOBS:
        rungs = [jobs]
        while rungs[-1] > 1:
            rungs.append(math.ceil(rungs[-1] / 2))
        whole += sum(left * 2**rung for rung, left in enumerate(rungs)) / (2 ** len(rungs) - 1)
    workload = generate("nsdi20-w2")
    mean_gpu_h = workload.gpu_seconds / 3600 / len(workload.jobs)
    assert whole * mean_gpu_h == pytest.approx(410, rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def test_the_mix_has_the_share_asked_for(share: float) -> None:
    workload = generate("mix", network_share=share)
    assert (workload.apps["profile"] == "network").sum() == round(5 * share)
    assert set(workload.apps["profile"]) <= {"network", "compute"}
    assert workload.apps["arrival_s"].to_list() == [0, 1200, 2400, 3600, 4800]
    assert sizes(workload) == [13, 20, 24, 27, 29]
    assert set(workload.jobs["gang_size"]) == {2, 4}
    assert workload.source.format == "generated:nsdi20-mix"


def test_the_trace_has_the_quantiles_that_the_paper_states() -> None:
    tasks: list[float] = []
    apps: list[float] = []
    for seed in range(5):
        workload = generate("nsdi20-trace", seed)
        jobs = sizes(workload)
        assert (len(jobs), max(jobs), int(np.median(jobs))) == (85, 100, 75)
        assert jobs.count(1) / 85 == pytest.approx(0.10, abs=0.02)
        work = workload.jobs["serial_time_s"].to_numpy() / 3600
        tasks.append(float(np.median(work)))
        by_app = [
            float(part["serial_time_s"].to_numpy().sum()) / 86400
            for part in workload.jobs.partition_by("app_id")
        ]
        apps.append(float(np.median(by_app)))
    assert np.median(tasks) == pytest.approx(3.75, rel=0.1)
    assert np.median(apps) == pytest.approx(11.5, rel=0.2)  # sizes and work are independent


def test_lying_apps_are_identical() -> None:
    workload = generate("nsdi20-lying", seed=5)
    assert workload.apps.drop("app_id").unique().height == 1
    assert workload.jobs.drop("app_id", "job_id").unique().height == 1
    assert workload.jobs["max_gpus"].sum() == 64


def test_two_jobs_join_the_first_workload() -> None:
    both, searches = generate("nsdi20-two-jobs", seed=5), generate("nsdi20-w1", seed=5)
    joined = pl.col("app_id").is_in(["long", "short"])
    assert both.jobs.filter(~joined).equals(searches.jobs)
    assert both.apps.filter(~joined).equals(searches.apps)
    jobs = both.jobs.filter(joined)
    assert jobs.select("job_id", "gang_size", "max_gpus").rows() == [
        ("long", 4, 4),
        ("short", 2, 2),
    ]
    minutes = (jobs["serial_time_s"] / 60).to_list()
    assert minutes == pytest.approx([580, 83])
    last_s = max(searches.apps["arrival_s"])
    assert jobs["submit_s"].to_list() == [pytest.approx(last_s / 2, abs=0.5)] * 2
    own = generate("nsdi20-two-jobs", seed=5, join_at=0, short_gang=8, joined_profile="x").jobs
    short = own.filter(pl.col("app_id") == "short").row(0, named=True)
    assert (short["submit_s"], short["gang_size"], short["profile"]) == (0.0, 8, "x")


def test_loss_curves_start_fall_and_end_as_asked() -> None:
    workload = generate("search", loss_start=3, loss_best=0.5, loss_worst=1.5, loss_fall=0.9)
    a, b, c, last = (
        workload.jobs[n].to_numpy() for n in ("loss_a", "loss_b", "loss_c", "iterations")
    )
    assert 1 / b + c == pytest.approx(np.full(len(c), 3.0))
    assert 1 / (a * last + b) + c == pytest.approx(3 - 0.9 * (3 - c))
    assert 0.5 <= c.min() < 0.7
    assert 1.3 < c.max() <= 1.5


def test_iterations_follow_the_profile() -> None:
    workload = generate("nsdi20-w1")
    seconds = (workload.jobs["serial_time_s"] / workload.jobs["iterations"]).to_numpy()
    expected = workload.jobs["profile"].replace_strict(
        {"resnet50": 0.33, "vgg16": 1.2, "alexnet": 0.5}, return_dtype=pl.Float64
    )
    assert seconds == pytest.approx(expected.to_numpy(), rel=1e-2)
    own = generate("nsdi20-w1", iteration_s=2.0).jobs
    assert (own["serial_time_s"] / own["iterations"]).to_numpy() == pytest.approx(2.0, rel=1e-2)


def test_contention_brings_the_same_apps_faster() -> None:
    slow, fast = generate("nsdi20-w1"), generate("nsdi20-w1", contention=4)
    times = fast.apps["arrival_s"].to_numpy()
    assert times == pytest.approx(slow.apps["arrival_s"].to_numpy() / 4, abs=0.5)
    assert fast.jobs.drop("submit_s").equals(slow.jobs.drop("submit_s"))


def test_more_apps_deal_the_numbers_again() -> None:
    assert sizes(generate("nsdi20-w1", apps=20)) == sorted(
        2 * [1, 10, 20, 20, 43, 56, 56, 70, 81, 91]
    )
    few = sizes(generate("nsdi20-w1", apps=4))
    assert len(few) == 4
    assert set(few) <= {1, 10, 20, 43, 56, 70, 81, 91}


@pytest.mark.parametrize("rule", STOPPING)
def test_every_stopping_rule_can_be_asked_for(rule: str) -> None:
    workload = generate("search", stopping=rule, app_max_gpus=6, target_loss=0.4)
    assert workload.apps.select("stopping", "max_gpus", "target_loss").unique().rows() == [
        (rule, 6, 0.4)
    ]


def test_parameters_that_are_given_put_a_workloads_own_out_of_force() -> None:
    assert set(generate("nsdi20-w2", gangs=[8]).jobs["gang_size"]) == {8}
    assert set(generate("nsdi20-w1", profiles=["mine"]).apps["profile"]) == {"mine"}
    halved = generate("nsdi20-w1", job_gpu_h=1.0)
    assert halved.jobs["serial_time_s"].median() == pytest.approx(3600, rel=0.5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"contenton": 2}, r"contenton: unknown key \(did you mean 'contention'\?\)"),
        ({"jobs_per_app": [0]}, r"jobs_per_app\[0\] = 0: must be >= 1"),
        ({"arrivals": "bursts"}, "arrivals = 'bursts': expected one of poisson, even or together"),
        ({"stopping": "never"}, "expected one of all"),
        ({"network_share": 1.5}, "must be <= 1"),
        ({"network_share": 0.5, "profiles": ["x"]}, "leave out profiles"),
        ({"profile_shares": [1]}, "profile_shares is .*: expected 3 shares"),
        ({"gangs": []}, r"gangs is \[\]: expected at least one"),
        ({"loss_best": 3}, "expected best <= worst < start"),
        ({"app_max_gpus": 1}, "app_max_gpus is 1: expected the largest of gangs or more"),
        ({"apps": 10**6}, "expected fewer"),
        ({"loss_fall": 1}, "loss_fall = 1: must be < 1"),
    ],
)
def test_bad_parameter_is_named(params: dict[str, object], message: str) -> None:
    with pytest.raises(TraceError, match="workload 'nsdi20-w1': .*" + message):
        generate("nsdi20-w1", **params)  # type: ignore[arg-type]


DIGESTS = {
    "nsdi20-w1": "1cce10528d2f0d17",
    "nsdi20-w2": "2992a740c1dbc4f3",
    "nsdi20-mix": "5129ba8def255ec5",
    "nsdi20-trace": "94f20a554e83b6f4",
    "nsdi20-lying": "9c8681224044344d",
    "nsdi20-two-jobs": "a94ed738c4cd6c6f",
}


@pytest.mark.parametrize("name", PAPER)
def test_a_workload_never_changes(name: str) -> None:
    """A digest of the values: changing it changes every figure that was ever published."""
    workload = generate(name, seed=7)
    jobs = workload.jobs.drop("bracket", "gpu_milli", "mixes_types", *OF_GPU)
    text = jobs.write_csv() + workload.apps.write_csv()
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGESTS[name]


@pytest.mark.parametrize("name", list(SPECS))
def test_seed_decides_everything(name: str) -> None:
    one, again = generate(name, seed=3), generate(name, seed=3)
    assert one.equals(again)
    assert one.source.sha256 == again.source.sha256 != generate(name, seed=4).source.sha256


def test_arrivals_are_poisson_on_average() -> None:
    times = generate("jobs", apps=20_000, gap_s=100.0).apps["arrival_s"].to_list()
    gaps = np.array([after - before for before, after in pairwise(times)])
    assert gaps.mean() == pytest.approx(100, rel=0.03)
    assert gaps.std() == pytest.approx(100, rel=0.05)
    together = generate("jobs", arrivals="together").apps["arrival_s"]
    assert together.unique().to_list() == [0.0]
