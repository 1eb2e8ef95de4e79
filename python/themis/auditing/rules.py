"""Every rule, and the audit of a result by all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from themis.auditing import accounts, contention, fairness, hosts, of_gpus, quotas, states
from themis.auditing.report import AuditReport, Finding
from themis.auditing.run import Run
from themis.cluster.cluster import Cluster
from themis.profiles import ProfileInput
from themis.results.result import Result
from themis.workload.workload import Workload

__all__ = ["RULES", "Rule", "audit"]

_EXAMPLES = 5


@dataclass(frozen=True)
class Rule:
    """An invariant: `check` returns the rows that break it; its docstring says what it is."""

    check: Callable[[Run], pl.DataFrame]
    needs_workload: bool = False
    needs_cluster: bool = False
    holds_with_agents: bool = True
    """False for a rule on when an app's work for GPUs ends, or how large its jobs are: agents drop
    jobs before they are submitted, and resize them."""
    looks_ahead: bool = False
    """True for a rule that counts jobs still to come when the run ended: which of them could run is
    known from workload and cluster only."""
    needs_weights: bool = False
    """True for a rule that must know the weights of the apps."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.check.__name__

    @property
    def says(self) -> str:
        """What holds, in words."""
        lines = (self.check.__doc__ or "").strip().split("\n\n")[0].splitlines()
        return " ".join(line.strip() for line in lines)

    def can_check(self, run: Run) -> bool:
        """Whether a run has what the rule needs."""
        workload = run.workload is not None or not self.needs_workload
        cluster = run.cluster is not None or not self.needs_cluster
        agents = self.holds_with_agents or not run.has_agents
        ahead = run.knows_what_is_to_come or not self.looks_ahead
        weights = run.knows_weights or not self.needs_weights
        return workload and cluster and agents and ahead and weights


RULES = (
    Rule(of_gpus.no_gpu_is_used_twice),
    Rule(of_gpus.leases_name_gpus_that_exist, needs_cluster=True),
    Rule(of_gpus.leases_lie_in_the_life_of_their_app),
    Rule(of_gpus.leases_begin_on_gpus_there_are),
    Rule(of_gpus.causes_fit_the_policy),
    Rule(of_gpus.leases_end_on_time),
    Rule(of_gpus.apps_stay_below_their_caps, needs_workload=True),
    Rule(
        hosts.machines_have_what_their_gpus_take,
        needs_workload=True,
        needs_cluster=True,
    ),
    Rule(quotas.tenants_stay_below_their_quotas),
    Rule(of_gpus.jobs_start_with_their_gang),
    Rule(of_gpus.gangs_are_whole),
    Rule(states.jobs_have_one_final_state),
    Rule(states.apps_have_one_final_state),
    Rule(states.apps_end_with_their_jobs),
    Rule(accounts.counts_add_up),
    Rule(accounts.gpu_seconds_add_up),
    Rule(accounts.work_is_neither_lost_nor_invented, needs_workload=True),
    Rule(
        accounts.lone_jobs_did_the_work_of_their_leases,
        needs_workload=True,
        needs_cluster=True,
        holds_with_agents=False,
    ),
    Rule(accounts.use_is_in_order),
    Rule(accounts.use_is_that_of_the_leases, holds_with_agents=False, looks_ahead=True),
    Rule(accounts.gpu_seconds_of_use_add_up),
    Rule(
        contention.contention_is_that_of_the_lives,
        holds_with_agents=False,
        looks_ahead=True,
        needs_weights=True,
    ),
    Rule(fairness.rho_is_its_definition, holds_with_agents=False, looks_ahead=True),
    Rule(fairness.auctions_are_in_order),
    Rule(fairness.figures_are_finite),
)
"""Every invariant, in the order in which they are checked."""


def audit(
    result: Result,
    workload: Workload | None = None,
    cluster: Cluster | None = None,
    *,
    profiles: Mapping[str, ProfileInput] | None = None,
) -> AuditReport:
    """Return which invariants of a simulation a result breaks, from its tables alone.

    Parameters
    ----------
    result
        What :func:`themis.simulate` or :func:`themis.load_result` returned.
    workload, cluster
        What was played, and on what; None: what the result was made of, if it is still in memory.
        Without them the rules that compare with them are skipped.
    profiles
        Placement profiles that the run was given beside the built-in ones; None: the same.
    """
    made_of = result.inputs
    if made_of is not None:
        workload = made_of.workload if workload is None else workload
        cluster = made_of.cluster if cluster is None else cluster
        profiles = made_of.profiles if profiles is None else profiles
    run = Run(result, workload, cluster, profiles or {})
    checked = [rule for rule in RULES if rule.can_check(run)]
    findings = []
    for rule in checked:
        rows = rule.check(run)
        if rows.height:
            examples = tuple(rows.head(_EXAMPLES).to_dicts())
            findings.append(Finding(rule.name, rule.says, rows.height, examples))
    skipped = tuple(rule.name for rule in RULES if rule not in checked)
    return AuditReport(tuple(rule.name for rule in checked), skipped, tuple(findings))
