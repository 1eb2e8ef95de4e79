"""The HyperDrive CSV of the paper's authors."""

from __future__ import annotations

from pathlib import Path

import pytest

from themis.errors import TraceError
from themis.traces import read_trace

DATA = Path(__file__).parents[1] / "data"
HEADER = "experiment-id,job-id,start-time,run-time,num-gpus\n"


def test_experiments_are_apps_that_arrive_whole() -> None:
    workload = read_trace(DATA / "hyperdrive.csv")
    assert workload.source.format == "hyperdrive"
    assert workload.source.origin == "2018-06-15T00:00:00"
    arrival = 86_400.0 + 4 * 3600 + 48 * 60 + 1
    assert workload.apps.select("app_id", "arrival_s", "stopping").rows() == [
        ("9", 0.0, "all"),
        ("7", arrival, "all"),
    ]
    assert workload.jobs.select("job_id", "submit_s", "serial_time_s", "gang_size").rows() == [
        ("job_c", 0.0, 80.0, 8),
        ("job_a", arrival, 50.5, 1),
        ("job_b", arrival, 100.0, 1),
        ("job_d", arrival, 0.0, 1),
    ]
    assert workload.source.report is not None
    assert any("not when it was asked for" in note for note in workload.source.report.notes)


def test_jobs_at_start_keeps_each_start() -> None:
    workload = read_trace(DATA / "hyperdrive.csv", "hyperdrive", jobs_at="start")
    first = 86_400.0 + 4 * 3600 + 48 * 60 + 1
    assert workload.jobs["submit_s"].to_list() == [0.0, first, first + 228.0, first + 719.0]
    assert workload.apps["arrival_s"].to_list() == [0.0, first]


def test_wrong_choice_is_named() -> None:
    with pytest.raises(TraceError, match="option jobs_at is 'end': expected one of arrival, start"):
        read_trace(DATA / "hyperdrive.csv", jobs_at="end")


def test_unusable_rows_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text(
        HEADER
        + "1, a, 2018-06-16 04:51:49, 100, 1\n"
        + ", b, 2018-06-16 04:51:49, 100, 1\n"
        + "1, , 2018-06-16 04:51:49, 100, 1\n"
        + "1, c, yesterday, 100, 1\n"
        + "1, d, 2018-06-16 04:51:49, -100, 1\n"
        + "1, e, 2018-06-16 04:51:49, 100, 0.5\n"
        + "1, a, 2018-06-16 04:51:49, 100, 1\n"
        + "1, a, 2018-06-16 04:51:50, 100, 1\n"
    )
    workload = read_trace(path)
    assert workload.jobs["job_id"].to_list() == ["a"]
    assert workload.source.report is not None
    assert workload.source.report.rejected.rows() == [
        (3, "missing value", "experiment-id", None),
        (4, "missing value", "job-id", None),
        (5, "unreadable time", "start-time", "yesterday"),
        (6, "negative duration", "run-time", "-100"),
        (7, "fraction of a GPU", "num-gpus", "0.5"),
        (8, "repeated row", "job_id", "1/a"),
        (9, "conflicting id", "job_id", "1/a"),
    ]


def test_ids_are_those_of_an_experiment(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text(HEADER + "".join(f"{e}, a, 2018-06-16 04:51:49, 100, 1\n" for e in (1, 2)))
    workload = read_trace(path)
    assert workload.jobs.select("job_id", "app_id").rows() == [("1/a", "1"), ("2/a", "2")]
    assert workload.source.report is not None
    assert workload.source.report.problems == ()
    assert "experiments share job-ids" in workload.source.report.notes[0]


def test_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("experiment-id,job-id,start-time,num-gpus\n1,a,2018-06-16 04:51:49,1\n")
    with pytest.raises(TraceError, match=r"h\.csv: column 'run-time' is missing: found .*num-gpus"):
        read_trace(path)
