"""The real trace files, where THEMIS_TRACES names the folder that holds them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from themis.errors import ClusterError, TraceError
from themis.traces import read_trace
from themis.traces.capacity_tables import read_capacity
from themis.traces.check import check_trace
from themis.traces.machine_lists import read_cluster

pytestmark = pytest.mark.traces


@pytest.fixture
def traces() -> Path:
    folder = os.environ.get("THEMIS_TRACES")
    if not folder:
        pytest.skip("THEMIS_TRACES names no folder of traces")
    return Path(folder)


def test_pollux_derived_philly(traces: Path) -> None:
    workload = read_trace(traces / "philly" / "philly.pollux.csv.gz")
    report = workload.source.report
    assert report is not None
    assert workload.jobs.height == 82_247
    assert report.rejected.rows() == [(82_249, "empty line", "", None)]
    assert workload.gpu_seconds == 3_521_082_502.0
    assert workload.apps["tenant"].n_unique() == 15
    assert workload.jobs["submit_s"].max() == 9_408_690.0


def test_official_philly_examples(traces: Path) -> None:
    path = traces / "philly" / "cluster_job_log.examples.json"
    workload = read_trace(path)
    assert workload.jobs.select("gang_size", "serial_time_s").rows() == [
        (8, 1_546_048.0),
        (1, 43.0),
    ]
    assert workload.source.report is not None
    assert workload.source.report.rejected["reason"].to_list() == ["never scheduled"]
    span = read_trace(path, duration="span")
    assert span.jobs["serial_time_s"].to_list() == [193_263.0 * 8, 469.0]


def test_hyperdrive(traces: Path) -> None:
    path = traces / "themis-hyperdrive" / "philly_hyperdrive_workload.csv"
    workload = read_trace(path)
    assert (workload.apps.height, workload.jobs.height) == (84, 4_697)
    assert workload.gpu_seconds == 70_522_784.0
    report = check_trace(path)
    assert (report.rows, report.rejected) == (4_697, 0)
    assert report.gangs == ((1, 4_673), (4, 4), (8, 20))
    assert [(p.name, p.count, p.lines) for p in report.problems] == [("no work", 2, (1173, 3498))]


FIGURES: dict[str, tuple[dict[str, Any], int, int, dict[int, int]]] = {
    "acme/trace_kalos.examples.csv": ({}, 2, 2, {64: 2}),
    "acme/trace_seren.examples.csv": ({}, 2, 2, {8: 2}),
    "acme": ({}, 4, 4, {8: 2, 64: 2}),
    "helios/cluster_log.examples.csv": ({}, 3, 3, {1: 2, 4: 1}),
    "alibaba-gpu-v2023/openb_pod_list_default.csv": ({}, 8_152, 7_255, {0: 1_052, 8: 44}),
    "alibaba-gpu-v2023/openb_pod_list_multigpu50.csv": (
        {"duration_s": 60},
        9_061,
        9_061,
        {0: 1_088, 8: 556},
    ),
    "alibaba-pai-2020/pai_instance_table.tail-recovered.csv.gz": (
        {"gpus_per_instance": 1},
        28_266,
        4_164,
        {1: 2_943},
    ),
    "alibaba-pai-2020/pai_task_table.example.csv": ({}, 1, 1, {1: 1}),
    "alibaba-spot-v2026/job_info_df.examples.csv": ({}, 4, 4, {1: 2, 16: 1, 94: 1}),
    "chronus/trace_job_Philly_SLO.csv.gz": ({}, 30_940, 30_940, {0: 205, 1: 28_319}),
    "gavel/msr_seed0_0e4a51.trace.gz": ({}, 1_181, 1_181, {1: 436, 2: 226, 4: 451, 8: 68}),
    "gavel/msr_seed0_51b7ef.trace": ({}, 18, 18, {1: 3, 4: 2, 8: 13}),
    "gavel/physical_max_min_fairness.trace": ({}, 96, 96, {1: 59, 2: 19, 4: 18}),
    "gavel/physical_small_test.trace": ({}, 20, 20, {1: 17, 2: 3}),
    "shockwave": ({}, 120, 120, {1: 92, 2: 20, 4: 8}),
    "microsoft-itp-2021": ({}, 69_351, 69_351, {1: 57_682, 64: 71}),
    "microsoft-itp-2021/raw-traces.tar.gz": ({}, 69_351, 69_351, {1: 57_682, 64: 71}),
    "pollux": ({}, 320, 320, {1: 300, 16: 1}),
    "tiresias/60_job.csv": ({}, 60, 60, {1: 30, 2: 10, 4: 10, 8: 10}),
    "tiresias/tf_job.csv": ({}, 2, 1, {12: 1}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_counts_are_those_of_the_formats(traces: Path, name: str) -> None:
    options, rows, jobs, gangs = FIGURES[name]
    report = check_trace(traces / name, **options)
    assert (report.rows, report.jobs_read) == (rows, jobs)
    assert report.rows == report.jobs_read + report.rejected
    assert gangs.items() <= dict(report.gangs).items()


@pytest.mark.parametrize(
    ("name", "machines", "gpus"),
    [
        ("alibaba-gpu-v2023/openb_node_list_all_node.csv", 1_213, 6_212),
        ("alibaba-pai-2020/pai_machine_spec.csv", 1_897 - 83, 6_742),
        ("alibaba-spot-v2026/node_info_df.csv", 4_278, 10_412),
        ("helios/Venus/cluster_gpu_number.csv", 158, 1_264),
        ("philly/cluster_machine_list.example.csv", 1, 8),
        ("tiresias/cluster_spec.csv", 16, 64),
        ("tiresias/n32g4.csv", 32, 128),
    ],
)
def test_machine_lists(traces: Path, name: str, machines: int, gpus: int) -> None:
    cluster = read_cluster(traces / name)
    assert (cluster.machines.height, cluster.gpus) == (machines, gpus)


def test_capacity_of_venus(traces: Path) -> None:
    frame = read_capacity(traces / "helios" / "Venus" / "cluster_gpu_number.csv")
    first = frame.filter(frame["at_s"] == 0.0)
    assert first["gpus"].sum() == 968


def test_every_file_is_a_trace_a_cluster_or_says_what_it_is_not(traces: Path) -> None:
    """Files that are neither are tables of figures, usage samples, settings and headers."""
    others = set()
    for path in sorted(path for path in traces.rglob("*") if path.is_file()):
        for read in (read_cluster, read_trace):
            try:
                read(path)
                break
            except (TraceError, ClusterError) as error:
                assert path.name in str(error)  # noqa: PT017 - every one of many files
        else:
            others.add(str(path.relative_to(traces)))
    assert {name for name in others if not name.endswith((".header", ".md"))} == {
        "acme/cluster_summary.csv",
        "alibaba-gpu-v2023/openb_pod_list_multigpu50.csv",
        "alibaba-pai-2020/pai_group_tag_table.example.csv",
        "alibaba-pai-2020/pai_instance_table.example.csv",
        "alibaba-pai-2020/pai_instance_table.tail-recovered.csv.gz",
        "alibaba-pai-2020/pai_job_table.example.csv",
        "gavel/cluster_specs.json",
        "philly/cluster_gpu_util.example.csv",
        "shockwave/tacc_32gpus.json",
    }
