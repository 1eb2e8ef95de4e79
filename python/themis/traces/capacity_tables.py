"""Files that say what a cluster has over time."""

from __future__ import annotations

from os import PathLike

import numpy as np
import polars as pl

from themis.arguments import path as path_argument
from themis.cluster.capacity import CAPACITY, CAUSES, no_changes, whole_rows
from themis.errors import TraceError
from themis.schema.workload import MAX_TIME_S
from themis.traces.gathered import Gathered
from themis.traces.helios_capacity import capacity_by_day, is_capacity
from themis.traces.native_tables import table_rows
from themis.traces.reader import Input

__all__ = ["read_capacity"]


def read_capacity(
    path: str | PathLike[str], *, tenant: str | None = None, origin: str | None = None
) -> pl.DataFrame:
    """Return the capacity of a cluster over time, for :meth:`themis.Cluster.with_capacity`.

    Parameters
    ----------
    path
        A table (CSV or Parquet, plain or packed) with machine, at_s, gpus and optionally cause; or
        Helios' ``cluster_gpu_number.csv``.
    tenant
        Helios: one virtual cluster; None for the whole cluster.
    origin
        Helios: ISO time of second 0, for example ``workload.source.origin``; None for the first
        day.

    Returns
    -------
    polars.DataFrame
        machine (String), at_s (Float64: seconds on the workload's clock; negative before it), gpus
        (Int64: what the machine has from then on) and, of a table, cause (String: planned, evicted,
        failure or repair), sorted by (at_s, machine). Of Helios: a row a machine on the first day,
        then a row a change; machines have the names of :func:`themis.read_cluster`, which makes the
        largest day's cluster of the file.

    Raises
    ------
    TraceError
        The file cannot be read, is of another format, or has a row that is no change of capacity;
        the message names file, line, column and value. Or the tenant or origin is unknown.
    """
    source = Input(path_argument("capacity: path", path))
    if is_capacity(source):
        return capacity_by_day(source, tenant=tenant, origin=origin)
    if tenant is not None or origin is not None:
        raise TraceError(f"{source.name}: tenant and origin are for capacities by day: leave them")
    return _table(source)


def _table(source: Input) -> pl.DataFrame:
    missing = [name for name in ("machine", "at_s", "gpus") if name not in source.columns]
    if missing:
        raise TraceError(
            f"{source.name}: column {missing[0]!r} is missing: expected machine, at_s, gpus and "
            f"cause, found {source.describe()}"
        )
    known = {name: name for name in CAPACITY if name in source.columns}
    gathered = Gathered(source.name, "line" if source.kind == "csv" else "row")
    frames = [no_changes()]
    for checks in table_rows(source, gathered, known):
        columns = {"machine": checks.text("machine", required=True)}
        at_s, gpus = checks.number("at_s"), checks.gpus("gpus")
        checks.reject(np.abs(at_s) > MAX_TIME_S, "number too large", "at_s")
        if "cause" in known:
            columns["cause"] = checks.text("cause").fill_null("planned")
            odd = ~columns["cause"].is_in(CAUSES)
            checks.reject(odd.to_numpy(), f"none of {', '.join(CAUSES)}", "cause")
        checks.refuse_any(source.name, gathered.row_word)
        frame = pl.DataFrame(columns).with_columns(at_s=pl.Series(at_s), gpus=pl.Series(gpus))
        frame = frame.filter(pl.Series(checks.good)).with_columns(pl.col("gpus").cast(pl.Int64))
        frames.append(whole_rows(frame))
    return pl.concat(frames).sort("at_s", "machine")
