"""Random machines of few CPU cores and little memory: nothing idles that somebody could use."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.small import FREE_SWITCHES, Job
from tests.golden.test_hosts import machines, needing

import themis
from themis import Cluster
from themis.policies.catalogue import POLICIES
from themis.results.result import Result
from themis.schema.host import needed, there

CONSERVING = [
    info.name for info in POLICIES if info.name not in {"fifo", "fifo_backfill", "static"}
]
"""Policies under which nobody waits beside GPUs of use, be it out of turn."""


@st.composite
def inputs(draw: st.DrawFn) -> tuple[themis.Workload, Cluster, dict[str, Any]]:
    amount = st.sampled_from([None, 3.0, 6.0, 10.0])
    machine = st.tuples(st.integers(1, 4), amount, amount)
    cluster = machines(*draw(st.lists(machine, min_size=1, max_size=3)))
    job = st.tuples(st.sampled_from([0, 0, 3, 11]), st.integers(1, 4), st.sampled_from([4, 9, 30]))
    listed = [
        Job(f"j{at}", submit_s, gpus, gpus * seconds)
        for at, (submit_s, gpus, seconds) in enumerate(draw(st.lists(job, min_size=2, max_size=8)))
    ]
    takes = st.sampled_from([None, 1.0, 2.5, 4.0])
    needs = {job.job_id: (draw(takes), draw(takes)) for job in listed}
    options = {
        "policy": draw(st.sampled_from(CONSERVING)),
        "lease_s": draw(st.sampled_from([5.0, 8.0, 600.0])),
        "lease_mode": draw(st.sampled_from(["aligned", "rolling"])),
        "payment": draw(st.sampled_from(["lottery", "lease", "none"])),
        "reserve_after_s": draw(st.sampled_from([None, 7.0])),
        "seed": draw(st.integers(0, 3)),
    }
    return needing(listed, needs), cluster, options


def could_start(result: Result, load: themis.Workload, cluster: Cluster) -> list[tuple[str, float]]:
    """Jobs that wait, and when, although machines have their gang with what it takes.

    Counted from the leases: every app has one job, which holds its gang or nothing.
    """
    takes = dict(zip(load.jobs["job_id"], needed(load.jobs), strict=True))
    has = there(cluster.machines)
    number = {name: at for at, name in enumerate(cluster.machines["machine"])}
    leases = result.leases.select("app_id", "machine", "gpus", "start_s", "end_s").rows()
    found = []
    for at_s in sorted({start for *_, start, _ in leases} | {end for *_, end in leases}):
        free = cluster.machines["gpus"].to_numpy().copy()
        left = np.where(has < 0, 10**9, has)
        holders = set()
        for app, machine, gpus, start_s, end_s in leases:
            if start_s <= at_s < end_s:
                holders.add(app)
                free[number[machine]] -= gpus
                left[number[machine]] -= gpus * takes[app]
        assert (free >= 0).all()
        assert (left >= 0).all()
        for job in result.jobs.rows(named=True):
            open_ = job["submit_s"] <= at_s < (job["end_s"] or 0)
            if open_ and job["app_id"] not in holders:
                need = np.maximum(takes[job["job_id"]], 1)
                enough = np.where(takes[job["job_id"]] > 0, left // need, 10**9).min(axis=1)
                if np.minimum(free, enough).sum() >= job["gang_size"]:
                    found.append((job["job_id"], at_s))
    return found


@settings(
    derandomize=True, deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow]
)
@given(inputs())
def test_nobody_waits_beside_gpus_with_all_that_they_need(
    given: tuple[themis.Workload, Cluster, dict[str, Any]],
) -> None:
    load, cluster, options = given
    result = themis.simulate(load, cluster, **FREE_SWITCHES, **options)
    report = themis.audit(result)
    assert report.passed, report.to_text()
    assert set(result.jobs["state"]) <= {"done", "infeasible"}
    assert could_start(result, load, cluster) == []


def test_the_count_finds_who_waits_in_line() -> None:
    # b finds cores for one GPU beside a; c, who needs none, stands behind it.
    jobs = [Job("a", 0, 1, 10), Job("b", 0, 2, 10), Job("c", 0, 1, 10)]
    load = needing(jobs, {"a": (4.0, None), "b": (4.0, None)})
    cluster = machines((3, 8.0, None))
    result = themis.simulate(load, cluster, policy="fifo", **FREE_SWITCHES)
    assert could_start(result, load, cluster) == [("c", 0.0)]
