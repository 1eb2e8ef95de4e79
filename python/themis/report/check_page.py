"""The page of ``themis check``: what is wrong with a trace and what it asks for, with charts."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from themis.report.html_page import rendered, write_page

if TYPE_CHECKING:
    from themis.checking.check import CheckReport
    from themis.workload.workload import Workload

__all__ = ["write_check_page"]


def write_check_page(report: CheckReport, workload: Workload, path: str | PathLike[str]) -> Path:
    """Write a check report as one self-contained HTML file without scripts.

    Parameters
    ----------
    report
        What :meth:`Workload.check` found in `workload`.
    workload
        Its jobs are drawn.
    path
        The file; replaced if it exists. Its directory must exist.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ThemisError
        The file cannot be written.
    """
    from themis import __version__  # noqa: PLC0415 - loads the extension
    from themis.report.check_charts import workload_figures  # noqa: PLC0415 - altair loads slowly
    from themis.report.drawing import inlined  # noqa: PLC0415 - the same

    figures = workload_figures(workload, report.load)
    page = rendered(
        "check.html.j2",
        name=", ".join(report.paths) or "workload",
        report=report,
        accounts=report.accounts(),
        drawn=[(figure, inlined(figure)) for figure in figures],
        version=__version__,
    )
    return write_page(page, path)
