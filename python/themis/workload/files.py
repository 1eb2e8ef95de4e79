"""A workload as files of the native format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from themis.errors import TraceError
from themis.files.atomic_file import new_file
from themis.schema.workload import WORKLOAD_SCHEMA_VERSION

__all__ = ["FORMS", "write_tables"]

_METADATA_KEY = "themis.workload.workload"

FORMS = ("parquet", "csv")
"""Kinds of file that a workload can be written as."""


def write_tables(
    tables: Mapping[str, pl.DataFrame], about: Mapping[str, object], target: Path, form: str
) -> Path:
    """Do what :meth:`themis.Workload.write` promises.

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
    for name, frame in tables.items():
        for other in FORMS:
            path = target / f"{name}.{other}"
            if other != form and path.exists():
                raise TraceError(
                    f"{path}: is there already, and two tables of {name} could not be read: "
                    "expected another directory"
                )
        path = target / f"{name}.{form}"
        if path.exists() and not _is_ours(path, frame):
            raise TraceError(
                f"{path}: is there already and is no table that Themis converted or generated: "
                "expected another directory"
            )
    known = {"schema_version": WORKLOAD_SCHEMA_VERSION, **about}
    metadata = {_METADATA_KEY: json.dumps(known, sort_keys=True)}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, frame in tables.items():
            with new_file(target / f"{name}.{form}") as partial:
                _write(frame, partial, form, metadata)
    except OSError as error:
        raise TraceError(f"{target}: cannot be written: {error.strerror or error}") from None
    return target


def _is_ours(path: Path, frame: pl.DataFrame) -> bool:
    """Whether a file is a table like `frame` that was written here before."""
    try:
        if path.suffix == ".parquet":
            return _METADATA_KEY in pl.read_parquet_metadata(path)
        with path.open(encoding="utf-8") as lines:
            return lines.readline().rstrip("\n") == ",".join(frame.columns)
    except (pl.exceptions.PolarsError, OSError, ValueError):
        return False


def _write(frame: pl.DataFrame, path: Path, form: str, metadata: dict[str, str]) -> None:
    if form == "csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path, metadata=metadata)
