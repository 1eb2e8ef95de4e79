"""What an audit found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["AuditReport", "Finding"]


@dataclass(frozen=True)
class Finding:
    """A rule that rows of a result break.

    Parameters
    ----------
    rule
        Its name.
    says
        What it says, in words.
    rows
        How many rows break it.
    examples
        The first of them, by column; times in microseconds where a column ends in ``_us``.
    """

    rule: str
    says: str
    rows: int
    examples: tuple[Mapping[str, object], ...]

    def to_text(self) -> str:
        """Return the finding in a few lines."""
        shown = [", ".join(f"{key} {value}" for key, value in row.items()) for row in self.examples]
        more = [f"... and {self.rows - len(shown)} more"] if self.rows > len(shown) else []
        return "\n  ".join([f"{self.rule}: {self.says}", *shown, *more])


@dataclass(frozen=True)
class AuditReport:
    """What the rules say of a result.

    Parameters
    ----------
    rules
        Names of the rules that were checked.
    skipped
        Those that would have needed the workload or the cluster, or a run without agents.
    findings
        Those that rows break.
    """

    rules: tuple[str, ...]
    skipped: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no rule is broken."""
        return not self.findings

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON has it."""
        return {
            "passed": self.passed,
            "rules": list(self.rules),
            "skipped": list(self.skipped),
            "findings": [
                {
                    "rule": found.rule,
                    "says": found.says,
                    "rows": found.rows,
                    "examples": [dict(row) for row in found.examples],
                }
                for found in self.findings
            ],
        }

    def to_text(self) -> str:
        """Return the report in words."""
        checked = f"audit: {len(self.rules)} rules hold"
        if self.findings:
            checked = f"audit: {len(self.findings)} of {len(self.rules)} rules are broken"
        if self.skipped:
            checked += (
                f"; not checked (workload or cluster unknown, or agents): {', '.join(self.skipped)}"
            )
        return "\n".join([checked, *(found.to_text() for found in self.findings)])
