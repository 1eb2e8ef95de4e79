"""Philly: the official job log and the Pollux-derived CSV."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from themis.errors import TraceError
from themis.traces import read_trace
from themis.workload.workload import Workload

DATA = Path(__file__).parents[1] / "data"
HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"


def pollux(folder: Path, *rows: str) -> Workload:
    path = folder / "trace.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return read_trace(path, "philly")


def job_log(folder: Path, *entries: object, **options: object) -> Workload:
    path = folder / "cluster_job_log"
    path.write_text(json.dumps(entries))
    return read_trace(path, "philly", **options)


def entry(name: str, *times: tuple[str | None, str | None], **other: object) -> dict[str, object]:
    attempts = [
        {"start_time": start, "end_time": end, "detail": [{"ip": "m", "gpus": ["gpu0"]}]}
        for start, end in times
    ]
    return {
        "status": "Pass",
        "vc": "v",
        "jobid": name,
        "user": "u",
        "submitted_time": "2017-10-07 00:00:00",
        "attempts": attempts,
        **other,
    }


def rejected(workload: Workload) -> list[tuple[object, ...]]:
    assert workload.source.report is not None
    return workload.source.report.rejected.rows()


def test_pollux_csv_keeps_every_job_and_names_the_empty_line() -> None:
    workload = read_trace(DATA / "philly_pollux.csv", "philly")
    assert rejected(workload) == [(4, "empty line", "", None)]
    report = workload.source.report
    assert report is not None
    assert (report.rows, report.jobs) == (6, 5)
    assert [(p.name, p.count, p.lines, p.rejected) for p in report.problems] == [
        ("empty line", 1, (4,), True),
        ("no GPU", 1, (6,), False),
        ("no work", 1, (7,), False),
    ]
    assert workload.source.origin == "2017-10-09T06:00:00"
    assert workload.jobs.select("job_id", "submit_s", "serial_time_s", "gang_size").rows() == [
        ("philly-000001", 0.0, 1200.0, 4),
        ("philly-000002", 0.0, 1200.0, 4),
        ("philly-000003", 1.0, 10.0, 0),
        ("philly-000004", 1800.0, 0.0, 2),
        ("philly-000005", 3600.0, 60.0, 1),
    ]
    assert workload.apps["tenant"].to_list() == ["vc-a", "vc-a", "vc-a", "vc-b", "vc-b"]
    assert workload.apps["user"].null_count() == 5
    assert workload.gpu_seconds == 2460.0


@pytest.mark.parametrize(
    ("cells", "reason", "column"),
    [
        ("nonsense,60,1,60,v", "unreadable time", "timestamp"),
        ("2017-13-40 00:00:00,60,1,60,v", "unreadable time", "timestamp"),
        ("None,60,1,60,v", "missing value", "timestamp"),
        ("2017-10-09 07:00:00,-1,1,60,v", "negative duration", "duration"),
        ("2017-10-09 07:00:00,NA,1,60,v", "missing value", "duration"),
        ("2017-10-09 07:00:00,nan,1,60,v", "not a finite number", "duration"),
        ("2017-10-09 07:00:00,1e19,1,60,v", "number too large", "duration"),
        ("2017-10-09 07:00:00,60,2.5,150,v", "fraction of a GPU", "num_gpus"),
        ("2017-10-09 07:00:00,60,-1,60,v", "negative number of GPUs", "num_gpus"),
        ("2017-10-09 07:00:00,60,1e19,60,v", "number too large", "num_gpus"),
        ("2017-10-09 07:00:00,60,inf,60,v", "not a finite number", "num_gpus"),
        ("2017-10-09 07:00:00,60,one,60,v", "not a number", "num_gpus"),
        ("2017-10-09 07:00:00,60,,60,v", "missing value", "num_gpus"),
        ("2017-10-09 07:00:00,60,1,60,v,w", "too many fields", ""),
        ("2017-10-09 07:00:00,60", "too few fields", ""),
        ("timestamp,duration,num_gpus,gpu_time,cluster", "repeated header", ""),
        ("", "empty line", ""),
        ("   ", "empty line", ""),
        ("2017-10-09 07:00:00,9e10,1000,0,v", "too much work", "duration"),
    ],
)
def test_unusable_row_is_reported_with_its_line_and_value(
    tmp_path: Path, cells: str, reason: str, column: str
) -> None:
    good = "2017-10-09 07:00:00,60,1,60,v"
    workload = pollux(tmp_path, good, cells, good)
    assert workload.jobs.height == 2
    [(line, found_reason, found_column, value)] = rejected(workload)
    assert (line, found_reason, found_column) == (3, reason, column)
    if column:
        index = HEADER.strip().split(",").index(column)
        assert value == (cells.split(",")[index] or None)
    assert workload.gpu_seconds == 120.0


def test_offsets_are_honoured(tmp_path: Path) -> None:
    workload = pollux(
        tmp_path,
        "2017-10-09 08:00:00+08:00,1,1,1,a",
        "2017-10-09T00:00:30Z,1,1,1,b",
        "2017-10-09 00:01:00.250,1,1,1,c",
    )
    assert workload.jobs["submit_s"].to_list() == [0.0, 30.0, 60.25]
    assert workload.source.origin == "2017-10-09T00:00:00+00:00"
    assert workload.source.report is not None
    assert "1 time stamps without a zone offset were taken as UTC" in workload.source.report.notes


def test_lying_gpu_time_is_noted_and_not_used(tmp_path: Path) -> None:
    workload = pollux(tmp_path, "2017-10-09 07:00:00,60,2,999,v")
    assert workload.gpu_seconds == 120.0
    assert workload.source.report is not None
    assert any("gpu_time differs" in note for note in workload.source.report.notes)


def test_job_log_adds_up_attempts_by_default() -> None:
    workload = read_trace(DATA / "philly_log.json")
    assert workload.source.recognised == "JSON with jobid, attempts, submitted_time"
    assert workload.jobs.select(
        "job_id", "submit_s", "serial_time_s", "gang_size", "status"
    ).rows() == [
        ("job_0001", 0.0, (60.0 + 120.0) * 3, 3, "completed"),
        ("job_0002", 3600.0, 30.0, 1, "cancelled"),
        ("job_0005", 14400.0, 0.0, 1, "unknown"),
    ]
    assert workload.apps["user"].to_list() == ["u1", "u2", None]
    assert workload.apps["tenant"].to_list() == ["vc-a", "vc-b", "vc-b"]
    assert rejected(workload) == [
        (3, "never scheduled", "attempts", "job_0003"),
        (4, "still running at the snapshot", "attempts", "job_0004"),
    ]
    assert workload.source.report is not None
    kept = {p.name: (p.count, p.lines, p.values) for p in workload.source.report.problems}
    assert kept["unknown status"] == (1, (5,), ("Suspended",))
    assert kept["attempt without both times"] == (1, (2,), ())


def test_job_log_span_counts_the_gaps() -> None:
    workload = read_trace(DATA / "philly_log.json", duration="span")
    assert workload.jobs["serial_time_s"].to_list() == [410.0 * 3, 1200.0, 0.0]


def test_compressed_job_log_reads_equal(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress((DATA / "philly_log.json").read_bytes()))
    assert read_trace(path, "philly").equals(read_trace(DATA / "philly_log.json"))


def test_repeated_hour_is_resolved_by_the_zone(tmp_path: Path) -> None:
    one = entry("a", ("2017-11-05 01:50:00", "2017-11-05 01:10:00"))
    with pytest.raises(TraceError, match="end before start"):
        job_log(tmp_path, one)
    workload = job_log(tmp_path, one, timezone="America/Los_Angeles")
    assert workload.jobs["serial_time_s"].to_list() == [1200.0]
    assert workload.source.report is not None
    assert any("shows twice" in note for note in workload.source.report.notes)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("x", (None, None)), "still running at the snapshot"),
        (entry("x", (None, "2017-10-07 01:00:00")), "no attempt with both times"),
        (entry("x", ("soon", "2017-10-07 01:00:00")), "unreadable time"),
        (entry("x", ("2017-10-07 02:00:00", "2017-10-07 01:00:00")), "end before start"),
        (entry("x"), "never scheduled"),
        (entry("x", attempts=None), "never scheduled"),
        (entry("x", attempts="many"), "malformed entry"),
        (entry("x", attempts=[{"detail": 3}]), "malformed entry"),
        (entry("x", submitted_time="None"), "missing value"),
        (entry("", ("2017-10-07 01:00:00", "2017-10-07 01:00:09")), "missing value"),
        (
            entry(
                "x",
                attempts=[
                    {
                        "start_time": "2017-10-07 01:00:00",
                        "end_time": "2017-10-07 01:00:09",
                        "detail": [],
                    }
                ],
            ),
            "no GPUs recorded",
        ),
        (17, "malformed entry"),
        (None, "malformed entry"),
    ],
)
def test_unusable_entry_is_reported_by_number(tmp_path: Path, bad: object, reason: str) -> None:
    good = entry("good", ("2017-10-07 00:00:00", "2017-10-07 00:00:05"))
    workload = job_log(tmp_path, good, bad)
    assert [(row[0], row[1]) for row in rejected(workload)] == [(2, reason)]
    assert workload.jobs["serial_time_s"].to_list() == [5.0]


def test_same_id_twice(tmp_path: Path) -> None:
    one = entry("a", ("2017-10-07 00:00:00", "2017-10-07 00:00:05"))
    other = entry("a", ("2017-10-07 00:00:00", "2017-10-07 00:00:09"))
    workload = job_log(tmp_path, other, one, one)
    assert workload.jobs["serial_time_s"].to_list() == [5.0]
    assert rejected(workload) == [
        (1, "conflicting id", "job_id", "a"),
        (3, "repeated row", "job_id", "a"),
    ]
    assert workload.source.report is not None
    assert workload.source.report.gpu_s_rows == 19.0
    assert workload.equals(job_log(tmp_path, one, other, one))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"jobid": "a", "attempts": []},\n {"jobid": }]', "line 2, column 12: malformed JSON"),
        ('[{"jobid": "a", "attempts": [', "malformed JSON"),
        ('{"jobid": "a", "attempts": []}', "a JSON dict: expected an array"),
        ("[]", "an empty JSON array"),
        ('[{"jobid": "a", "attempts": []}]', "none of the 1 rows can be used"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_bad_job_log_is_one_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=r"log\.json") as caught:
        read_trace(path, "philly")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="option duration is 'sum': expected one of attempts"):
        job_log(tmp_path, entry("a"), duration="sum")
    with pytest.raises(TraceError, match="option timezone is 'Mars/Crater'"):
        job_log(tmp_path, entry("a"), timezone="Mars/Crater")
    with pytest.raises(TraceError, match=r"no option 'timezon' \(did you mean 'timezone'\?\)"):
        job_log(tmp_path, entry("a"), timezon="UTC")


def test_years_outside_the_calendar_are_unreadable(tmp_path: Path) -> None:
    rows = [f"{year}-12-31 23:00:00{zone},1,1,1,v" for year, zone in (
        ("0000", ""), ("0001", ""), ("2017", ""), ("9999", "-08:00"),
    )]  # fmt: skip
    workload = pollux(tmp_path, *rows)
    assert workload.source.report is not None
    assert [row[:3] for row in workload.source.report.rejected.rows()] == [
        (2, "unreadable time", "timestamp"),
        (5, "unreadable time", "timestamp"),
    ]
    assert workload.source.origin == "0001-12-31T23:00:00+00:00"


@pytest.mark.parametrize("gpus", [8, "gpu0", {"0": "gpu0"}])
def test_gpus_that_are_no_list_are_malformed(tmp_path: Path, gpus: object) -> None:
    time = "2017-10-03 00:00:00"
    attempt = {"start_time": time, "end_time": time, "detail": [{"ip": "m", "gpus": gpus}]}
    good = entry("good", ("2017-10-03 00:00:00", "2017-10-03 00:01:00"))
    workload = job_log(tmp_path, {**good, "jobid": "odd", "attempts": [attempt]}, good)
    assert workload.jobs["job_id"].to_list() == ["good"]
    assert workload.source.report is not None
    assert [row[:2] for row in workload.source.report.rejected.rows()] == [(1, "malformed entry")]
