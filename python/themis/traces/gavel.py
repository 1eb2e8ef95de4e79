"""Workloads of the Gavel simulator (OSDI 2020) and of Shockwave (NSDI 2023), ``.trace`` files.

Fields are separated by tabs, without a header; their number tells the variant: 7 (the MSR traces),
10 (Gavel) or 12 (Shockwave, with a duration). Where there is no duration, a job has steps to do,
and runs for steps / throughput, as measured by Gavel's authors (MIT licence) with all GPUs in one
machine; what they did not measure on several GPUs is taken as the throughput of one GPU times
their number, and counted. The type of the job, a model with its batch size, is the placement
profile. Of several files, the file is the tenant.

Options
-------
throughputs
    Path of other throughputs: a ``simulation_throughputs.json`` of Gavel, or CSV with job_type,
    gpu_type, gpus, steps_per_s.
gpu_type
    The GPUs that the throughputs are for, ``"v100"`` by default.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl

from themis.checking.problems import Problem
from themis.errors import TraceError
from themis.traces.csvtext import CsvHeader, Dialect
from themis.traces.gathered import kept_problem
from themis.traces.reader import Input, Reader
from themis.traces.rows import Floats, RowChecks
from themis.traces.table import Table
from themis.traces.tabular import read_table
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_DIALECT = Dialect(separator="\t", quoted=False)
_START = ("job_type", "command")
_STEPS = ("num_steps_arg", "needs_data_dir", "total_steps")
_VARIANTS = {
    len(names): CsvHeader(names, 0, len(names), _DIALECT)
    for names in (
        (*_START, *_STEPS, "arrival_time", "scale_factor"),
        (
            *(*_START, "working_directory", *_STEPS),
            *("scale_factor", "priority_weight", "slo", "arrival_time"),
        ),
        (
            *(*_START, "working_directory", *_STEPS, "scale_factor", "mode"),
            *("priority_weight", "slo", "duration", "arrival_time"),
        ),
    )
}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_KEY = re.compile(r"\('(.*)', (\d+)\)")
_SCHEMA = {
    "job_type": pl.String(),
    "gpu_type": pl.String(),
    "gpus": pl.Int64(),
    "steps_per_s": pl.Float64(),
}
_SCALED = Problem("throughput of one GPU", "scale_factor", action="kept: times the number of GPUs")

Throughputs = Mapping[tuple[str, int], float]
"""Steps per second by type of the job and number of GPUs."""


def recognise(source: Input) -> str | None:
    """By the number of fields between tabs, the last two of which are numbers."""
    if source.kind != "csv":
        return None
    cells = source.first_line.split("\t")
    if len(cells) not in _VARIANTS or not all(map(_NUMBER.fullmatch, cells[-2:])):
        return None
    return f"{len(cells)} fields between tabs"


def read(
    source: Input, about: TraceSource, *, throughputs: object = None, gpu_type: object = "v100"
) -> Workload:
    """Read ``.trace`` files; the module says what the options mean."""
    timed = all("duration" in _header(part).names for part in source.parts)
    work = _Work(_throughputs(source.name, throughputs, str(gpu_type)))
    table = Table(
        name="gavel",
        title="workload of the Gavel simulator",
        known_by=(),
        submit="arrival_time",
        duration=work.duration_s,
        gpus="scale_factor",
        profile="job_type",
        unit="s",
        header=_header,
        assumed=None if timed else work.scaled,
    )
    where = "Gavel's authors" if throughputs is None else str(throughputs)
    note = f"durations are steps over the throughputs of {where} on {gpu_type}"
    return read_table(table, source, about, {}, () if timed else (note,))


def _header(part: Input) -> CsvHeader:
    fields = part.first_line.count("\t") + 1
    if fields not in _VARIANTS:
        known = ", ".join(map(str, _VARIANTS))
        raise TraceError(f"{part.name}, line 1: {fields} fields between tabs: expected {known}")
    return _VARIANTS[fields]


class _Work:
    """Durations of jobs, and which of them rest on an assumption."""

    def __init__(self, throughputs: Throughputs) -> None:
        self.throughputs = throughputs

    def duration_s(self, checks: RowChecks, gpus: Floats) -> Floats:
        """Seconds of each row: its duration, or its steps over its throughput."""
        if "duration" in checks.frame.columns:
            return checks.seconds("duration")
        job_type = checks.text("job_type", required=True)
        steps = checks.number("total_steps")
        checks.reject(steps < 0, "negative number of steps", "total_steps")
        rates = [self._rate(kind, count) for kind, count in zip(job_type, gpus, strict=True)]
        rate = np.array(rates, dtype=np.float64)
        checks.reject(np.isnan(rate), "no throughput known", "job_type")
        found: Floats = steps / rate
        return found

    def _rate(self, job_type: str | None, gpus: float) -> float:
        if job_type is None or not gpus >= 1:
            return self.throughputs.get((job_type or "", 1), np.nan)
        known = self.throughputs.get((job_type, int(gpus)))
        return self.throughputs.get((job_type, 1), np.nan) * gpus if known is None else known

    def scaled(self, rows: pl.DataFrame) -> Problem:
        """Count the jobs whose throughput is that of one GPU times their GPUs."""
        pairs = rows.select("profile", "gang_size").iter_rows()
        scaled = [gpus > 1 and (kind, int(gpus)) not in self.throughputs for kind, gpus in pairs]
        return kept_problem(rows, pl.lit(pl.Series(scaled)), _SCALED, "profile")


def _throughputs(name: str, path: object, gpu_type: str) -> Throughputs:
    """Throughputs of a GPU type, in a file or as shipped."""
    if path is None:
        table = _table(files("themis.traces").joinpath("gavel_steps.csv").read_bytes())
    else:
        table = _read(name, Path(str(path)))
    of_type = table.filter((pl.col("gpu_type") == gpu_type) & (pl.col("steps_per_s") > 0))
    if of_type.is_empty():
        kinds = ", ".join(table.get_column("gpu_type").unique().sort().to_list()[:20])
        raise TraceError(f"{name}: option gpu_type is {gpu_type!r}: expected one of {kinds}")
    rows = of_type.select("job_type", "gpus", "steps_per_s").iter_rows()
    return {(job_type, gpus): rate for job_type, gpus, rate in rows}


def _read(name: str, path: Path) -> pl.DataFrame:
    try:
        data = path.read_bytes()
        if data.lstrip()[:1] != b"{":
            return _table(data)
        rows = [
            (found[1], gpu_type, int(found[2]), float(pairs["null"]))
            for gpu_type, jobs in json.loads(data).items()
            for key, pairs in jobs.items()
            if (found := _KEY.fullmatch(key))
        ]
        return pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(name, path, error) from None
    except pl.exceptions.PolarsError as error:
        raise _unreadable(name, path, error) from None


def _unreadable(name: str, path: Path, error: Exception) -> TraceError:
    return TraceError(
        f"{name}: option throughputs: {path} cannot be read ({str(error).splitlines()[0]}): "
        f"expected Gavel's JSON, or CSV with {', '.join(_SCHEMA)}"
    )


def _table(data: bytes) -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(data), schema=_SCHEMA)


READER = Reader(
    name="gavel",
    expects="7, 10 or 12 fields between tabs (a .trace of Gavel or Shockwave)",
    recognise=recognise,
    read=read,
    options=("throughputs", "gpu_type"),
    several=True,
)
