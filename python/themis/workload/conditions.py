"""Which jobs a condition keeps: SQL over the columns of a job and of its app."""

from __future__ import annotations

import re

import polars as pl

from themis.errors import TraceError
from themis.nearest import nearest
from themis.schema.workload import APP_ATTRIBUTES, JOBS

__all__ = ["CONDITION_COLUMNS", "jobs_where"]

CONDITION_COLUMNS = (*JOBS, *APP_ATTRIBUTES.values(), "arrival_s", "duration_s", "app_jobs")
"""Columns that a condition may name: those of a job, those of its app, the seconds that the job
takes at its gang, and how many jobs its app has."""

_USER_OR_TEXT = re.compile(r"""('[^']*'|"[^"]*")|\buser\b""", re.IGNORECASE)


def jobs_where(
    apps: pl.DataFrame, jobs: pl.DataFrame, where: str | pl.Expr
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Jobs that fulfil `where`, and their apps; see :meth:`themis.Workload.filter`.

    Raises
    ------
    TraceError
        The condition cannot be read, names an unknown column, or is no condition.
    """
    condition = _parsed(where)
    for name in condition.meta.root_names():
        if name not in CONDITION_COLUMNS:
            raise TraceError(
                f"filter: column {name!r} is unknown{nearest(name, CONDITION_COLUMNS)}: "
                f"expected some of {', '.join(CONDITION_COLUMNS)}"
            )
    try:
        kept = _table(apps, jobs).filter(condition).select(list(JOBS))
    except pl.exceptions.PolarsError as error:
        raise TraceError(f"filter: {where}: {str(error).splitlines()[0]}") from None
    first = kept.group_by("app_id").agg(pl.col("submit_s").min().alias("arrival_s"))
    left = apps.drop("arrival_s").join(first, on="app_id").select(apps.columns)
    return left, kept


def _parsed(where: object) -> pl.Expr:
    if isinstance(where, pl.Expr):
        return where
    if not isinstance(where, str) or not where.strip():
        raise TraceError(
            f'filter: where is {where!r}: expected a condition such as "gang_size <= 8"'
        )
    # USER is a word of SQL; here it is the column, unless it stands in a text
    text = _USER_OR_TEXT.sub(lambda match: match[1] or '"user"', where)
    try:
        return pl.sql_expr(text)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise TraceError(f"filter: where is {where!r}: not a condition in SQL: {reason}") from None


def _table(apps: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """One row a job, in the order of `jobs`, with the columns of `CONDITION_COLUMNS`."""
    own = apps.select(
        *("app_id", "arrival_s"),
        *(pl.col(column).alias(name) for column, name in APP_ATTRIBUTES.items()),
        pl.col("profile").alias("of_app"),
    )
    rows = jobs.join(own, on="app_id", how="left", maintain_order="left")
    return rows.with_columns(
        pl.coalesce("profile", "of_app").alias("profile"),
        (pl.col("serial_time_s") / pl.col("gang_size").clip(1)).alias("duration_s"),
        pl.len().over("app_id").cast(pl.Int64).alias("app_jobs"),
    )
