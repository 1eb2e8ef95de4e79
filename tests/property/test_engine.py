"""Random clusters, workloads and settings: every result passes every check of the audit."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.audit.audit import audit
from tests.differential.small import Job, workload

from themis import simulate
from themis.cluster.cluster import Cluster
from themis.policies.catalogue import POLICIES

Case = tuple[str, list[Job], list[str], dict[str, Any]]

RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=600,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

PROFILES = (None, "network", "vgg16", "compute", "cold_start")
CLUSTERS = (
    "1x1",
    "1x2",
    "1x4",
    "2x2",
    "1x8/2",
    "2x4/2",
    "2x(1x2)",
    "2x(2x2)",
    "2x(1x4/2+1x2)",
    "1x(3x1)+1x(1x4/2)",
    "3x(1x3/2)",
)


@st.composite
def jobs(draw: st.DrawFn, gpus: int) -> tuple[list[Job], list[str]]:
    """Up to nine jobs of up to seven apps, many at equal times, some impossible, some empty."""
    times = st.sampled_from([0, 0, 0, 1, 5, 10, 10, 20, 30, 40, 45.5, 100, 1_000_000])
    apps = draw(st.integers(1, 7))
    count = draw(st.integers(1, 9))
    listed = []
    for number in range(count):
        gang = draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4, gpus, gpus + 1]))
        elastic = draw(st.booleans()) and gang > 0
        most = gang + draw(st.sampled_from([0, 1, 2, 3, gpus])) if elastic else gang
        work = draw(st.sampled_from([0, 1, 7, 10, 20, 40, 60, 99.5, 200, 1000]))
        listed.append(
            Job(
                f"j{number}",
                draw(times),
                gang,
                work,
                most,
                f"a{draw(st.integers(1, apps))}",
                draw(st.sampled_from(PROFILES)),
                draw(st.sampled_from([None, None, 0, 2])),
            )
        )
    first = draw(st.lists(st.sampled_from([f"a{k}" for k in range(1, apps + 1)]), unique=True))
    return listed, first


@st.composite
def cases(draw: st.DrawFn) -> Case:
    spec = draw(st.sampled_from(CLUSTERS))
    listed, first = draw(jobs(Cluster.parse(spec).gpus))
    lease_s = draw(st.sampled_from([3.0, 5.0, 10.0, 20.0, 600.0]))
    costs = st.sampled_from([0.0, 2.0] if lease_s > 3 else [0.0])
    options: dict[str, Any] = {
        "policy": draw(st.sampled_from(["themis", *(policy.name for policy in POLICIES)])),
        "seed": draw(st.integers(0, 3)),
        "fairness_knob": draw(st.sampled_from([0.0, 0.5, 0.8, 1.0])),
        "lease_s": lease_s,
        "lease_mode": draw(st.sampled_from(["aligned", "rolling"])),
        "min_lease_s": draw(st.sampled_from([1.0, 5.0, 60.0])),
        "payment": draw(st.sampled_from(["lottery", "lease", "gpus", "gpus_random", "none"])),
        "outside_option": draw(
            st.sampled_from(["min_bundle", "fair_share", "cached", "unbounded"])
        ),
        "filter_key": draw(st.sampled_from(["best_case", "holdings", "cached"])),
        "leftover": draw(st.sampled_from(["random", "holders_first", "worst_first"])),
        "t_id": draw(st.sampled_from(["paper", "critical_path", "demand_capped"])),
        "restart_s": draw(costs),
        "checkpoint_s": draw(costs),
        "horizon_s": draw(st.sampled_from([None, None, 10.0, 50.0, 1_000_010.0])),
    }
    return spec, listed, first, options


@RUNS
@given(cases())
def test_every_result_passes_the_audit(case: Case) -> None:
    spec, listed, first, options = case
    load, cluster = workload(listed, first=first), Cluster.parse(spec)
    result = simulate(load, cluster, **options)
    assert audit(result, load, cluster) == []
