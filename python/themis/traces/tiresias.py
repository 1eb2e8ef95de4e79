"""Workloads of the Tiresias simulator (Gu et al., NSDI 2019), in seconds.

``interval`` is the gap to the next job and not used. The model's name is the placement profile.
The older header (``tf_job.csv``) has a start time and no iterations; the start is not used either.
"""

from __future__ import annotations

from themis.traces.table import Table
from themis.traces.tabular import table_reader

__all__ = ["READER", "TABLE"]

TABLE = Table(
    name="tiresias",
    title="workload of the Tiresias simulator",
    known_by=("job_id", "num_gpu", "submit_time", "duration", "model_name"),
    job_id="job_id",
    submit="submit_time",
    duration="duration",
    gpus="num_gpu",
    profile="model_name",
    unit="s",
    idle=(
        *("iterations", "interval"),
        *("start_time", "model_size", "aggr_interval", "model_scale"),
    ),
)
"""The columns of Tiresias, which other simulators took over."""

READER = table_reader(TABLE)
