"""Rows of one id that are attempts of one job, or different jobs whose id was used again.

Slurm keeps the id of a job that it requeues, and resets its submission. So a row is another attempt
of the job before it, if that has the same id and gang, and had not ended long before the row was
submitted; else the id was used again, and the job gets the next number: ``70001#2``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from themis.traces.rows import Gathered

__all__ = ["merge_attempts"]

_REQUEUE_US = 3600 * 1_000_000
"""Longest time from the end of an attempt to the submission of the next, microseconds."""


def merge_attempts(gathered: Gathered, content: Sequence[str]) -> pl.DataFrame:
    """Return one row a job: its last attempt, with the first submission and the work of all.

    The accepted rows have job_id, app_id (null for the job itself), submit and end (microseconds),
    gang_size, serial_time_s and what else `content` names.
    """
    rows = gathered.rows(unique=None, content=["job_id", "submit", "end", *content[1:]])
    again = ~pl.struct("job_id", "end", *content).is_first_distinct()
    gathered.reject(rows.filter(again), "repeated row", "job_id")
    rows = rows.filter(~again)
    same = (pl.col("job_id") == pl.col("job_id").shift()) & (
        pl.col("gang_size") == pl.col("gang_size").shift()
    )
    near = pl.col("submit") <= pl.col("end").shift() + _REQUEUE_US
    rows = rows.with_columns((~(same & near)).fill_null(value=True).alias("first"))
    starts = rows.get_column("first").arg_true().to_numpy()
    if not len(starts):
        return rows
    last = np.append(starts[1:], rows.height) - 1
    earlier = np.ones(rows.height, dtype=np.bool_)
    earlier[last] = False
    gathered.reject(rows.filter(pl.Series(earlier)), "earlier attempt", "job_id", lost=False)
    work = np.add.reduceat(rows.get_column("serial_time_s").to_numpy(), starts)
    jobs = rows[last].with_columns(
        submit=rows.get_column("submit").gather(starts), serial_time_s=pl.Series(work)
    )
    return _numbered_again(jobs.drop("first", "end"), gathered)


def _numbered_again(jobs: pl.DataFrame, gathered: Gathered) -> pl.DataFrame:
    """Give jobs whose id was used before a number."""
    jobs = jobs.with_columns((pl.int_range(pl.len()).over("job_id") + 1).alias("use"))
    used = jobs.filter(pl.col("use") > 1)
    if used.height:
        gathered.notes.append(
            f"{used.height} jobs have the id of an earlier job, such as {used['job_id'][0]!r}: "
            "the id was used again, and they are numbered"
        )
    suffix = pl.concat_str(pl.lit("#"), pl.col("use").cast(pl.String))
    return jobs.with_columns(
        pl.when(pl.col("use") > 1).then(pl.col(name) + suffix).otherwise(name).alias(name)
        for name in ("job_id", "app_id")
    ).drop("use")
