"""Apps that ask for the same, valued together, are served as those that are valued one by one.

An app with an agent is always valued for itself, whatever its agent does.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.agents import Everything
from tests.differential.small import Job, workload

import themis
from themis.cluster.cluster import Cluster
from themis.workload.workload import Workload

BY_LINES = ("gandiva", "optimus", "slaq", "srtf", "drf", "static", "fsp")
RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LOSSES: Any = st.sampled_from([[None], [None, (0.1, 0.5, 0.0), (1.0, 0.2, 0.1)]])
PROFILES: Any = st.sampled_from([[None], [None, "vgg16"]])
QUOTAS = st.sampled_from([None, 1, 2, [[0, 1], [30, 8]]])


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Workload, dict[str, Any]]:
    """Ten to 50 apps of few kinds: most of one job, some of two, some with curves or owners."""
    jobs = []
    losses, profiles = draw(LOSSES), draw(PROFILES)
    for k in range(draw(st.integers(10, 50))):
        gang = draw(st.sampled_from([1, 1, 1, 2, 4]))
        most = gang * draw(st.sampled_from([1, 1, 1, 2]))
        loss, work = draw(st.sampled_from(losses)), gang * draw(st.sampled_from([5, 20, 33, 90]))
        at, profile = draw(st.sampled_from([0, 0, 7, 25])), draw(st.sampled_from(profiles))
        app = f"a{k if draw(st.integers(0, 5)) else k // 2:02}"
        more: dict[str, Any] = {"iterations": loss and 10.0, "loss": loss}
        jobs.append(Job(f"j{k:02}", at, gang, work, most, app, profile, **more))
    names = sorted({job.app for job in jobs if job.app})
    weights = {name: draw(st.sampled_from([1.0, 1.0, 3.0])) for name in names}
    tenants: dict[str, Any] = {}
    owners = None
    if draw(st.booleans()):
        owners = {name: draw(st.sampled_from("xy")) for name in names}
        tenants = {"tenants": {name: {"quota_gpus": draw(QUOTAS)} for name in "xy"}}
    return workload(jobs, weights=weights, owners=owners), tenants


@pytest.mark.parametrize("policy", BY_LINES)
@RUNS
@given(
    crowds(),
    st.sampled_from(["1x4", "2x(2x4)", "2x(1x4/2+1x2)"]),
    st.fixed_dictionaries(
        {
            "lease_s": st.sampled_from([5.0, 20.0]),
            "lease_mode": st.sampled_from(["aligned", "rolling"]),
            "bid_error": st.sampled_from([0.0, 0.3]),
        }
    ),
)
def test_lines_change_nothing(
    policy: str, crowd: tuple[Workload, dict[str, Any]], spec: str, options: dict[str, Any]
) -> None:
    load, tenants = crowd
    runs = [
        themis.simulate(
            load, Cluster.parse(spec), policy=policy, agents=agents, **tenants, **options
        )
        for agents in (None, lambda _: Everything())
    ]
    together, alone = (run.frames for run in runs)
    for name, frame in together.items():
        assert frame.write_ipc(None).getvalue() == alone[name].write_ipc(None).getvalue(), name
