"""The package's audit, and beside it what only the rules of built-in policies and apps say."""

from __future__ import annotations

from tests.audit import of_ends, of_fairness, of_gpus, of_searches
from tests.audit.facts import Facts

from themis import auditing
from themis.cluster.cluster import Cluster
from themis.results.result import Result
from themis.workload.workload import Workload

__all__ = ["audit"]

CHECKS = (*of_gpus.CHECKS, *of_ends.CHECKS, *of_searches.CHECKS, *of_fairness.CHECKS)


def audit(result: Result, workload: Workload, cluster: Cluster) -> list[str]:
    """Return what is wrong with a result, each with the rule that found it; empty if nothing."""
    report = auditing.audit(result, workload, cluster)
    broken = [found.to_text() for found in report.findings]
    if sorted(result.jobs["job_id"]) != sorted(workload.jobs["job_id"]):
        return broken  # rows that nobody can look up
    facts = Facts(result, workload, cluster)
    return broken + [f"{check.__name__}: {told}" for check in CHECKS for told in check(facts)]
