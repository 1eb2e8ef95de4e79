"""The tables of Alibaba PAI: which one a file is, and what they say of a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from themis.schema.host import OF_GPU
from themis.schema.workload import MAX_GPUS
from themis.traces.by_key import Groups, grouped
from themis.traces.csvtext import CsvHeader
from themis.traces.host import Amounts, amounts
from themis.traces.reader import Input, text_rows
from themis.traces.rows import Floats, RowChecks

__all__ = ["TABLES", "header_of", "instances", "table_of", "tags", "tasks"]

TABLES: Mapping[str, tuple[str, ...]] = {
    "job": ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    "task": (
        *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
        *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
    ),
    "instance": (
        *("job_name", "task_name", "inst_name", "worker_name", "inst_id"),
        *("status", "start_time", "end_time", "machine"),
    ),
    "group tag": ("inst_id", "user", "gpu_type_spec", "group", "workload"),
}
"""Columns of each table that is read."""

_TAGS = dict.fromkeys(("inst_id", "group", "workload", "tag_user"), pl.String())
_ROWS = {
    **dict.fromkeys(("job_name", "gpu_type"), pl.String()),
    **dict.fromkeys(("begin", "finish", "gpus", "asked", *OF_GPU), pl.Float64()),
}
_ROWS_READ = (
    *("job_name", "start_time", "end_time", "inst_num", "plan_gpu", "gpu_type"),
    *("plan_cpu", "plan_mem"),
)
_HOST: Amounts = dict(zip(OF_GPU, (("plan_cpu", 0.01), ("plan_mem", 1.0)), strict=True))
_STATUS = re.compile(r"(?i)running|terminated|failed|waiting|interrupted")
_TIME = re.compile(r"(-?\d+(\.\d+)?)?")
_HASH = re.compile(r"[0-9a-f]{40,}")
_WORD = re.compile(r"(?i).*[a-z].*|")


def table_of(source: Input) -> str | None:
    """Which table a file is, by its header or by the cells of its first line."""
    if source.kind != "csv":
        return None
    cells = [cell.strip() for cell in source.first_line.split(",")]
    for kind, names in TABLES.items():
        if len(cells) == len(names):
            alone = "\n" not in source.file.head.strip()
            named = tuple(cells) == names and not alone
            return kind if named or _fits(dict(zip(names, cells, strict=True))) else None
    return None


def _fits(row: Mapping[str, str]) -> bool:
    if "status" not in row:  # group tags: a long hash, and words that are no numbers
        return bool(_HASH.fullmatch(row["inst_id"]) and _WORD.fullmatch(row["workload"]))
    times = all(_TIME.fullmatch(row[name]) for name in ("start_time", "end_time"))
    return times and bool(_STATUS.fullmatch(row["status"]))


def header_of(part: Input, kind: str) -> CsvHeader:
    """Columns of a table, which has a header in some copies only."""
    names = TABLES[kind]
    cells = tuple(cell.strip() for cell in part.first_line.split(","))
    return CsvHeader(names, part.header.line if cells == names else 0, len(names))


def tasks(part: Input, notes: list[str]) -> pl.DataFrame:
    """One row a job: job_name, begin, finish, gpus (whole), gpus_asked, gpu_type of its tasks.

    Beside them the cores and GiB of the tasks that take GPUs, as `OF_GPU`: of all GPUs together.
    """

    def columns(checks: RowChecks) -> dict[str, pl.Series | Floats]:
        count = checks.gpus("inst_num")
        each = checks.number("plan_gpu", required=False) / 100
        each = np.where(np.isnan(each), 0.0, each)
        checks.reject(each < 0, "negative number of GPUs", "plan_gpu")
        checks.reject(np.ceil(each) * count > MAX_GPUS, "number too large", "plan_gpu")
        return {
            "gpus": np.ceil(each) * count,
            "asked": np.round(each * count * 1e6),
            "gpu_type": checks.text("gpu_type"),
            **{
                name: np.where(each > 0, amounts(checks, column, unit) * count, np.nan)
                for name, (column, unit) in _HOST.items()
            },
        }

    rows = _rows(part, "task", columns, notes)
    groups = grouped(rows.get_column("job_name"))
    gpus, asked = (
        np.add.reduceat(_sorted(rows, name, groups).astype(np.int64), groups.starts)
        for name in ("gpus", "asked")
    )
    host = {name: pl.Series(_sums(rows, name, groups)).fill_nan(None) for name in OF_GPU}
    return _spans(rows, groups).with_columns(
        gpus=gpus, gpus_asked=asked / 1e6, gpu_type=_kinds(rows, groups), **host
    )


def _sums(rows: pl.DataFrame, name: str, groups: Groups) -> Floats:
    """Add up what is known of the tasks of each job; NaN where nothing is."""
    each = _sorted(rows, name, groups)
    known = np.logical_or.reduceat(~np.isnan(each), groups.starts)
    # In millionths, so that the order of the rows does not show.
    sums = np.add.reduceat(np.rint(np.nan_to_num(each) * 1e6).astype(np.int64), groups.starts)
    return np.where(known, sums / 1e6, np.nan)


def _kinds(rows: pl.DataFrame, groups: Groups) -> pl.Series:
    """GPU types of the tasks of each job that take GPUs, ``"A|B"`` if they differ."""
    kinds = rows.get_column("gpu_type").drop_nulls().unique().sort()
    number = rows.get_column("gpu_type").replace_strict(
        kinds, pl.int_range(kinds.len(), eager=True), default=None, return_dtype=pl.Float64
    )
    taking = rows.with_columns(kind=pl.when(pl.col("gpus") > 0).then(number))
    of_task = _sorted(taking, "kind", groups)
    least, most = (np.asarray(best.reduceat(of_task, groups.starts)) for best in (np.fmin, np.fmax))
    names = pl.Series(least).fill_nan(None).cast(pl.Int64)
    found = kinds.gather(names.fill_null(0)) if kinds.len() else names.cast(pl.String)
    found = pl.select(pl.when(names.is_not_null()).then(found)).to_series()
    ends = np.append(groups.starts[1:], len(of_task))
    for job in np.flatnonzero(least < most):
        mixed = np.unique(of_task[groups.starts[job] : ends[job]])
        found[int(job)] = "|".join(kinds[int(kind)] for kind in mixed if not np.isnan(kind))
    return found


def instances(part: Input, notes: list[str]) -> pl.DataFrame:
    """One row a job: job_name, begin, finish, count, from its instances."""
    rows = _rows(part, "instance", lambda _checks: {}, notes)
    cut = rows.filter(pl.col("begin").is_null() | pl.col("finish").is_null()).height
    if cut:
        notes.append(
            f"{cut} instances lack a start or an end: their jobs run from the first start to the "
            "last end that is known"
        )
    groups = grouped(rows.get_column("job_name"))
    count = np.diff(groups.starts, append=rows.height)
    return _spans(rows, groups).with_columns(count=count)


def _spans(rows: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """job_name, first begin and last finish of each job; null where none is known."""
    begin = np.fmin.reduceat(_sorted(rows, "begin", groups), groups.starts)
    finish = np.fmax.reduceat(_sorted(rows, "finish", groups), groups.starts)
    found = pl.DataFrame({"job_name": groups.keys, "begin": begin, "finish": finish})
    return found.with_columns(pl.col("begin", "finish").fill_nan(None))


def _sorted(rows: pl.DataFrame, column: str, groups: Groups) -> Floats:
    """Numbers of a column in the order of the groups, NaN where null."""
    values: Floats = rows.get_column(column).fill_null(float("nan")).to_numpy()[groups.order]
    return values


def tags(part: Input, notes: list[str]) -> pl.DataFrame:
    """One row a tag: inst_id, tag_user, group, workload; of several for an id, the smallest."""
    frames = []
    for checks in text_rows(part, header_of(part, "group tag")):
        checks.text("inst_id", required=True)
        _note_unusable(part, checks, notes)
        frame = checks.frame.filter(pl.Series(checks.good))
        frames.append(frame.select("inst_id", "group", "workload", tag_user="user"))
    found = pl.concat(frames) if frames else pl.DataFrame(schema=_TAGS)
    return found.group_by("inst_id").agg(pl.all().min())


def _rows(
    part: Input,
    kind: str,
    columns: Callable[[RowChecks], Mapping[str, pl.Series | Floats]],
    notes: list[str],
) -> pl.DataFrame:
    """Usable rows of a table with job_name, begin and finish (seconds; 0 is missing)."""
    frames = []
    for checks in text_rows(part, header_of(part, kind), _ROWS_READ):
        job_name = checks.text("job_name", required=True)
        times = {
            name: checks.number(column, required=False)
            for name, column in (("begin", "start_time"), ("finish", "end_time"))
        }
        more = columns(checks)
        _note_unusable(part, checks, notes)
        frame = pl.DataFrame({"job_name": job_name, **times, **more}).with_columns(
            pl.col("begin", "finish").fill_nan(None).replace(0.0, None)
        )
        frames.append(frame.filter(pl.Series(checks.good)))
    return pl.concat(frames) if frames else pl.DataFrame(schema=_ROWS)


def _note_unusable(part: Input, checks: RowChecks, notes: list[str]) -> None:
    bad = checks.rejected().sort("line")
    if bad.height:
        first = bad.row(0, named=True)
        notes.append(
            f"{part.name}: {bad.height} rows could not be used; the first is line "
            f"{first['line']}: {first['reason']} {first['value'] or ''}".rstrip()
        )
