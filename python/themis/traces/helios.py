"""SenseTime Helios (Hu et al., SC 2021): four Slurm clusters, one CSV of jobs each.

``gpu_num`` is the whole gang. Times are local without a zone (UTC+8). The duration is end - start.
Ids are unique in one cluster only: of several files, ids begin with the cluster's folder. More
than half of the jobs take no GPU.
"""

from __future__ import annotations

from themis.traces.table import Table
from themis.traces.tabular import table_reader

__all__ = ["READER"]

READER = table_reader(
    Table(
        name="helios",
        title="cluster log of Helios",
        known_by=("vc", "gpu_num", "node_num", "state", "submit_time"),
        job_id="job_id",
        submit="submit_time",
        start="start_time",
        end="end_time",
        stated="duration",
        gpus="gpu_num",
        user="user",
        tenant="vc",
        status="state",
        host={"cpu_cores_per_gpu": ("cpu_num", 1.0)},
        idle=("node_num", "queue"),
    )
)
