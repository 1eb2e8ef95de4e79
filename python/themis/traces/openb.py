"""Alibaba cluster-trace-gpu-v2023 (Weng et al., ATC 2023): pods that may share GPUs.

A pod takes ``gpu_milli`` thousandths of each of ``num_gpu`` GPUs, from ``scheduled_time`` to
``deletion_time``. There are no users: the service class ``qos`` is the tenant. ``pod_phase`` is a
snapshot: most pods that say ``Running`` have an end all the same.

Options
-------
fractions, host
    As in :func:`themis.traces.tabular.read_table`.
duration_s
    Seconds that every pod runs, all submitted at 0: only for the lists without times
    (``openb_pod_list_multigpu20`` and so on), which cannot be read without it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from themis.errors import TraceError
from themis.traces.reader import Input, Reader, positive
from themis.traces.rows import Floats, RowChecks
from themis.traces.table import Duration, Table
from themis.traces.tabular import read_table
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_TABLE = Table(
    name="openb",
    title="pod list of Alibaba's trace of 2023",
    known_by=("name", "cpu_milli", "num_gpu", "gpu_milli"),
    job_id="name",
    submit="creation_time",
    start="scheduled_time",
    end="deletion_time",
    gpus="num_gpu",
    gpus_each="gpu_milli",
    each_unit=1e-3,
    tenant="qos",
    gpu_types="gpu_spec",
    status="pod_phase",
    unit="s",
    host={
        "cpu_cores_per_gpu": ("cpu_milli", 1e-3),
        "memory_gib_per_gpu": ("memory_mib", 1 / 1024),
    },
)


def read(
    source: Input, about: TraceSource, *, duration_s: object = None, **options: object
) -> Workload:
    """Read pod lists; the module says what the options mean."""
    if duration_s is None:
        if source.kind == "csv" and _TABLE.submit not in source.columns:
            raise TraceError(
                f"{source.name}: a pod list without times: give option duration_s, the seconds "
                "that every pod runs from time 0"
            )
        return read_table(_TABLE, source, about, options)
    seconds = positive(source.name, "duration_s", duration_s)
    table = replace(_TABLE, submit=None, start=None, end=None, duration=_always(seconds))
    note = f"every pod is submitted at 0 and runs {seconds:g} s, as option duration_s says"
    return read_table(table, source, about, options, notes=(note,))


def _always(seconds: float) -> Duration:
    def duration_s(checks: RowChecks, _gpus: Floats) -> Floats:
        return np.full(checks.frame.height, seconds)

    return duration_s


READER = Reader(
    name=_TABLE.name,
    expects=f"CSV with {', '.join(_TABLE.known_by)} ({_TABLE.title})",
    recognise=_TABLE.recognise,
    read=read,
    options=(*_TABLE.options, "duration_s"),
    several=True,
)
