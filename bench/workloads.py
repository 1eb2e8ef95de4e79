"""Workloads and trace files of any size, shaped like the public Philly trace.

Durations follow the quantiles of that trace up to a day (its longest hundredth would outlast the
arrivals of a small workload), gang sizes its shares, and both are the same at every size: they are
quantiles in a random order, not draws. Arrivals ebb and flow once every 500 jobs, so that
queues come and go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.schema.workload import apps_from_jobs
from themis.workload.workload import Workload

__all__ = ["TRACE_WRITERS", "philly_like"]

Floats = npt.NDArray[np.float64]

_QUANTILES = (0.0, 0.10, 0.50, 0.90, 1.0)
_DURATIONS_S = (10.0, 61.0, 1144.0, 11264.0, 86400.0)
_GANGS = (1, 2, 4, 8, 16, 32)
_GANG_SHARES = (0.932, 0.022, 0.023, 0.020, 0.002, 0.001)
_PROFILES = ("vgg16", "resnet50", "alexnet", "inception3")
_ORIGIN = datetime(2017, 10, 1)  # noqa: DTZ001 - the trace's stamps have no zone
_JOBS_A_TIDE = 500
_TIDE = 0.8
_USERS = 50
_TENANTS = 12


def philly_like(jobs: int, gpus: int, *, load: float = 0.8, seed: int = 0) -> Workload:
    """Return single-job apps whose work is `load` times what `gpus` GPUs do while they arrive."""
    table = _rows(jobs, gpus, load, seed)
    rows = table.select(
        job_id="name",
        app_id="name",
        submit_s="submit_s",
        serial_time_s=pl.col("duration_s") * pl.col("gpus"),
        gang_size="gpus",
        max_gpus="gpus",
        profile="profile",
        checkpoint_s=pl.lit(None, pl.Float64),
        status=pl.lit(None, pl.String),
        user="user",
        tenant="tenant",
    )
    return Workload(apps=apps_from_jobs(rows), jobs=rows.drop("user", "tenant"))


def _rows(jobs: int, gpus: int, load: float, seed: int) -> pl.DataFrame:
    streams = np.random.SeedSequence(seed).spawn(4)
    order, sizes, gaps, people = (
        np.random.Generator(np.random.PCG64(stream)) for stream in streams
    )
    level = (np.arange(jobs) + 0.5) / jobs
    duration_s = np.exp(np.interp(level, _QUANTILES, np.log(_DURATIONS_S)))
    duration_s = order.permutation(np.round(duration_s))
    edges = np.cumsum(_GANG_SHARES)
    gang = sizes.permutation(np.array(_GANGS)[np.searchsorted(edges, level * edges[-1])])
    places = np.cumsum(gaps.exponential(size=jobs))
    span_s = float((duration_s * gang).sum()) / (gpus * load)
    user = np.minimum(people.geometric(0.08, size=jobs), _USERS)
    number = pl.int_range(1, jobs + 1, eager=True).cast(pl.String).str.zfill(7)
    return pl.DataFrame(
        {
            "name": "job-" + number,
            "submit_s": np.round(_with_tides(places - places[0], jobs) * span_s),
            "duration_s": duration_s,
            "gpus": gang,
            "profile": np.array(_PROFILES)[people.integers(len(_PROFILES), size=jobs)],
            "user": np.char.add("user-", user.astype(str)),
            "tenant": np.char.add("vc-", (user % _TENANTS).astype(str)),
        }
    )


def _with_tides(places: Floats, jobs: int) -> Floats:
    """Turn places on an even road into instants in [0, 1]: rate 1 + `_TIDE` sin, cycle by cycle."""
    cycles = max(1.0, jobs / _JOBS_A_TIDE)
    instants = np.linspace(0.0, 1.0, 64 * round(cycles) + 1)
    turn = 2 * np.pi * cycles
    road = instants + _TIDE * (1 - np.cos(turn * instants)) / turn
    even: Floats = places / places[-1] * road[-1]
    return np.interp(even, road, instants)


def _stamped(rows: int) -> pl.DataFrame:
    """Rows with `submit` and `end` as text, as the traces write them."""
    table = _rows(rows, gpus=512, load=0.8, seed=0)
    origin = pl.lit(_ORIGIN)
    stamp = {
        "submit": origin + pl.duration(seconds=pl.col("submit_s").cast(pl.Int64)),
        "end": origin
        + pl.duration(seconds=(pl.col("submit_s") + pl.col("duration_s")).cast(pl.Int64)),
    }
    return table.with_columns(
        expr.dt.strftime("%Y-%m-%d %H:%M:%S").alias(name) for name, expr in stamp.items()
    )


def _philly_csv(rows: int, folder: Path) -> Path:
    path = folder / f"philly-{rows}.csv"
    _stamped(rows).select(
        timestamp="submit",
        duration=pl.col("duration_s").cast(pl.Int64),
        num_gpus="gpus",
        gpu_time=(pl.col("duration_s") * pl.col("gpus")).cast(pl.Int64),
        cluster="tenant",
    ).write_csv(path)
    return path


def _philly_json(rows: int, folder: Path) -> Path:
    path = folder / f"philly-{rows}.json"
    entries = [
        _job_log_entry(number, row)
        for number, row in enumerate(_stamped(rows).iter_rows(named=True))
    ]
    path.write_text(json.dumps(entries))
    return path


def _job_log_entry(number: int, row: Mapping[str, Any]) -> dict[str, object]:
    machines = [
        {
            "ip": f"m{number % 500 + at}",
            "gpus": [f"gpu{g}" for g in range(min(8, row["gpus"] - at))],
        }
        for at in range(0, row["gpus"], 8)
    ]
    attempt = {"start_time": row["submit"], "end_time": row["end"], "detail": machines}
    return {
        "status": "Pass",
        "vc": row["tenant"],
        "jobid": f"application_1506638472019_{number}",
        "attempts": [attempt],
        "submitted_time": row["submit"],
        "user": row["user"],
    }


def _hyperdrive(rows: int, folder: Path) -> Path:
    path = folder / f"hyperdrive-{rows}.csv"
    number = pl.int_range(pl.len())
    _stamped(rows).select(
        (number // 20).alias("experiment-id"),
        pl.format("application_1529109938017_{}", number).alias("job-id"),
        pl.col("submit").alias("start-time"),
        pl.col("duration_s").alias("run-time"),
        pl.col("gpus").alias("num-gpus"),
    ).write_csv(path)
    return path


def _helios(rows: int, folder: Path) -> Path:
    path = folder / f"helios-{rows}.csv"
    _slurm(rows).select(
        *("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state"),
        *("submit_time", "start_time", "end_time", "duration", "queue"),
    ).write_csv(path)
    return path


def _acme(rows: int, folder: Path) -> Path:
    path = folder / f"acme-{rows}.csv"
    offset = pl.lit("+08:00")
    _slurm(rows).select(
        *("job_id", "user", "node_num", "gpu_num", "cpu_num"),
        pl.lit("Eval").alias("type"),
        "state",
        *(
            pl.concat_str(name, offset).alias(name)
            for name in ("submit_time", "start_time", "end_time")
        ),
        *("duration", "queue"),
        (pl.col("duration") * pl.col("gpu_num")).alias("gpu_time"),
    ).write_csv(path)
    return path


def _slurm(rows: int) -> pl.DataFrame:
    """Rows with the columns of Helios' cluster logs."""
    return _stamped(rows).select(
        job_id=pl.int_range(pl.len()),
        user="user",
        vc="tenant",
        gpu_num="gpus",
        cpu_num=pl.col("gpus") * 4,
        node_num=(pl.col("gpus") + 7) // 8,
        state=pl.lit("COMPLETED"),
        submit_time="submit",
        start_time="submit",
        end_time="end",
        duration=pl.col("duration_s").cast(pl.Int64),
        queue=pl.lit(0),
    )


