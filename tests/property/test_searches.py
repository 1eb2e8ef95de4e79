"""Random searches under random settings: every result passes the audit, and work is conserved."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.audit.audit import audit
from tests.differential.small import Job, Search, workload

from themis import simulate
from themis.cluster.cluster import Cluster
from themis.policies.catalogue import POLICIES

Case = tuple[str, list[Job], dict[str, Search], dict[str, Any]]

KINDS = ("successive_halving", "successive_halving", "performance_curve", "fixed", "all", "first")


@st.composite
def jobs(draw: st.DrawFn, app: str, count: int) -> list[Job]:
    """Jobs of one search, with curves or without, some submitted late, some impossible."""
    known = draw(st.sampled_from(["losses", "losses", "iterations", "nothing"]))
    listed = []
    for number in range(count):
        gang = draw(st.sampled_from([1, 1, 1, 2, 3, 30]))
        loss = (
            draw(st.sampled_from([0.0, 0.01, 0.1, 1.0])),
            draw(st.sampled_from([0.2, 0.5, 1.0])),
            draw(st.sampled_from([0.0, 0.1, 0.5, 3.0])),
        )
        listed.append(
            Job(
                f"{app}{number}",
                draw(st.sampled_from([0, 0, 0, 0, 5, 30])),
                gang,
                draw(st.sampled_from([7, 20, 60, 100, 100, 1000])),
                gang + draw(st.sampled_from([0, 0, 1, 3])),
                app,
                draw(st.sampled_from([None, "network", "compute"])),
                iterations=None
                if known == "nothing"
                else draw(st.sampled_from([0.5, 1.0, 3.0, 10.0, 100.0])),
                loss=loss if known == "losses" else None,
            )
        )
    return listed


@st.composite
def cases(draw: st.DrawFn) -> Case:
    listed: list[Job] = []
    searches = {}
    for app in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        listed += draw(jobs(app, draw(st.integers(1, 8))))
        target = draw(st.sampled_from([None, None, 0.3, 1.0, 4.0]))
        largest = max(job.gpus for job in listed if job.app == app)
        cap = draw(st.sampled_from([None, None, largest, largest + 2]))
        searches[app] = Search(draw(st.sampled_from(KINDS)), cap, target)
    options: dict[str, Any] = {
        "policy": draw(st.sampled_from(["themis", *(policy.name for policy in POLICIES)])),
        "seed": draw(st.integers(0, 3)),
        "fairness_knob": draw(st.sampled_from([0.0, 0.8])),
        "lease_s": draw(st.sampled_from([5.0, 20.0, 600.0])),
        "lease_mode": draw(st.sampled_from(["aligned", "rolling"])),
        "payment": draw(st.sampled_from(["lottery", "lease", "gpus", "none"])),
        "t_id": draw(st.sampled_from(["paper", "critical_path", "demand_capped"])),
        "phase_cap": draw(st.sampled_from(["doubling", "fixed"])),
        "curve_step": draw(st.sampled_from([0.05, 0.3])),
        "curve_error": draw(st.sampled_from([0.0, 0.01, 0.2])),
        "restart_s": draw(st.sampled_from([0.0, 2.0])),
        "checkpoint_s": draw(st.sampled_from([0.0, 1.0])),
        "horizon_s": draw(st.sampled_from([None, None, 40.0])),
        "bid_error": draw(st.sampled_from([0.0, 0.3])),
    }
    cluster = draw(st.sampled_from(["1x1", "1x2", "1x4", "2x2", "1x8/2", "2x(2x2)"]))
    return cluster, listed, searches, options


@settings(
    derandomize=True,
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_every_search_passes_the_audit_and_conserves_work(case: Case) -> None:
    spec, listed, searches, options = case
    load, cluster = workload(listed, searches=searches), Cluster.parse(spec)
    result = simulate(load, cluster, **options)
    assert audit(result, load, cluster) == []
    # Work done and work killed, left or never possible make up the work that was asked for.
    asked = dict(load.jobs.select("job_id", "serial_time_s").iter_rows())
    for job, state, done in result.jobs.select("job_id", "state", "work_gpu_s").iter_rows():
        rest = asked[job] - done
        assert rest >= -1e-6
        if state == "done" and searches[job[0]].target_loss is None:
            assert rest == pytest.approx(0, abs=1e-6)
