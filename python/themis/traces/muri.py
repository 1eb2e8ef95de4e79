"""Workloads of the Muri simulator (Zhao et al., SIGCOMM 2022): as Tiresias, in milliseconds."""

from __future__ import annotations

from dataclasses import replace

from themis.traces.tabular import table_reader
from themis.traces.tiresias import TABLE

__all__ = ["READER"]

READER = table_reader(
    replace(
        TABLE,
        name="muri",
        title="workload of the Muri simulator",
        known_by=("num_gpu", "submit_time", "iteration_time", "resource_time_0"),
        unit="ms",
        idle=(
            *("iterations", "interval", "batch_size", "iteration_time", "priority"),
            *(f"resource_time_{resource}" for resource in range(4)),
        ),
    )
)
