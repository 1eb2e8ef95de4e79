"""A machine list: the columns of the machines of a cluster, and what is refused in them."""

from __future__ import annotations

from collections import Counter

import polars as pl

from themis.cluster.spec import UNTYPED
from themis.errors import ClusterError
from themis.schema.host import MAX_HOST, OF_MACHINE

SCHEMA: dict[str, pl.DataType] = {
    "machine": pl.String(),
    "rack": pl.String(),
    "gpu_type": pl.String(),
    "gpus": pl.Int64(),
    "slot_gpus": pl.Int64(),
    **dict.fromkeys(OF_MACHINE, pl.Float64()),
}

MOST_GPUS = 2**24


def completed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a machine list with all columns, sorted by (rack, machine).

    Raises
    ------
    ClusterError
        A column is missing, unknown or of another type.
    """
    unknown = [column for column in frame.columns if column not in SCHEMA]
    missing = [column for column in ("machine", "gpus") if column not in frame.columns]
    if missing or unknown:
        what, column = ("missing", missing[0]) if missing else ("unknown", unknown[0])
        raise ClusterError(
            f"machine list: column {column!r} is {what}: expected {', '.join(SCHEMA)}"
        )
    for column in {"gpus", "slot_gpus"} & set(frame.columns):
        _check_whole(column, frame.get_column(column))
    defaults = {
        "rack": pl.lit("r0"),
        "gpu_type": pl.lit(UNTYPED),
        "slot_gpus": pl.col("gpus"),
        **dict.fromkeys(OF_MACHINE, pl.lit(None, pl.Float64)),
    }
    absent = {name: value for name, value in defaults.items() if name not in frame.columns}
    try:
        full = frame.with_columns(**absent).select(
            pl.col(name).cast(dtype, strict=True) for name, dtype in SCHEMA.items()
        )
    except pl.exceptions.PolarsError as error:
        raise ClusterError(f"machine list: {error}") from error
    filled = full.with_columns(
        pl.col("rack").fill_null("r0"),
        pl.col("gpu_type").fill_null(UNTYPED),
        pl.col("slot_gpus").fill_null(pl.col("gpus")),
    )
    return filled.sort("rack", "machine")


def check_count(name: str, count: object) -> None:
    """Refuse a count of GPUs, machines or racks that is none."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_GPUS:
        raise ClusterError(f"{name} is {count!r}: expected a whole number from 1 to {MOST_GPUS}")


def _check_whole(column: str, values: pl.Series) -> None:
    """Refuse what a conversion to whole numbers would change."""
    if values.dtype == pl.Boolean:
        raise ClusterError(f"machine list: {column} is a truth value: expected whole numbers")
    if values.dtype.is_float():
        odd = values.filter(values.is_not_null() & (values % 1 != 0))
        if odd.len():
            raise ClusterError(f"machine list: {column} is {odd[0]}: expected a whole number")


def with_host(machines: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of host resources that are absent."""
    absent = [name for name in OF_MACHINE if name not in machines.columns]
    return machines.with_columns(pl.lit(None, pl.Float64).alias(name) for name in absent)


def checked(machines: pl.DataFrame) -> pl.DataFrame:
    """Return the machine list, with every rule of the class checked."""
    if dict(machines.schema) != SCHEMA:
        raise ClusterError(f"machine list: columns are {dict(machines.schema)}: expected {SCHEMA}")
    if machines.is_empty():
        raise ClusterError("the cluster has no machine: expected one or more")
    for column in SCHEMA:
        if column not in OF_MACHINE and machines.get_column(column).null_count():
            row = machines.get_column(column).is_null().arg_max()
            raise ClusterError(f"machine list: row {row}: {column} is missing")
    names = Counter(machines.get_column("machine").to_list())
    if "" in names:
        raise ClusterError("machine list: a machine has no name: expected one for each")
    name, times = names.most_common(1)[0]
    if times > 1:
        raise ClusterError(f"machine {name!r} stands {times} times: expected different names")
    for name, gpus, slot in machines.select("machine", "gpus", "slot_gpus").iter_rows():
        check_count(f"machine {name!r}: gpus", gpus)
        if not 1 <= slot <= gpus:
            raise ClusterError(
                f"machine {name!r}: slot_gpus is {slot}: expected 1 to its {gpus} GPUs"
            )
    _check_host(machines)
    total = int(machines.get_column("gpus").sum())
    if total > MOST_GPUS:
        raise too_many(total)
    return machines


def _check_host(machines: pl.DataFrame) -> None:
    for column in OF_MACHINE:
        odd = machines.filter(~pl.col(column).is_between(0, MAX_HOST))
        if odd.height:
            name, amount = odd.select("machine", column).row(0)
            raise ClusterError(
                f"machine {name!r}: {column} is {amount}: expected 0 to {MAX_HOST:g}, or nothing"
            )


def too_many(gpus: int) -> ClusterError:
    """Return what is wrong with a cluster of so many GPUs."""
    return ClusterError(f"the cluster has {gpus} GPUs: expected at most {MOST_GPUS}")
