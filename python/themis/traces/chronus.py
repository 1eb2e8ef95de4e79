"""Workloads of the Chronus simulator (Gao et al., SoCC 2021): those of Tiresias in minutes.

``user`` is a virtual cluster of Philly (``vc_...``). Deadlines and values are not used.
"""

from __future__ import annotations

from dataclasses import replace

from themis.traces.tabular import table_reader
from themis.traces.tiresias import TABLE

__all__ = ["READER"]

READER = table_reader(
    replace(
        TABLE,
        name="chronus",
        title="workload of the Chronus simulator",
        known_by=("num_gpu", "submit_time", "expect_time_list", "best_effort"),
        user="user",
        unit="min",
        idle=(
            *("iterations", "interval"),
            *("expect_time_list", "expect_value_list", "best_effort", "job_type"),
        ),
    )
)
