"""Why an app or a job waited, and what would have started it sooner."""

from __future__ import annotations

from themis.explanations.explaining import explain
from themis.explanations.explanation import Explanation

__all__ = ["Explanation", "explain"]
