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
    from themis.agents import Agent, AppView, Goal, JobReport, Verdict
    from themis.auction import clear_auction
    from themis.auction_file import AuctionRequest, read_auction
    from themis.auction_outcome import AuctionOutcome
    from themis.auditing import AuditReport, audit
    from themis.bids import AppState, Bid, Offer
    from themis.capacity_tables import read_capacity
    from themis.check import CheckReport
    from themis.cluster import Cluster
    from themis.comparing import compare
    from themis.comparison import Comparison
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
    from themis.machine_lists import read_cluster
    from themis.policies import POLICIES
    from themis.policy import Decision, Grant, Policy, PolicyView
    from themis.profiles import PROFILES, Profile
    from themis.result import Result, load_result
    from themis.settings import Settings
    from themis.simulation import simulate
    from themis.sweeps import Sweep, load_sweep, sweep
    from themis.synthetic import generate
    from themis.trace_check import check_trace
    from themis.traces import read_trace
    from themis.workload import Workload

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
    "agents": ("Agent", "AppView", "Goal", "JobReport", "Verdict"),
    "auction": ("clear_auction",),
    "auction_file": ("AuctionRequest", "read_auction"),
    "auction_outcome": ("AuctionOutcome",),
    "auditing": ("AuditReport", "audit"),
    "bids": ("AppState", "Bid", "Offer"),
    "capacity_tables": ("read_capacity",),
    "check": ("CheckReport",),
    "cluster": ("Cluster",),
    "comparing": ("compare",),
    "comparison": ("Comparison",),
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
    "machine_lists": ("read_cluster",),
    "policies": ("POLICIES",),
    "policy": ("Decision", "Grant", "Policy", "PolicyView"),
    "profiles": ("PROFILES", "Profile"),
    "result": ("Result", "load_result"),
    "settings": ("Settings",),
    "simulation": ("simulate",),
    "trace_check": ("check_trace",),
    "traces": ("read_trace",),
    "workload": ("Workload",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

logging.getLogger("themis").addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'themis' has no attribute {name!r}")
    return getattr(importlib.import_module(f"themis.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
