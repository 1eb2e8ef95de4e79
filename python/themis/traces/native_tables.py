"""Tables of the native format: which file, which columns, and the table of apps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from themis.checking.repairs import given
from themis.errors import TraceError
from themis.files.expansion import PARQUET_ERRORS, check_parquet
from themis.schema.host import MAX_HOST, OF_GPU
from themis.schema.workload import (
    MAX_GPUS,
    MAX_WORK_GPU_S,
    STOPPING,
    WHOLE_MILLI,
    WORKLOAD_SCHEMA_VERSION,
)
from themis.traces.fractions import shares
from themis.traces.gathered import Gathered
from themis.traces.reader import Input, csv_rows, unused_columns
from themis.traces.rows import Floats, RowChecks

__all__ = [
    "LEARNING",
    "LIMITS",
    "app_limits",
    "find_table",
    "gangs",
    "host_needs",
    "learning",
    "mixing",
    "named_columns",
    "nothing",
    "read_apps",
    "stopping",
    "table_rows",
    "weights",
    "written_about",
]

_APP_NAMES: Mapping[str, tuple[str, ...]] = {
    "app_id": ("app_id", "id"),
    "arrival_s": ("arrival_s", "arrival"),
    **{
        name: (name,)
        for name in (
            *("user", "tenant", "stopping", "weight", "profile", "gpu_types"),
            *("max_gpus", "target_loss"),
        )
    },
}

LIMITS = ("app_max_gpus", "target_loss")
"""Columns of :func:`app_limits` in a table of jobs."""

LEARNING = ("iterations", "loss_a", "loss_b", "loss_c", "bracket")
"""Columns of :func:`learning`."""


def find_table(directory: Path, stem: str) -> Path | None:
    """Find the file of a table; two of them are an error."""
    endings = (".parquet", ".csv", ".csv.gz", ".csv.zst")
    found = [path for end in endings if (path := directory / f"{stem}{end}").is_file()]
    if len(found) > 1:
        raise TraceError(
            f"{directory}: both {found[0].name} and {found[1].name}: expected one {stem} table"
        )
    return found[0] if found else None


def named_columns(source: Input, aliases: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Name in the source of each column that it has."""
    names = {}
    for column, accepted in aliases.items():
        found = [name for name in accepted if name in source.columns]
        if len(found) > 1:
            raise TraceError(
                f"{source.name}: columns {found[0]!r} and {found[1]!r} both mean {column}: "
                "expected one of them"
            )
        if found:
            names[column] = found[0]
    return names


def table_rows(source: Input, gathered: Gathered, known: dict[str, str]) -> Iterator[RowChecks]:
    """Iterate over the rows of a CSV or Parquet table in blocks; `known` maps to its columns."""
    if source.kind == "csv":
        yield from csv_rows(source, gathered, known.values())
        return
    if source.kind != "parquet":
        raise TraceError(f"{source.name}: found {source.describe()}: expected CSV or Parquet")
    unused_columns(source, gathered, known.values())
    try:
        check_parquet(source.path, TraceError)
        frame = pl.read_parquet(source.path, columns=list(known.values()))
    except PARQUET_ERRORS as error:
        raise TraceError(f"{source.name}: damaged Parquet file: {error}") from None
    yield RowChecks(_plain(source, frame), np.arange(1, frame.height + 1))


