"""The synthetic workloads."""

from __future__ import annotations

import hashlib
import math

import polars as pl
import pytest

from themis.errors import TraceError
from themis.schema.host import OF_GPU
from themis.synthetic import generate


def test_demo_is_what_it_says() -> None:
    workload = generate("demo", seed=7)
    sizes = workload.jobs.group_by("app_id").len()["len"]
    assert workload.apps.height == 24
    assert 1 <= int(sizes.to_numpy().min()) <= int(sizes.to_numpy().max()) <= 40
    assert set(workload.jobs["gang_size"]) <= {1, 2, 4}
    elastic = workload.jobs.filter(pl.col("max_gpus") > pl.col("gang_size"))
    assert 0 < elastic.height < workload.jobs.height
    assert (elastic["max_gpus"] == elastic["gang_size"] * 2).all()
    assert set(workload.jobs["profile"]) <= {"vgg16", "resnet50", "alexnet", "inception3"}
    assert set(workload.apps["tenant"]) <= {"team-01", "team-02", "team-03"}
    assert workload.apps["arrival_s"][0] == 0.0


def test_demo_contends_for_64_gpus() -> None:
    for seed in range(8):
        workload = generate("demo", seed=seed)
        window_s = workload.apps["arrival_s"][-1] * 24 / 23
        assert workload.gpu_seconds / (64 * window_s) == pytest.approx(1.5, rel=1e-3)
        assert 3600 < window_s < 12 * 3600


def test_seed_decides_everything() -> None:
    one, again, other = generate("demo"), generate("demo", seed=0), generate("demo", seed=1)
    assert one.equals(again)
    assert one.source.sha256 == again.source.sha256 != other.source.sha256
    assert not one.equals(other)


def test_demo_never_changes() -> None:
    """A digest of the values: changing it changes every figure that was ever published."""
    workload = generate("demo", seed=0)
    later = ("iterations", "loss_a", "loss_b", "loss_c", "bracket", "gpu_milli", "mixes_types")
    jobs = workload.jobs.drop(*later, *OF_GPU)
    text = jobs.write_csv() + workload.apps.drop("max_gpus", "target_loss").write_csv()
    assert hashlib.sha256(text.encode()).hexdigest() == DEMO_DIGEST


DEMO_DIGEST = "80384c928e8ff5c69d7ac4757371f951c17b128e112d1ad29da1fa73a1e5f1f6"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"aps": 3}, r"aps: unknown key \(did you mean 'apps'\?\)"),
        ({"apps": 0}, "apps = 0: must be >= 1"),
        ({"apps": 2.5}, "apps = 2.5: expected a whole number"),
        ({"apps": True}, "apps = True: expected a whole number"),
        ({"load": math.nan}, "load = nan"),
        ({"load": "high"}, "load = 'high': expected a number"),
        ({"jobs_min": 9, "jobs_max": 3}, "jobs_max is 3: expected 9 or more"),
        ({"gangs": 4}, "gangs = 4: expected a list"),
        ({"gangs": [1, 2], "gang_shares": [1]}, "expected 2 shares, one for each"),
        ({"gangs": [0], "gang_shares": [1]}, r"gangs\[0\] = 0: must be >= 1"),
        ({"gang_shares": [0, 0, 0]}, "expected a positive share"),
        ({"gang_shares": [math.nan, 1, 1]}, r"gang_shares\[0\] = nan"),
        ({"profiles": []}, r"profiles is \[\]: expected at least one"),
        ({"profiles": [3]}, r"profiles\[0\] = 3: expected text"),
        ({"seed": -1}, "seed is -1: expected a whole number, 0 or more"),
    ],
)
def test_bad_parameter_is_named(params: dict[str, object], message: str) -> None:
    with pytest.raises(TraceError, match="workload 'demo': .*" + message):
        generate("demo", **params)  # type: ignore[arg-type]


def test_unknown_name_is_refused() -> None:
    with pytest.raises(TraceError, match=r"workload 'dmo' is unknown \(did you mean 'demo'\?\)"):
        generate("dmo")


def test_parameters_may_be_lists_and_whole_numbers() -> None:
    workload = generate("demo", apps=3, gangs=[8], gang_shares=[1], profiles=["x"], load=2)
    assert workload.jobs["gang_size"].unique().to_list() == [8]
    assert workload.jobs["profile"].unique().to_list() == ["x"]


def test_one_app_of_one_job() -> None:
    workload = generate("demo", apps=1, jobs_max=1, users=1, tenants=1)
    assert workload.jobs["job_id"].to_list() == ["app-01/01"]