def _pai(rows: int, folder: Path) -> Path:
    """Jobs and their tasks, one each, in two tables of `rows` rows."""
    path = folder / f"pai-{rows}"
    path.mkdir(exist_ok=True)
    table = _rows(rows, gpus=512, load=0.8, seed=0).with_columns(
        job=pl.int_range(pl.len()).cast(pl.String).str.zfill(24),
        begin=pl.col("submit_s") + 1.0,
        finish=pl.col("submit_s") + pl.col("duration_s") + 1.0,
        status=pl.lit("Terminated"),
    )
    table.select("job", pl.lit("i").alias("inst"), "user", "status", "begin", "finish").write_csv(
        path / "pai_job_table.csv", include_header=False
    )
    table.select(
        *("job", pl.lit("worker").alias("task"), "gpus", "status", "begin", "finish"),
        *(pl.lit(figure).alias(name) for name, figure in (("cpu", 600.0), ("mem", 29.3))),
        *(pl.lit(100.0).alias("gpu"), pl.lit("V100").alias("type")),
    ).write_csv(path / "pai_task_table.csv", include_header=False)
    return path


def _native(rows: int) -> pl.DataFrame:
    return _rows(rows, gpus=512, load=0.8, seed=0).rename({"name": "id"})


def _native_csv(rows: int, folder: Path) -> Path:
    path = folder / f"native-{rows}.csv"
    _native(rows).write_csv(path)
    return path


def _native_parquet(rows: int, folder: Path) -> Path:
    path = folder / f"native-{rows}.parquet"
    _native(rows).write_parquet(path)
    return path


TRACE_WRITERS: Mapping[str, tuple[str, Callable[[int, Path], Path]]] = {
    "philly CSV": ("philly", _philly_csv),
    "philly JSON": ("philly", _philly_json),
    "hyperdrive CSV": ("hyperdrive", _hyperdrive),
    "helios": ("helios", _helios),
    "acme": ("acme", _acme),
    "pai": ("pai", _pai),
    "native CSV": ("native", _native_csv),
    "native Parquet": ("native", _native_parquet),
}
"""Format, and how a file of so many rows is written, by the kind of file."""
