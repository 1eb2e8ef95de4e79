"""The tables of a result: names, columns, types, and the version of all of them.

All times are seconds on the workload's clock, all GPU times are GPU-seconds, all identifiers are
strings. docs/metrics.md says what each column means.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from themis.errors import ThemisError

__all__ = ["RESULT_SCHEMA_VERSION", "TABLES", "checked_frames", "conform"]

RESULT_SCHEMA_VERSION = 4
"""Version of the tables, the manifest and the summary; raised whenever one of them changes."""

_S, _F, _I, _B = pl.String(), pl.Float64(), pl.Int64(), pl.Boolean()

TABLES: Mapping[str, Mapping[str, pl.DataType]] = {
    "apps": {
        "app_id": _S,
        "user": _S,
        "tenant": _S,
        "arrival_s": _F,
        "first_gpu_s": _F,
        "end_s": _F,
        "state": _S,
        "reason": _S,
        "jobs": _I,
        "gpu_s": _F,
        "useful_gpu_s": _F,
        "slowed_gpu_s": _F,
        "switching_gpu_s": _F,
        "lost_gpu_s": _F,
        "idle_gpu_s": _F,
        "n_avg": _F,
        "gpus_avg": _F,
        "t_id_s": _F,
        "t_sh_s": _F,
        "rho": _F,
        "rho_is_bound": _B,
        "rho_floor": _F,
        "queue_s": _F,
        "preemptions": _I,
        "migrations": _I,
        "failures": _I,
        "placement_score": _F,
        "lied": _B,
        "lie_gain_s": _F,
    },
    "jobs": {
        "job_id": _S,
        "app_id": _S,
        "submit_s": _F,
        "start_s": _F,
        "end_s": _F,
        "state": _S,
        "reason": _S,
        "gang_size": _I,
        "gpus_max": _I,
        "gpu_milli": _I,
        "gpu_s": _F,
        "work_gpu_s": _F,
        "preemptions": _I,
        "migrations": _I,
        "promised_s": _F,
        "failures": _I,
        "lost_gpu_s": _F,
    },
    "leases": {
        "lease_id": _S,
        "app_id": _S,
        "machine": _S,
        "slot": _I,
        "gpu_first": _I,
        "gpus": _I,
        "start_s": _F,
        "end_s": _F,
        "cause": _S,
        "renewals": _I,
        "ended_by": _S,
        "gpu_milli": _I,
    },
    "auctions": {
        "auction_id": _S,
        "at_s": _F,
        "offered_gpus": _I,
        "active_apps": _I,
        "bidders": _I,
        "winners": _I,
        "leftover_gpus": _I,
        "min_c": _F,
        "mean_c": _F,
        "objective": _F,
        "upper_bound": _F,
        "gap": _F,
    },
    "usage": {
        "at_s": _F,
        "gpus_total": _I,
        "gpus_used": _I,
        "gpus_productive": _F,
        "active_apps": _I,
        "waiting_apps": _I,
    },
    "capacity": {
        "at_s": _F,
        "machine": _S,
        "gpus": _I,
        "cause": _S,
    },
}
"""Columns of each table, in their order in the files."""

_NEVER_NULL = frozenset(
    {
        *("app_id", "job_id", "lease_id", "auction_id", "machine", "slot", "state"),
        *("arrival_s", "submit_s", "at_s", "gang_size", "gpus", "offered_gpus"),
        *("gpus_total", "gpus_used", "gpus_productive", "active_apps", "waiting_apps"),
    }
)
_MOST = 9e12  # seconds or GPUs: their millionths fit into 64 bits


def checked_frames(frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """All six tables in canonical column order and types.

    Raises
    ------
    ThemisError
        A table is missing or unknown, or :func:`conform` refuses one.
    """
    for name in frames:
        if name not in TABLES:
            raise ThemisError(f"result table {name!r} is unknown: expected {', '.join(TABLES)}")
    missing = [name for name in TABLES if name not in frames]
    if missing:
        raise ThemisError(f"result table {missing[0]!r} is missing: expected {', '.join(TABLES)}")
    return {name: conform(name, frames[name]) for name in TABLES}


def conform(table: str, frame: pl.DataFrame, *, where: str = "") -> pl.DataFrame:
    """`frame` with exactly the columns of `table`, in order.

    Narrow numbers are widened, enumerations become strings and all-null columns take the expected
    type; nothing else is converted. Floats may be null but never NaN or infinite.

    Parameters
    ----------
    table
        Name in :data:`TABLES`.
    frame
        The rows.
    where
        What to call the table in messages; its name when empty.

    Raises
    ------
    ThemisError
        A column is missing, unknown or of another type, or holds NaN, infinity,
        a null where there always is a value, or a time or
        number of GPUs beyond all bounds.
    """
    schema = TABLES[table]
    name = where or f"result table {table!r}"
    missing = [column for column in schema if column not in frame.columns]
    extra = [column for column in frame.columns if column not in schema]
    if missing:
        raise ThemisError(f"{name}: column {missing[0]!r} is missing")
    if extra:
        raise ThemisError(f"{name}: column {extra[0]!r} is unknown: expected {', '.join(schema)}")
    for column, wanted in schema.items():
        found = frame.schema[column]
        if not _widens(found, wanted):
            raise ThemisError(f"{name}: column {column!r} has type {found}: expected {wanted}")
    frame = frame.select(pl.col(column).cast(wanted) for column, wanted in schema.items())
    for column in schema:
        _check_sound(frame.select(column).to_series(), name)
    return frame


def _widens(found: pl.DataType, wanted: pl.DataType) -> bool:
    if found in (wanted, pl.Null):
        return True
    if wanted == pl.String:
        return found in (pl.Categorical, pl.Enum)
    if wanted == pl.Int64:
        return found.is_integer() and found not in (pl.UInt64, pl.Int128, pl.UInt128)
    return wanted == pl.Float64 and (found == pl.Float32 or found.is_integer())


def _check_sound(series: pl.Series, name: str) -> None:
    wrong, expected = pl.Series([], dtype=pl.Boolean), ""
    if series.dtype == pl.Float64 and not series.is_finite().all():
        wrong, expected = ~series.is_finite(), "a finite number or null"
    elif series.name in _NEVER_NULL and series.null_count():
        wrong, expected = series.is_null(), "a value"
    elif _is_bounded(series.name) and not series.is_between(-_MOST, _MOST).all():
        wrong, expected = series.abs() > _MOST, f"at most {_MOST:g}"
    if expected:
        row = wrong.arg_true()[0]
        raise ThemisError(
            f"{name}: column {series.name!r}, row {row}: {series[row]} where {expected} was "
            "expected"
        )


def _is_bounded(name: str) -> bool:
    """Whether a column holds seconds or GPUs, and not GPU-seconds or an ideal time.

    The ideal time of an app of little weight has no bound: nothing happens at it.
    """
    seconds = name.endswith("_s") and not name.endswith("gpu_s") and name != "t_id_s"
    return seconds or name == "first_gpu_s" or name.startswith("gpus")
