"""The HTML report and its figures."""

from __future__ import annotations

from themis.report.page import figures, write_report

__all__ = ["figures", "write_report"]
