"""Replay a trace under two policies, and see who fares better or worse."""

# ruff: noqa: INP001, T201 - a script to read and run, which prints

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import themis

cluster = themis.Cluster.parse("2x(4x4)")  # 2 racks of 4 machines of 4 GPUs

with TemporaryDirectory() as folder:
    # A small synthetic trace, in the native format. Put the path of your own file here.
    themis.generate("demo", seed=1, apps=12, gpus=32).write(Path(folder) / "trace")
    workload = themis.read_trace(Path(folder) / "trace")

report = workload.check(cluster)
print(f"{report.apps} apps, {report.jobs} jobs, {report.gpu_s / 3600:,.0f} GPU-hours of work")
if report.load is not None:
    print(f"offered load on {cluster.gpus} GPUs: {report.load.load:.2f}")

results = {
    policy: themis.simulate(workload, cluster, policy=policy, seed=0, lease_s=600)
    for policy in ("fifo", "themis")
}

print()
print(f"{'':30}" + "".join(f"{policy:>10}" for policy in results))
for label, metric in (
    ("worst rho", "rho_max"),
    ("median rho", "rho_median"),
    ("mean app completion, s", "app_completion_mean_s"),
    ("makespan, s", "makespan_s"),
    ("useful share of GPU time", "useful_share"),
):
    figures = [result.summary()[metric] for result in results.values()]
    print(f"{label:30}" + "".join(f"{figure:10.4g}" for figure in figures))

print()
print("rho of each app, by arrival:")
both = zip(
    *(result.apps.select("app_id", "jobs", "rho").iter_rows() for result in results.values()),
    strict=True,
)
for (app, jobs, before), (_, _, after) in both:
    print(f"  {app}  {jobs:3} jobs  {before:6.2f} -> {after:5.2f}")

themis_run = results["themis"].summary()
print()
print(f"themis: {themis_run['auctions']} auctions, {themis_run['preemptions']} preemptions")
