"""Agents in Python give the schedules of the built-in app schedulers, to the last bit."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from tests.differential.agents import Everything, First, Halving
from tests.differential.small import workload
from tests.property.test_searches import Case, cases

import themis
from themis.agents.agent import Agent
from themis.cluster.cluster import Cluster
from themis.workload.workload import Workload


def twin(stopping: str, phase_cap: str) -> Agent | None:
    """Return the Python twin of a built-in scheduler, if there is one."""
    if stopping == "successive_halving":
        return Halving(doubling=phase_cap == "doubling")
    if stopping == "first":
        return First()
    return Everything() if stopping in {"all", "fixed"} else None


def assert_same(load: Workload, cluster: Cluster, **options: object) -> None:
    phase_cap = str(options.get("phase_cap", "doubling"))
    native = themis.simulate(load, cluster, **options)  # type: ignore[arg-type]
    ours = themis.simulate(
        load,
        cluster,
        agents=lambda app: twin(str(app["stopping"]), phase_cap),
        **options,  # type: ignore[arg-type]
    )
    for name, frame in native.frames.items():
        assert ours.frames[name].write_ipc(None).getvalue() == frame.write_ipc(None).getvalue(), (
            name
        )


@settings(
    derandomize=True,
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_twins_of_random_searches(case: Case) -> None:
    spec, listed, searches, options = case
    assert_same(workload(listed, searches=searches), Cluster.parse(spec), **options)
