"""Shanghai AI Lab's Acme (Hu et al., NSDI 2024): the Seren and Kalos clusters.

Times carry their offset. ``duration`` of Kalos includes the time in the queue, so the duration is
always end - start. Of several files, ids begin with the file's name.
"""

from __future__ import annotations

from themis.traces.table import Table
from themis.traces.tabular import table_reader

__all__ = ["READER"]

READER = table_reader(
    Table(
        name="acme",
        title="trace_seren.csv or trace_kalos.csv of Acme",
        known_by=("gpu_num", "node_num", "type", "state", "gpu_time"),
        job_id="job_id",
        submit="submit_time",
        start="start_time",
        end="end_time",
        stated="duration",
        gpus="gpu_num",
        user="user",
        status="state",
        host={"cpu_cores_per_gpu": ("cpu_num", 1.0)},
        idle=(
            *("node_num", "mem_per_pod_GB", "shared_mem_per_pod", "type"),
            *("fail_time", "stop_time", "queue", "gpu_time"),
        ),
    )
)
