"""A workload as files of the native format."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from themis.errors import TraceError

if TYPE_CHECKING:
    import polars as pl

    from themis.workload import Workload

__all__ = ["FORMS", "WORKLOAD_SCHEMA_VERSION", "write_workload"]

WORKLOAD_SCHEMA_VERSION = 2
"""Version of the Parquet files."""

FORMS = ("parquet", "csv")
"""Kinds of file that a workload can be written as."""


def write_workload(workload: Workload, target: Path, form: str) -> Path:
    """Do what :meth:`themis.workload.Workload.write` promises."""
    if form not in FORMS:
        raise TraceError(f"{target}: form is {form!r}: expected one of {', '.join(FORMS)}")
    for other in FORMS:
        for name in ("jobs", "apps"):
            path = target / f"{name}.{other}"
            if other != form and path.exists():
                raise TraceError(
                    f"{path}: is there already, and two tables of {name} could not be read: "
                    "expected another directory"
                )
    about = {
        "schema_version": WORKLOAD_SCHEMA_VERSION,
        "format": workload.source.format,
        "origin": workload.source.origin,
        "notes": list(workload.notes),
    }
    metadata = {"themis.workload": json.dumps(about, sort_keys=True)}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, frame in (("jobs", workload.jobs), ("apps", workload.apps)):
            part = target / f".{name}.{form}.{os.getpid()}"
            try:
                _write(frame, part, form, metadata)
                part.replace(target / f"{name}.{form}")
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise TraceError(f"{target}: cannot be written: {error.strerror or error}") from None
    return target


def _write(frame: pl.DataFrame, path: Path, form: str, metadata: dict[str, str]) -> None:
    if form == "csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path, metadata=metadata)
