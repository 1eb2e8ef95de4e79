"""Slurm's accounting: the text that ``sacct --parsable2`` prints.

Fields are separated by ``|``. The columns are those of ``--format``: JobID (or JobIDRaw), Submit,
Start, End, State and one of AllocTRES, ReqTRES, AllocGRES, ReqGRES are needed, Elapsed (or
ElapsedRaw), User, Account and Partition are used where they are. The account, else the partition,
is the tenant.

A job's GPUs are ``gres/gpu=4``, else the sum of its ``gres/gpu:TYPE=N``, of what was allocated,
else asked for. Its duration is Elapsed, which leaves out the time in which it was suspended, else
End - Start. Steps (``123.batch``) are part of their job; the tasks of an array (``123_4``) and the
components of a heterogeneous job (``123+1``) are the jobs of one app. Rows of one id are read as
:mod:`themis.traces.attempts` says.

Options
-------
timezone
    IANA zone of the stamps, which have none.
columns
    The names of ``--format``, where the text has no header: ``"JobID,User,Submit,..."``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from themis.errors import TraceError
from themis.traces.csvtext import CsvHeader, Dialect, csv_header
from themis.traces.reader import Input, Reader
from themis.traces.rows import RowChecks, is_missing
from themis.traces.table import Table
from themis.traces.tabular import read_table
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_DIALECT = Dialect(separator="|", quoted=False)
_IDS = ("JobID", "JobIDRaw")
_GPUS = ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES")
_DURATIONS = ("ElapsedRaw", "Elapsed")
_TIMES = ("Submit", "Start", "End")
_KNOWN = (*_IDS, *_GPUS, *_TIMES, *_DURATIONS, "State", "User", "Account", "Partition")
_TYPE = r"gpu:[^=:,(]*[A-Za-z][^=:,(]*"  # has a letter: gpu:2 is a number, gpu:1g.5gb a type
_FIELDS = {name.lower(): name for name in _KNOWN}
_NEEDED = (_IDS, ("Submit",), ("Start",), ("End",), _GPUS)


def recognise(source: Input) -> str | None:
    """By the names of Slurm's fields between bars."""
    if source.kind != "csv" or "|" not in source.first_line:
        return None
    names = _names(source.first_line.split("|"))
    found = [name for name in (*_IDS, "Submit", "State") if name in names]
    return f"text between bars with {', '.join(found)}" if len(found) > 1 else None


def read(
    source: Input, about: TraceSource, *, timezone: object = None, columns: object = None
) -> Workload:
    """Read the text of sacct; the module says what the options mean."""
    given = _given(source, columns)
    headers = {part: _header(part, given) for part in source.parts}
    names = set.intersection(*(set(header.names) for header in headers.values()))
    for wanted in _NEEDED:
        if not names & set(wanted):
            raise TraceError(
                f"{source.name}: column {' or '.join(wanted)} is missing: found "
                f"{', '.join(next(iter(headers.values())).names)[:200]}; expected a header line "
                "with the names, or option columns"
            )
    job_id = next(name for name in _IDS if name in names)
    table = Table(
        name="sacct",
        title="text of Slurm's sacct",
        known_by=(),
        job_id=job_id,
        app="array",
        submit="Submit",
        start="Start",
        end="End",
        duration=next((name for name in _DURATIONS if name in names), None),
        gpus="gres/gpu",
        gpu_types="gres/gpu:TYPE",
        user="User",
        tenant="tenant",
        status="State",
        header=headers.__getitem__,
        prepare=_preparation(names, job_id),
        attempts=True,
    )
    return read_table(table, source, about, {"timezone": timezone})


def _names(cells: Sequence[str]) -> list[str]:
    """Slurm's spelling of the names in a header, which may be in any case."""
    return [_FIELDS.get(cell.strip().lower(), cell.strip()) for cell in cells]


def _given(source: Input, columns: object) -> tuple[str, ...] | None:
    if columns is None:
        return None
    cells = columns.split(",") if isinstance(columns, str) else columns
    if not isinstance(cells, list | tuple) or not all(isinstance(cell, str) for cell in cells):
        raise TraceError(
            f"{source.name}: option columns is {columns!r}: expected names such as "
            "'JobID,User,Submit,Start,End,State,AllocTRES'"
        )
    return tuple(_names([cell.split("%")[0] for cell in cells]))


