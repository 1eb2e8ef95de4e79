"""A workload as files of the native format."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from themis.errors import TraceError

__all__ = ["FORMS", "WORKLOAD_SCHEMA_VERSION", "write_tables"]

WORKLOAD_SCHEMA_VERSION = 2
"""Version of the Parquet files."""

FORMS = ("parquet", "csv")
"""Kinds of file that a workload can be written as."""


def write_tables(
    tables: Mapping[str, pl.DataFrame], about: Mapping[str, object], target: Path, form: str
) -> Path:
    """Do what :meth:`themis.workload.Workload.write` promises.

    Parameters
    ----------
    tables
        Jobs and apps, by the names of their files.
    about
        What the Parquet files also say of the workload: format, origin and notes.
    target
        The directory.
    form
        One of :data:`FORMS`.

    Raises
    ------
    TraceError
        As said there.
    """
    if form not in FORMS:
        raise TraceError(f"{target}: form is {form!r}: expected one of {', '.join(FORMS)}")
    for other in FORMS:
        for name in tables:
            path = target / f"{name}.{other}"
            if other != form and path.exists():
                raise TraceError(
                    f"{path}: is there already, and two tables of {name} could not be read: "
                    "expected another directory"
                )
    known = {"schema_version": WORKLOAD_SCHEMA_VERSION, **about}
    metadata = {"themis.workload": json.dumps(known, sort_keys=True)}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, frame in tables.items():
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
