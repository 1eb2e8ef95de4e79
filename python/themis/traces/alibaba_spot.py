"""Alibaba cluster-trace-v2026-spot-gpu (ASPLOS 2026): jobs with guaranteed and spot GPUs.

``gpu_request`` is for each of ``worker_num`` workers and may be a fraction. Jobs at time 0 ran
already when the trace began, and durations stop at its length (15,897,599 s). There are no users:
the organization is the tenant. Names are numbers of jobs.
"""

from __future__ import annotations

from themis.traces.table import Table
from themis.traces.tabular import table_reader

__all__ = ["READER"]

READER = table_reader(
    Table(
        name="alibaba-spot",
        title="job_info_df.csv of Alibaba's spot trace",
        known_by=("organization", "gpu_request", "worker_num"),
        job_id="job_name",
        submit="submit_time",
        duration="duration",
        gpus="worker_num",
        gpus_each="gpu_request",
        tenant="organization",
        gpu_types="gpu_model",
        unit="s",
        host={"cpu_cores_per_gpu": ("cpu_request", 1.0)},
        host_each=True,
        idle=("job_type",),
    )
)