def _plain(source: Input, frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table of a Parquet file, all columns of which hold numbers or text."""
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Duration, pl.Object):
            raise TraceError(
                f"{source.name}: column {name!r} has type {kind}: expected numbers or text"
            )
    try:
        return frame.with_columns(pl.col(pl.Binary).cast(pl.String)).with_columns(
            pl.col(pl.String).str.strip_chars()
        )
    except pl.exceptions.PolarsError as error:
        raise TraceError(f"{source.name}: {str(error).splitlines()[0]}: expected text") from None


def read_apps(source: Input) -> pl.DataFrame:
    """Attributes of apps; every row must be usable."""
    at = named_columns(source, _APP_NAMES)
    if "app_id" not in at:
        found = ", ".join(source.columns[:20])
        raise TraceError(f"{source.name}: column 'app_id' is missing: found {found}")
    gathered = Gathered(source.name, "line" if source.kind == "csv" else "row")
    frames = []
    for checks in table_rows(source, gathered, at):
        columns: dict[str, pl.Series] = {
            "app_id": checks.text(at["app_id"], required=True),
            "weight": pl.Series(weights(checks, at)),
            "stopping": stopping(checks, at),
            **app_limits(checks, at, cap="max_gpus"),
        }
        for name in ("user", "tenant", "profile", "gpu_types"):
            columns[name] = checks.text(at[name]) if name in at else nothing(checks, pl.String())
        frame = pl.DataFrame(columns).with_columns(pl.col("max_gpus").cast(pl.Int64))
        checks.reject(
            frame.get_column("app_id").is_duplicated().to_numpy(), "repeated id", at["app_id"]
        )
        checks.refuse_any(source.name, gathered.row_word)
        frames.append(frame)
    if not frames:
        raise TraceError(f"{source.name}: no rows after the header: expected at least one app")
    return pl.concat(frames)


def weights(checks: RowChecks, at: Mapping[str, str]) -> Floats:
    """Read the weight of each row, 1 where there is none."""
    if "weight" not in at:
        return np.ones(checks.frame.height)
    found = checks.number(at["weight"], required=False)
    found = np.where(np.isnan(found), 1.0, found)
    checks.reject(found <= 0, "weight not positive", at["weight"])
    return found


def stopping(checks: RowChecks, at: Mapping[str, str]) -> pl.Series:
    """Read the stopping rule of each row, ``"all"`` where there is none."""
    if "stopping" not in at:
        return pl.repeat("all", checks.frame.height, dtype=pl.String, eager=True)
    found = checks.text(at["stopping"]).fill_null("all")
    checks.reject(~found.is_in(list(STOPPING)).to_numpy(), "unknown stopping rule", at["stopping"])
    return found


def app_limits(
    checks: RowChecks, at: Mapping[str, str], *, cap: str, gang: Floats | None = None
) -> dict[str, pl.Series]:
    """Read each row's cap on the GPUs of its app and the loss that the app is after.

    The cap stands in the column `cap`; where the row is a job, `gang` is its gang.
    """
    found = {name: nothing(checks, pl.Float64()) for name in (cap, "target_loss")}
    if cap in at:
        most = checks.gpus(at[cap], required=False)
        checks.reject(most < 1, "app without a GPU", at[cap])
        if gang is not None:
            checks.reject(most < gang, "app cap below the gang", at[cap])
        found[cap] = pl.Series(most).fill_nan(None)
    if "target_loss" in at:
        found["target_loss"] = _optional(checks, at["target_loss"])
    return found


def learning(checks: RowChecks, at: Mapping[str, str]) -> dict[str, pl.Series]:
    """Read each job's iterations, loss curve and bracket."""
    found = {
        name: _optional(checks, at[name]) if name in at else nothing(checks, pl.Float64())
        for name in LEARNING
    }
    for name, bad, reason in (
        ("iterations", found["iterations"] <= 0, "iterations not positive"),
        ("loss_a", found["loss_a"] < 0, "loss curve that rises"),
        ("loss_b", found["loss_b"] <= 0, "loss curve without a start"),
        (
            "bracket",
            (found["bracket"] % 1 != 0) | ~found["bracket"].is_between(0, MAX_GPUS),
            "bracket not a whole number",
        ),
    ):
        if name in at:
            checks.reject(bad.fill_null(value=False).to_numpy(), reason, at[name])
    found["bracket"] = found["bracket"].cast(pl.Int64, strict=False)
    names = LEARNING[:-1]
    curve = pl.DataFrame({name: found[name].is_not_null() for name in names})
    some = curve.select(pl.any_horizontal(pl.exclude("iterations"))).to_series()
    whole = curve.select(pl.all_horizontal(pl.all())).to_series()
    named = next((at[name] for name in names[1:] if name in at), "")
    checks.reject((some & ~whole).to_numpy(), "loss curve incomplete", named)
    return found


def host_needs(checks: RowChecks, at: Mapping[str, str]) -> dict[str, pl.Series]:
    """Read what each GPU of a job needs of its machine; null where the table does not say."""
    found = {name: nothing(checks, pl.Float64()) for name in OF_GPU}
    for name in sorted(set(OF_GPU) & set(at)):
        amount = checks.number(at[name], required=False)
        outside = (amount < 0) | (amount > MAX_HOST)
        checks.reject(outside, f"{name} not from 0 to {MAX_HOST:g}", at[name])
        found[name] = pl.Series(amount).fill_nan(None)
    return found


def mixing(checks: RowChecks, at: Mapping[str, str]) -> pl.Series:
    """Read whether each job may run on several GPU types at once; null where it does not say."""
    if "mixes_types" not in at:
        return nothing(checks, pl.Boolean())
    return checks.flag(at["mixes_types"])


def gangs(checks: RowChecks, at: Mapping[str, str]) -> tuple[Floats, pl.Series]:
    """Read the GPUs of each job's gang, and the thousandths of its one GPU that it uses; null: all.

    A gang of 0.5 is one GPU of which a job uses 500, unless a repair says what fractions become.
    """
    column = at["gang_size"]
    if "gpu_milli" in at:
        return checks.gpus(column), _milli(checks, at)
    if given("fraction of a GPU") is not None:
        return checks.gpus(column), nothing(checks, pl.Int64())
    asked = checks.number(column)
    milli = shares(np.ceil(asked), asked)
    return np.ceil(checks.gpus(column, kept=milli.is_not_null().to_numpy())), milli


def _milli(checks: RowChecks, at: Mapping[str, str]) -> pl.Series:
    found = _optional(checks, at["gpu_milli"])
    bad = (found % 1 != 0) | ~found.is_between(1, WHOLE_MILLI)
    expected = f"gpu_milli not from 1 to {WHOLE_MILLI}"
    checks.reject(bad.fill_null(value=False).to_numpy(), expected, at["gpu_milli"])
    return found.cast(pl.Int64, strict=False)


def _optional(checks: RowChecks, column: str) -> pl.Series:
    found = checks.number(column, required=False)
    checks.reject(np.abs(found) > MAX_WORK_GPU_S, "number too large", column)
    return pl.Series(found).fill_nan(None)


def nothing(checks: RowChecks, kind: pl.DataType) -> pl.Series:
    """Return a column of nulls for the rows."""
    return pl.repeat(None, checks.frame.height, dtype=kind, eager=True)


def written_about(path: Path) -> tuple[str | None, tuple[str, ...]]:
    """Return the origin and the notes that `Workload.write` left in a Parquet file, if any.

    Raises
    ------
    TraceError
        The file is damaged, or a newer version of Themis wrote it.
    """
    if path.suffix != ".parquet":
        return None, ()
    try:
        about = json.loads(pl.read_parquet_metadata(path).get("themis.workload.workload", "{}"))
        version = int(about.get("schema_version", 1))
        origin, notes = about.get("origin"), tuple(about.get("notes", ()))
    except (*PARQUET_ERRORS, ValueError, TypeError, AttributeError) as error:
        raise TraceError(f"{path}: damaged Parquet file: {error}") from None
    if version > WORKLOAD_SCHEMA_VERSION:
        newest = WORKLOAD_SCHEMA_VERSION
        raise TraceError(f"{path}: schema version is {version}: expected at most {newest}")
    return origin, notes
