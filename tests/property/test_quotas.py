"""Quotas over many apps: kept at every instant, and nothing idles that somebody may use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import Job, play

import themis
from themis.policies.catalogue import POLICIES
from themis.results.result import Result

TENANTS = ("x", "y", "z")
NAMES = [policy.name for policy in POLICIES]
QUOTAS = st.one_of(
    st.none(),
    st.integers(1, 9),
    st.lists(st.integers(0, 9), min_size=2, max_size=4).map(
        lambda sizes: [[20 * k, gpus] for k, gpus in enumerate([*sizes, 4])]
    ),
)
RUNS = settings(
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Job], dict[str, str], dict[str, Any]]:
    """Up to 40 apps of three tenants, gangs of up to 4 GPUs, elastic or not."""
    jobs = []
    for k in range(draw(st.integers(2, 40))):
        gang = draw(st.sampled_from([1, 1, 2, 4]))
        most = gang * draw(st.sampled_from([1, 1, 2]))
        at, work = draw(st.sampled_from([0, 0, 7, 25])), draw(st.sampled_from([5, 20, 90]))
        jobs.append(Job(f"j{k:02}", at, gang, work, most, profile="vgg16"))
    owners = {job.job_id: draw(st.sampled_from(TENANTS)) for job in jobs}
    return jobs, owners, {name: {"quota_gpus": draw(QUOTAS)} for name in TENANTS}


def waiting_in_vain(result: Result, jobs: list[Job], owners: dict[str, str]) -> list[str]:
    """Jobs of one GPU that wait although GPUs are free and their tenant has room, by instant."""
    found = []
    tenants: Any = result.manifest["tenants"]
    leases = result.leases.select("app_id", "gpus", "start_s", "end_s").rows()
    ended = dict(result.jobs.select("job_id", "end_s").rows())
    for at_s, total, used in result.usage.select("at_s", "gpus_total", "gpus_used").rows():
        held = dict.fromkeys(TENANTS, 0)
        running = set()
        for app, gpus, start_s, end_s in leases:
            if start_s <= at_s < end_s:
                held[owners[app]] += gpus
                running.add(app)
        for job in jobs:
            end_s, name = ended[job.job_id], owners[job.job_id]
            steps = tenants[name]["quota_gpus"] or [(0, 99)]
            quota = [gpus for since_s, gpus in steps if since_s <= at_s][-1]
            is_open = job.submit_s <= at_s and (end_s is None or end_s > at_s)
            waits = is_open and job.gpus == 1 and job.job_id not in running
            if waits and used < total and held[name] < quota:
                found.append(f"{job.job_id} at {at_s}")
    return found


@pytest.mark.parametrize("policy", ["themis", "tiresias", "drf", "gandiva", "fifo_backfill"])
@RUNS
@given(crowds(), st.sampled_from(["1x8", "2x(2x4)"]), st.sampled_from(["aligned", "rolling"]))
def test_quotas_hold_and_nothing_idles_that_a_tenant_may_use(
    policy: str, given_to: tuple[list[Job], dict[str, str], dict[str, Any]], spec: str, mode: str
) -> None:
    jobs, owners, tenants = given_to
    result = play(
        *(spec, jobs, policy), owners=owners, tenants=tenants, lease_s=10.0, lease_mode=mode
    )
    report = themis.audit(result)
    assert (report.findings, report.skipped) == ((), ())
    assert "unfinished" not in set(result.jobs["state"])
    if policy != "fifo_backfill":  # it keeps GPUs for the first in line
        assert waiting_in_vain(result, jobs, owners) == []


@RUNS
@given(crowds(), st.sampled_from(NAMES))
def test_quotas_that_never_bind_change_nothing(
    given_to: tuple[list[Job], dict[str, str], dict[str, Any]], policy: str
) -> None:
    jobs, owners, _ = given_to
    wide = {name: {"quota_gpus": 8} for name in TENANTS}
    free = {name: {"weight": 1.0} for name in TENANTS}
    bound, unbound = (
        play("1x8", jobs, policy, owners=owners, tenants=tenants, lease_s=10.0)
        for tenants in (wide, free)
    )
    assert bound.leases.equals(unbound.leases)
    assert bound.apps.equals(unbound.apps)
