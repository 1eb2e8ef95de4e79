"""The real trace files, where THEMIS_TRACES names the folder that holds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from themis.check import check_trace
from themis.traces import read_trace

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
