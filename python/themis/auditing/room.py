"""The most GPUs that a job could have at one time, from workload and cluster alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.boundary.job_speeds import JobSpeeds
from themis.cluster.cluster import Cluster
from themis.schema.host import served

__all__ = ["most_gpus"]

_Whole = npt.NDArray[np.int64]


def most_gpus(
    cluster: Cluster, machines: pl.DataFrame, speeds: JobSpeeds, takes: _Whole
) -> tuple[_Whole, _Whole]:
    """Return instants, and the most GPUs that a job could have at one time from each.

    Failures by chance are left out.

    Parameters
    ----------
    cluster, machines
        The cluster, and its machines with `has` GPUs of a `type`.
    speeds
        The GPUs returned have the shape (instants, rows of its table): of all types that a row
        allows together, where it mixes them.
    takes
        What each GPU takes of its machine, as of
        :func:`themis.schema.host.different_needs`.
    """
    serve = served(cluster.machines, takes)
    start = machines.select("machine", at_us=pl.lit(-(2**62), pl.Int64), gpus=pl.Series(serve))
    most = dict(zip(machines["machine"], serve.tolist(), strict=True))
    limit = pl.col("machine").replace_strict(most, return_dtype=pl.Int64)
    changes = cluster.capacity.select(
        "machine",
        at_us=(pl.col("at_s") * 1e6).round().cast(pl.Int64),
        gpus=pl.min_horizontal("gpus", limit),
    )
    more = pl.col("gpus") - pl.col("gpus").shift(fill_value=0).over("machine")
    steps = (
        pl.concat([start, changes])
        .sort("machine", "at_us")
        .with_columns(more=more)
        .join(machines.select("machine", "type"), on="machine")
    )
    allowed = speeds.table > 0
    since_us, at = np.unique(steps["at_us"].to_numpy(), return_inverse=True)
    gpus = np.zeros((len(since_us), allowed.shape[1]), dtype=np.int64)
    np.add.at(gpus, (at, steps["type"].to_numpy()), steps["more"].to_numpy())
    usable = gpus.cumsum(axis=0)
    of_rows = usable @ allowed.T.astype(np.int64)
    for row in np.flatnonzero(~speeds.mixes):
        of_rows[:, row] = (usable * allowed[row]).max(axis=1)
    return since_us, np.maximum.accumulate(of_rows[::-1])[::-1]
