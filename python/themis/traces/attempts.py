"""Rows of one id that are attempts of one job, or different jobs whose id was used again.

Schedulers such as Slurm keep the id of a job that they requeue, and reset its submission. So a row
is another attempt of the job before it, if that has the same id and gang, and had not ended long
before the row was submitted; else the id was used again, and the job gets the next number:
``70001#2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from themis.traces.gathered import Gathered


__all__ = ["attempts_joined", "merge_attempts", "numbered_again"]

_REQUEUE_S = 3600
"""Longest time from the end of an attempt to the submission of the next, seconds."""


def merge_attempts(gathered: Gathered, content: Sequence[str]) -> pl.DataFrame:
    """Return one row a job: its last attempt, with the first submission and the work of all.

    The accepted rows have job_id, app_id (null for the job itself), submit and ended
    (microseconds), gang_size, serial_time_s and what else `content` names.
    """
    rows = gathered.in_order(["job_id", "submit", "ended", *content[1:]])
    again = ~pl.struct("job_id", "ended", *content).is_first_distinct()
    gathered.reject(rows.filter(again), "repeated row", "job_id")
    jobs = _joined(rows.filter(~again), gathered, "submit")
    _note_used_again(jobs, gathered)
    use = pl.int_range(pl.len()).over("job_id") + 1
    suffix = pl.concat_str(pl.lit("#"), use.cast(pl.String))
    return jobs.with_columns(
        pl.when(use > 1).then(pl.col(name) + suffix).otherwise(name).alias(name)
        for name in ("job_id", "app_id")
    )


def attempts_joined(frame: pl.DataFrame, gathered: Gathered) -> pl.DataFrame:
    """Join the rows of ids whose every row was submitted after the one before had ended.

    Rows of other ids stay as they are, and so do all without submit or submit_s, and ended on the
    same clock. `frame` has job_id, gang_size and serial_time_s.
    """
    submit = next((name for name in ("submit", "submit_s") if name in frame.columns), None)
    if submit is None or "ended" not in frame.columns:
        return frame  # as of Philly, whose log lists the attempts of each job
    last = pl.col("ended").shift().over("job_id")
    same = pl.col("gang_size") == pl.col("gang_size").shift().over("job_id")
    after = (pl.col(submit) >= last) & (same | ~_near(frame, submit, last))
    rows = frame.filter(pl.col("job_id").is_duplicated()).sort("job_id", submit, "ended", "line")
    rows = rows.filter(after.fill_null(last.is_null()).all().over("job_id"))
    if rows.is_empty():
        return frame
    others = frame.filter(~pl.col("job_id").is_in(rows.get_column("job_id").implode()))
    jobs = _joined(rows, gathered, submit)
    _note_used_again(jobs, gathered)
    return pl.concat([others, numbered_again(jobs, "job_id")])


def numbered_again(frame: pl.DataFrame, unique: str) -> pl.DataFrame:
    """`frame` with numbers after second and later ids, and after those of the jobs' own apps."""
    use = pl.int_range(pl.len()).over(unique) + 1
    names = [name for name in dict.fromkeys((unique, "app_id")) if name in frame.columns]
    new = pl.concat_str(pl.col(unique), pl.lit("#"), use.cast(pl.String))
    return frame.with_columns(
        pl.when((use > 1) & (pl.col(name) == pl.col(unique))).then(new).otherwise(name).alias(name)
        for name in names
    )


def _near(rows: pl.DataFrame, submit: str, last: pl.Expr) -> pl.Expr:
    """Whether a row was submitted soon after `last`; whole numbers are microseconds."""
    second = 1_000_000 if rows.schema[submit].is_integer() else 1
    return pl.col(submit) <= last + _REQUEUE_S * second


def _joined(rows: pl.DataFrame, gathered: Gathered, submit: str) -> pl.DataFrame:
    """One row a job of rows by id and submission: its last, first submitted, with all the work."""
    same = (pl.col("job_id") == pl.col("job_id").shift()) & (
        pl.col("gang_size") == pl.col("gang_size").shift()
    )
    near = _near(rows, submit, pl.col("ended").shift())
    first = rows.select((~(same & near)).fill_null(value=True).alias("first")).to_series()
    starts = first.arg_true().to_numpy()
    if not len(starts):
        return rows
    last = np.append(starts[1:], rows.height) - 1
    earlier = np.ones(rows.height, dtype=np.bool_)
    earlier[last] = False
    gathered.reject(rows.filter(pl.Series(earlier)), "earlier attempt", "job_id", lost=False)
    work = np.add.reduceat(rows.get_column("serial_time_s").to_numpy(), starts)
    return rows[last].with_columns(
        rows.get_column(submit).gather(starts), serial_time_s=pl.Series(work)
    )


def _note_used_again(jobs: pl.DataFrame, gathered: Gathered) -> None:
    used = jobs.filter(~pl.col("job_id").is_first_distinct())
    if used.height:
        gathered.notes.append(
            f"{used.height} jobs have the id of an earlier job, such as {used['job_id'][0]!r}: "
            "the id was used again, and they are numbered"
        )
