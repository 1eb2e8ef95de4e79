"""Themis: finish-time fair GPU-cluster scheduling (Mahajan et al., NSDI 2020).

>>> import themis
>>> cluster = themis.Cluster.parse("2x(2x4)")
>>> workload = themis.generate("demo", seed=0)
>>> result = themis.simulate(workload, cluster, policy="fifo")
>>> result.summary()["apps_done"] == workload.apps.height
True

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from themis._core import __version__, build_info
    from themis.agents.agent import Agent, AppView, Goal, JobReport, Verdict
    from themis.auction.bids import AppState, Bid
    from themis.auction.clearing import clear_auction
    from themis.auction.file import AuctionRequest, read_auction
    from themis.auction.offer import Offer
    from themis.auction.outcome import AuctionOutcome
    from themis.auditing import AuditReport, audit
    from themis.checking.check import CheckReport
    from themis.cluster.cluster import Cluster
    from themis.comparison.comparing import compare
    from themis.comparison.comparison import Comparison
    from themis.errors import (
        AgentError,
        AuditError,
        ClusterError,
        PolicyAnswerError,
        PolicyError,
        ScenarioError,
        ThemisError,
        TraceError,
    )
    from themis.explanations import Explanation, explain
    from themis.policies.catalogue import POLICIES
    from themis.policies.policy import Decision, Grant, Policy, PolicyView
    from themis.profiles import PROFILES, Profile
    from themis.results.result import Result, load_result
    from themis.settings.settings import Settings
    from themis.simulation.simulate import simulate
    from themis.sweeps import Sweep, load_sweep, sweep
    from themis.synthetic import generate
    from themis.traces import read_trace
    from themis.traces.capacity_tables import read_capacity
    from themis.traces.check import check_trace
    from themis.traces.machine_lists import read_cluster
    from themis.workload.workload import Workload

__all__ = [
    "POLICIES",
    "PROFILES",
    "Agent",
    "AgentError",
    "AppState",
    "AppView",
    "AuctionOutcome",
    "AuctionRequest",
    "AuditError",
    "AuditReport",
    "Bid",
    "CheckReport",
    "Cluster",
    "ClusterError",
    "Comparison",
    "Decision",
    "Explanation",
    "Goal",
    "Grant",
    "JobReport",
    "Offer",
    "Policy",
    "PolicyAnswerError",
    "PolicyError",
    "PolicyView",
    "Profile",
    "Result",
    "ScenarioError",
    "Settings",
    "Sweep",
    "ThemisError",
    "TraceError",
    "Verdict",
    "Workload",
    "__version__",
    "audit",
    "build_info",
    "check_trace",
    "clear_auction",
    "compare",
    "explain",
    "generate",
    "load_result",
    "load_sweep",
    "read_auction",
    "read_capacity",
    "read_cluster",
    "read_trace",
    "simulate",
    "sweep",
]

_HOMES = {
    "_core": ("__version__", "build_info"),
    "agents.agent": ("Agent", "AppView", "Goal", "JobReport", "Verdict"),
    "auction.clearing": ("clear_auction",),
    "auction.file": ("AuctionRequest", "read_auction"),
    "auction.outcome": ("AuctionOutcome",),
    "auditing": ("AuditReport", "audit"),
    "auction.bids": ("AppState", "Bid"),
    "auction.offer": ("Offer",),
    "traces.capacity_tables": ("read_capacity",),
    "checking.check": ("CheckReport",),
    "cluster.cluster": ("Cluster",),
    "comparison.comparing": ("compare",),
    "comparison.comparison": ("Comparison",),
    "errors": (
        "AgentError",
        "AuditError",
        "ClusterError",
        "PolicyAnswerError",
        "PolicyError",
        "ScenarioError",
        "ThemisError",
        "TraceError",
    ),
    "explanations": ("Explanation", "explain"),
    "sweeps": ("Sweep", "load_sweep", "sweep"),
    "synthetic": ("generate",),
    "traces.machine_lists": ("read_cluster",),
    "policies.catalogue": ("POLICIES",),
    "policies.policy": ("Decision", "Grant", "Policy", "PolicyView"),
    "profiles": ("PROFILES", "Profile"),
    "results.result": ("Result", "load_result"),
    "settings.settings": ("Settings",),
    "simulation.simulate": ("simulate",),
    "traces.check": ("check_trace",),
    "traces": ("read_trace",),
    "workload.workload": ("Workload",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

logging.getLogger("themis").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'themis' has no attribute {name!r}")
    return getattr(importlib.import_module(f"themis.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
