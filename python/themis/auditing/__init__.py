"""An independent check of results: every invariant of a run, from its tables alone.

Nothing here asks the engine. A rule is a function of a :class:`~themis.auditing.run.Run` that
returns the rows that break it; :data:`~themis.auditing.rules.RULES` lists them.
"""

from themis.auditing.report import AuditReport, Finding
from themis.auditing.rules import audit

__all__ = ["AuditReport", "Finding", "audit"]
