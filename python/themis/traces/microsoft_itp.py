"""Microsoft's ITP clusters, as published with ElasticFlow (ASPLOS 2023): ten CSV files.

One file a cluster: of several, the file is the tenant and ids begin with it. There are no users and
no statuses. The extended files add random deadlines and batch sizes, which are not used.
"""

from __future__ import annotations

from themis.traces.table import Table
from themis.traces.tabular import table_reader

__all__ = ["READER"]

READER = table_reader(
    Table(
        name="microsoft-itp",
        title="jobs of a Microsoft ITP cluster",
        known_by=("job_id", "submission_time", "duration", "num_gpu"),
        job_id="job_id",
        submit="submission_time",
        duration="duration",
        gpus="num_gpu",
        profile="model_name",
        unit="s",
        idle=("num_iteration", "deadline", "batch_size"),
    )
)
