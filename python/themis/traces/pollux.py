"""Workloads of the Pollux and Sia simulators (OSDI 2021, SOSP 2023): applications, not durations.

Columns: name, time (seconds), application, num_replicas (GPUs), batch_size. What an application
has to do stands in profiles that the simulators keep elsewhere. Their authors drew each from jobs
of Philly by GPU time: below 1, 10, 100 or 1000 GPU-hours. Without better figures (option
`gpu_hours`) a job has the geometric middle of its class. The application is the placement profile.

Options
-------
gpu_hours
    GPU-hours of each application: a mapping, or text such as ``"bert=2.5,imagenet=400"``;
    applications that it does not name keep the assumed figure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from themis.errors import TraceError
from themis.traces.reader import Input, Reader, positive
from themis.traces.rows import Floats, RowChecks
from themis.traces.table import Duration, Table
from themis.traces.tabular import read_table
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_SMALL, _MEDIUM, _LARGE, _HUGE = 0.32, 3.2, 32.0, 320.0
_ASSUMED = {
    "cifar10": _SMALL,
    "ncf": _SMALL,
    "deepspeech2": _MEDIUM,
    "bert": _MEDIUM,
    "yolov3": _LARGE,
    "imagenet": _HUGE,
}
_NAMES = ("name", "time", "application", "num_replicas")


def recognise(source: Input) -> str | None:
    """By the columns that no other format has."""
    if source.kind != "csv" or not set(_NAMES) <= set(source.columns):
        return None
    return f"CSV with {', '.join(_NAMES)}"


def read(
    source: Input, about: TraceSource, *, gpu_hours: object = None, unit: object = "s"
) -> Workload:
    """Read workloads; the module says what the options mean."""
    given = _given(source.name, gpu_hours)
    table = Table(
        name="pollux",
        title="workload of the Pollux simulator",
        known_by=_NAMES,
        job_id="name",
        submit="time",
        duration=_duration({**_ASSUMED, **given}),
        gpus="num_replicas",
        profile="application",
        also=("application",),
        unit="s",
        idle=("batch_size",),
    )
    assumed = [name for name in _ASSUMED if name not in given]
    figures = ", ".join(f"{name} {_ASSUMED[name]:.3g}" for name in assumed)
    note = f"GPU-hours are assumed, as the file has none: {figures} (option gpu_hours)"
    return read_table(table, source, about, {"unit": unit}, notes=(note,) if assumed else ())


def _given(name: str, gpu_hours: object) -> dict[str, float]:
    if gpu_hours is None:
        return {}
    pairs: Mapping[object, object] = {}
    if isinstance(gpu_hours, Mapping):
        pairs = gpu_hours
    elif isinstance(gpu_hours, str):
        halves = (text.partition("=") for text in gpu_hours.split(","))
        pairs = {key.strip(): _number(value) for key, _, value in halves}
    if not pairs:
        raise TraceError(
            f"{name}: option gpu_hours is {gpu_hours!r}: expected text such as 'bert=2.5'"
        )
    return {
        str(application): positive(name, f"gpu_hours of {application}", hours)
        for application, hours in pairs.items()
    }


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _duration(gpu_hours: Mapping[str, float]) -> Duration:
    def duration_s(checks: RowChecks, gpus: Floats) -> Floats:
        application = checks.text("application", required=True)
        hours = application.replace_strict(gpu_hours, default=None, return_dtype=pl.Float64)
        checks.reject(hours.is_null().to_numpy(), "application of unknown GPU-hours", "application")
        found: Floats = hours.fill_null(np.nan).to_numpy() * 3600 / np.maximum(gpus, 1)
        return found

    return duration_s


READER = Reader(
    name="pollux",
    expects=f"CSV with {', '.join(_NAMES)} (workload of the Pollux simulator)",
    recognise=recognise,
    read=read,
    options=("gpu_hours", "unit"),
    several=True,
)