def _header(part: Input, given: tuple[str, ...] | None) -> CsvHeader:
    found = csv_header(part.file, _DIALECT)
    names = tuple(_names(found.names))
    if given is None or names[: found.required] == given:
        return CsvHeader(names, found.line, found.required, _DIALECT)
    trailing = ("unnamed",) if part.first_line.endswith("|") else ()
    return CsvHeader((*given, *trailing), 0, len(given), _DIALECT)


def _preparation(names: set[str], job_id: str) -> Callable[[RowChecks], None]:
    """Return what derives the columns of the table from those of Slurm."""
    gpus = [pl.col(name) for name in _GPUS if name in names]
    tenants = [pl.col(name) for name in ("Account", "Partition") if name in names]

    def prepare(checks: RowChecks) -> None:
        step = pl.col(job_id).str.contains(".", literal=True).fill_null(value=False)
        checks.reject(checks.frame.select(step).to_series().to_numpy(), "job step", job_id)
        if "ElapsedRaw" not in names and "Elapsed" in names:
            _to_seconds(checks, "Elapsed")
        said = pl.coalesce(pl.when(asked.str.contains("gpu")).then(asked) for asked in gpus)
        kinds = said.str.extract_all(_TYPE).list.join("|")
        checks.frame = checks.frame.with_columns(
            pl.col(job_id).str.extract(r"^(\d+)[_+]").alias("array"),
            pl.coalesce(*tenants, pl.lit(None, dtype=pl.String)).alias("tenant"),
            _gpu_count(said).alias("gres/gpu"),
            kinds.str.replace_all("gpu:", "").replace("", None).alias("gres/gpu:TYPE"),
            *(pl.col(name).replace("Unknown", None) for name in _TIMES),
        )

    return prepare


def _gpu_count(said: pl.Expr) -> pl.Expr:
    """Count the GPUs of ``billing=8,gres/gpu:a100=2,gres/gpu=2`` or ``gpu:a100:2``."""
    total = said.str.extract(r"(?:^|,)(?:gres/)?gpu[=:](\d+)(?:$|[,(])").cast(
        pl.Int64, strict=False
    )
    typed = said.str.extract_all(_TYPE + r"[=:]\d+").list.eval(
        pl.element().str.extract(r"(\d+)$").cast(pl.Int64, strict=False)
    )
    typed = pl.when(typed.list.len() > 0).then(typed.list.sum())
    # a text that names GPUs without their number stays as it is, to be refused as no number
    unread = pl.when(said.str.contains(r"(?:^|,)(?:gres/)?gpu[=:]")).then(said)
    return pl.coalesce(pl.coalesce(total, typed).cast(pl.String), unread, pl.lit("0"))


def _to_seconds(checks: RowChecks, column: str) -> None:
    """Turn ``[DD-[HH:]]MM:SS[.fraction]`` into seconds."""
    parts = pl.col(column).str.extract_groups(
        r"^(?:(?<d>\d{1,6})-)?(?:(?<h>\d{1,6}):)?(?<m>\d{1,6}):(?<s>\d{1,2}(?:\.\d+)?)$"
    )
    days, hours, minutes, seconds = (
        parts.struct.field(name).cast(pl.Float64, strict=False) for name in "dhms"
    )
    total = days.fill_null(0) * 86400 + hours.fill_null(0) * 3600 + minutes * 60 + seconds
    found = checks.frame.select(total.cast(pl.String)).to_series()
    odd = found.is_null() & ~is_missing(checks.frame.get_column(column))
    checks.reject(odd.to_numpy(), "unreadable duration", column)
    checks.frame = checks.frame.with_columns(found.alias(column))


READER = Reader(
    name="sacct",
    expects="text of sacct --parsable2 with JobID, Submit, Start, End, State, AllocTRES",
    recognise=recognise,
    read=read,
    options=("timezone", "columns"),
    several=True,
)
