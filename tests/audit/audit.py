"""Every check of this package on one result."""

from __future__ import annotations

from tests.audit import of_fairness, of_gpus, of_searches, of_time
from tests.audit.facts import Facts

from themis.cluster import Cluster
from themis.result import Result
from themis.workload import Workload

__all__ = ["audit"]


def audit(result: Result, workload: Workload, cluster: Cluster) -> list[str]:
    """Return what is wrong with a result, each with the check that found it; empty if nothing."""
    facts = Facts(result, workload, cluster)
    checks = (
        *of_gpus.CHECKS,
        *of_time.CHECKS,
        *of_searches.CHECKS,
        *of_fairness.CHECKS,
    )
    return [f"{check.__name__}: {problem}" for check in checks for problem in check(facts)]
