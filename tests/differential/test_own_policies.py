"""Policies in Python give the schedules of the native ones, to the last bit."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.policies import TWINS
from tests.differential.small import workload
from tests.property import test_engine, test_searches

import themis
from themis.cluster.cluster import Cluster
from themis.workload.workload import Workload

RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NAMES = st.sampled_from(sorted(TWINS))


def assert_same(load: Workload, cluster: Cluster, name: str, options: dict[str, Any]) -> None:
    options = {**options, "policy": name}
    native = themis.simulate(load, cluster, **options)
    ours = themis.simulate(load, cluster, **{**options, "policy": TWINS[name]})
    for table, frame in native.frames.items():
        twin = ours.frames[table]
        assert twin.write_ipc(None).getvalue() == frame.write_ipc(None).getvalue(), table


@RUNS
@given(NAMES, test_engine.cases())
def test_twins_on_random_workloads(name: str, case: test_engine.Case) -> None:
    spec, listed, first, options = case
    assert_same(workload(listed, first=first), Cluster.parse(spec), name, options)


@RUNS
@given(NAMES, test_searches.cases(), st.sampled_from([0.0, 0.5]))
def test_twins_on_searches_and_lies(name: str, case: test_searches.Case, liars: float) -> None:
    spec, listed, searches, options = case
    if liars:
        options = {**options, "liars": {"share": liars, "term": "work", "by": -0.5}}
    assert_same(workload(listed, searches=searches), Cluster.parse(spec), name, options)
