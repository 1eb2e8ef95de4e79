"""Types, capacities, failures, reservations, horizons together: audits raise no false alarms."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import workload
from tests.property.test_engine import CLUSTERS, jobs

import themis
from themis.cluster.capacity import CAPACITY, CAUSES
from themis.cluster.cluster import Cluster
from themis.policies.catalogue import POLICIES
from themis.schema.host import OF_GPU, OF_MACHINE

TYPES = ("a", "b")
PROFILES: dict[str, Any] = {
    "network": {
        "scores": [1, 0.9, 0.7, 0.5],
        "speeds": {"a": 2.0, "b": 0.5},
        "scaling": {2: 0.9, 3: 0.75, 8: 0.5},
    }
}
TENANTS = st.sampled_from(
    [
        None,
        {"x": {"weight": 2.0}},
        {"x": {"guaranteed": 0.5, "quota_gpus": 2}, "y": {"guaranteed": 0.1}},
        {"x": {"quota_gpus": [[0, 0], [12, 3], [25, 1]]}, "y": {"quota_gpus": [[11, 1], [40, 5]]}},
        {"x": {"quota_gpus": [[0, 4], [10, 2], [15, 0]]}, "y": {"quota_gpus": 3}},
    ]
)
Inputs = tuple[themis.Workload, Cluster, dict[str, Any]]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    machines = Cluster.parse(draw(st.sampled_from(CLUSTERS))).machines
    if draw(st.booleans()):
        kinds = draw(st.lists(st.sampled_from(TYPES), min_size=(n := machines.height), max_size=n))
        machines = machines.with_columns(gpu_type=pl.Series(kinds))
    if draw(st.booleans()):
        amount = st.sampled_from([None, 0.0, 2.0, 5.0, 9.0])
        for name in OF_MACHINE:
            has = [draw(amount) for _ in range(machines.height)]
            machines = machines.with_columns(pl.Series(name, has, dtype=pl.Float64))
    at = st.tuples(st.integers(0, machines.height - 1), st.sampled_from([-5.0, 0.0, 10.0, 12.0]))
    places = draw(st.lists(at, max_size=4, unique=True))
    causes = st.sampled_from(CAUSES)
    changes = [
        (machines["machine"][k], at_s, draw(st.integers(0, machines["gpus"][k])), draw(causes))
        for k, at_s in places
    ]
    return Cluster(machines, pl.DataFrame(changes, schema=CAPACITY, orient="row"))


@st.composite
def inputs(draw: st.DrawFn) -> Inputs:
    cluster = draw(clusters())
    listed, first = draw(jobs(cluster.gpus))
    if draw(st.booleans()):  # some of the jobs of one GPU use fractions of it
        milli = st.sampled_from([None, 1, 250, 400, 500, 600, 999, 1000])
        listed = [
            job._replace(gpu_milli=draw(milli)) if job.gpus == (job.max_gpus or 1) == 1 else job
            for job in listed
        ]
    load = workload(listed, first=first)
    wanted = st.sampled_from([None, "a", "b", "a|b"])
    types = [draw(wanted) for _ in range(load.apps.height)]
    heft = st.sampled_from([1.0, 1.0, 0.1, 3.0])
    weights = [draw(heft) for _ in types]
    owners = [draw(st.sampled_from([None, "x", "y"])) for _ in types]
    apps = load.apps.with_columns(
        gpu_types=pl.Series(types, dtype=pl.String),
        weight=pl.Series(weights, dtype=pl.Float64),
        tenant=pl.Series(owners, dtype=pl.String),
    )
    table = load.jobs
    if draw(st.booleans()):
        for name in OF_GPU:
            takes = [draw(st.sampled_from([None, 0.0, 0.5, 1.0, 2.5])) for _ in range(table.height)]
            table = table.with_columns(pl.Series(name, takes, dtype=pl.Float64))
    costs = st.sampled_from([0.0, 2.0])
    options = {
        "policy": draw(st.sampled_from(["themis", *(policy.name for policy in POLICIES)])),
        "seed": draw(st.integers(0, 3)),
        "lease_s": draw(st.sampled_from([5.0, 10.0, 600.0])),
        "lease_mode": draw(st.sampled_from(["aligned", "rolling"])),
        "payment": draw(st.sampled_from(["lottery", "lease"])),
        "restart_s": draw(costs),
        "checkpoint_s": draw(costs),
        "checkpoint_every_s": draw(st.sampled_from([None, 7.0])),
        "mtbf_s": draw(st.sampled_from([None, 20.0, 200.0])),
        "mttr_s": draw(st.sampled_from([1.0, 30.0])),
        "quarantine_after": draw(st.sampled_from([None, 1, 2])),
        "quarantine_s": draw(st.sampled_from([10.0, 40.0])),
        "reserve_after_s": draw(st.sampled_from([None, 0.0, 15.0])),
        "horizon_s": draw(st.sampled_from([10.0, 50.0, 300.0])),
        "profiles": PROFILES,
        "tenants": draw(TENANTS),
    }
    return themis.Workload(apps=apps, jobs=table), cluster, options


@settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(inputs())
def test_no_false_alarm(given: Inputs) -> None:
    load, cluster, options = given
    result = themis.simulate(load, cluster, **options)
    report = themis.audit(result)
    assert (report.findings, report.skipped) == ((), ())
    alone = themis.Result(result.frames, result.manifest)
    assert themis.audit(alone).findings == ()
