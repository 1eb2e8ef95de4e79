"""Make the paper's first workload, and see how its apps fare under four policies."""

# ruff: noqa: INP001, T201 - a script to read and run, which prints

from __future__ import annotations

import themis

cluster = themis.Cluster.preset("nsdi20-testbed")
workload = themis.generate("nsdi20-w1", seed=0)
print(f"{workload.apps.height} apps, {workload.jobs.height} jobs, {cluster.gpus} GPUs")

print(f"{'':10}{'worst rho':>10}{'median rho':>12}{'Jain':>8}{'GPU-hours':>11}")
for policy in ("themis", "tiresias", "gandiva", "srtf"):
    result = themis.simulate(workload, cluster, policy=policy, seed=0)
    figures = result.summary()
    rho, median, jain = (figures[name] for name in ("rho_max", "rho_median", "jain"))
    hours = figures["gpu_s"] / 3600
    print(f"{policy:10}{rho:10.3f}{median:12.3f}{jain:8.3f}{hours:11.0f}")
