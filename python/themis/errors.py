"""Exceptions of Themis.

Every error that a user can cause is a :class:`ThemisError`; its message names the file, row,
column or field, the value found, and what was expected. All are picklable.
"""

from __future__ import annotations

__all__ = [
    "AgentError",
    "AuditError",
    "ClusterError",
    "PolicyAnswerError",
    "PolicyError",
    "ScenarioError",
    "ThemisError",
    "TraceError",
]


class ThemisError(Exception):
    """Base of every error that Themis raises on purpose."""


class TraceError(ThemisError, ValueError):
    """A trace or workload cannot be read or used: unknown format, bad rows, wrong columns."""


class ScenarioError(ThemisError, ValueError):
    """A scenario, setting or auction file is invalid."""


class ClusterError(ThemisError, ValueError):
    """A cluster description is invalid or empty."""


class PolicyError(ThemisError, ValueError):
    """A policy is unknown or unfit, or its answer was refused (:class:`PolicyAnswerError`)."""


class AuditError(ThemisError):
    """A result breaks an invariant of simulations: a fault of Themis, never of its user."""


class PolicyAnswerError(PolicyError):
    """A policy of one's own raised, or gave an answer that can't be carried out: the run failed."""


class AgentError(PolicyError):
    """An agent gave an answer that can't be carried out; the message names agent, app and job."""
