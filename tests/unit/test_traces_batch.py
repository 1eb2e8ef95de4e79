"""Logs of batch systems: Slurm's sacct and the Standard Workload Format."""

from __future__ import annotations

from pathlib import Path

import pytest

from themis.errors import TraceError
from themis.traces import read_trace
from themis.workload.workload import Workload

DATA = Path(__file__).parents[1] / "data" / "traces"
DAY_S = 86_400.0


def jobs(workload: Workload, *columns: str) -> list[tuple[object, ...]]:
    return workload.jobs.select("job_id", "submit_s", "serial_time_s", "gang_size", *columns).rows()


def left_out(workload: Workload) -> list[tuple[object, ...]]:
    assert workload.source.report is not None
    return workload.source.report.rejected.rows()


def test_slurm_jobs_steps_arrays_and_attempts() -> None:
    workload = read_trace(DATA / "sacct.txt")
    assert workload.source.recognised == "text between bars with JobID, Submit, State"
    assert workload.source.origin == "2024-05-01T07:00:00"
    assert jobs(workload, "status", "app_id") == [
        ("70006", 0.0, 3600.0, 0, "failed", "70006"),
        ("70001", 3600.0, (DAY_S + 3661) * 4, 4, "completed", "70001"),
        ("70002", 3600.0, 130.0 * 4, 4, "completed", "70002"),
        ("70003", 3600.0, 130.0 * 2, 2, "completed", "70003"),
        ("70004_1", 7200.0, 10.0, 1, "failed", "70004"),
        ("70004_2", 7200.0, 20.5, 1, "cancelled", "70004"),
        ("70008+0", 7200.0, 1800.0, 3, "completed", "70008"),
        ("70006#2", 8 * DAY_S, 3600.0, 0, "failed", "70006#2"),
    ]
    assert left_out(workload) == [
        (3, "job step", "JobID", "70001.batch"),
        (4, "job step", "JobID", "70001.0"),
        (5, "earlier attempt", "job_id", "70002"),
        (7, "earlier attempt", "job_id", "70003"),
        (11, "never scheduled", "JobID", "70004_[3-9]"),
        (12, "still running at the end", "Start", "2024-05-01T09:30:00"),
        (15, "unreadable duration", "Elapsed", "ten minutes"),
    ]
    apps = workload.apps.select("app_id", "user", "tenant", "gpu_types").rows()
    assert ("70001", "ann", "lab", "a100") in apps
    assert ("70004", "cai", "gpu", None) in apps
    assert ("70008", "eve", "lab", "a100|v100") in apps
    report = workload.source.report
    assert report is not None
    running_gpu_s = 36_000.0
    assert report.gpu_s_rows == report.gpu_s_jobs + running_gpu_s
    assert report.gpu_s_jobs == workload.gpu_seconds
    assert any("'70006': the id was used again" in note for note in report.notes)


def test_the_same_row_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "twice.txt"
    lines = (DATA / "sacct.txt").read_text().splitlines(keepends=True)
    path.write_text("".join(lines + lines[5:8] + lines[1:2]))
    workload = read_trace(path)
    assert workload.equals(read_trace(DATA / "sacct.txt"))
    again = [row for row in left_out(workload) if row[1] == "repeated row"]
    assert [row[3] for row in again] == ["70002", "70003", "70003", "70001"]


def test_sacct_without_header_needs_the_names(tmp_path: Path) -> None:
    path = tmp_path / "bare.txt"
    header, *rows = (DATA / "sacct.txt").read_text().splitlines()
    path.write_text("".join(f"{row}|\n" for row in rows))
    with pytest.raises(TraceError, match=r"column JobID or JobIDRaw is missing: .*option columns"):
        read_trace(path, "sacct")
    whole = read_trace(DATA / "sacct.txt")
    for columns in (header.replace("|", ","), header.lower().replace("|", "%20,").split(",")):
        workload = read_trace(path, "sacct", columns=columns)
        assert workload.equals(whole)
        assert [row[0] for row in left_out(workload)] == [2, 3, 4, 6, 10, 11, 14]
    assert read_trace(DATA / "sacct.txt", columns=header.replace("|", ",")).equals(whole)
    with pytest.raises(TraceError, match="option columns is 3: expected names"):
        read_trace(path, "sacct", columns=3)


def test_sacct_with_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text(
        "JobIDRaw|Submit|Start|End|State|ReqGRES|AllocGRES|\n"
        "1|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:01:00|COMPLETED|gpu:8|gpu:tesla:2|\n"
        "2|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:01:00|CANCELLED+|gpu:3||\n"
        "3|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T07:59:00|FAILED|||\n"
    )
    workload = read_trace(path)
    assert jobs(workload, "status") == [
        ("1", 0.0, 120.0, 2, "completed"),
        ("2", 0.0, 180.0, 3, "cancelled"),
    ]
    assert left_out(workload) == [(4, "end before start", "End", "2024-05-01T07:59:00")]
    assert workload.apps["gpu_types"].to_list() == ["tesla", None]


@pytest.mark.parametrize(
    ("text", "gpus", "kinds"),
    [
        ("gres/gpu=4", 4, None),
        ("billing=8,gres/gpu:a100=2,gres/gpu=2,node=1", 2, "a100"),
        ("gres/gpu:a100=2,gres/gpu:nvidia_v100-16g=3", 5, "a100|nvidia_v100-16g"),
        ("gres/gpu:3g.20gb=2", 2, "3g.20gb"),
        ("gpu:4", 4, None),
        ("gpu:4(IDX:0-3)", 4, None),
        ("gpu:1g.5gb:7", 7, "1g.5gb"),
        ("cpu=4,mem=1G,gres/gpumem=40G", 0, None),
        ("cpu=4,gres/mps=50", 0, None),
        ("", 0, None),
    ],
)
def test_gpus_of_a_resource_text(tmp_path: Path, text: str, gpus: int, kinds: str | None) -> None:
    path = tmp_path / "one.txt"
    path.write_text(
        "JobID|Submit|Start|End|State|AllocTRES\n"
        f"1|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:01:00|COMPLETED|{text}\n"
    )
    workload = read_trace(path)
    assert workload.jobs["gang_size"].to_list() == [gpus]
    assert workload.apps["gpu_types"].to_list() == [kinds]


@pytest.mark.parametrize("number", ["nan", "-1", "2.5", "1e3", "9" * 30, ""])
def test_gpus_that_are_no_number_are_not_none(tmp_path: Path, number: str) -> None:
    """Case 14: a count that cannot be read is refused with its text, never taken as 0."""
    path = tmp_path / "one.txt"
    row = "{}|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:01:00|COMPLETED|cpu=1,{}"
    rows = [row.format(1, f"gres/gpu={number}"), row.format(2, "gres/gpu=4")]
    path.write_text("JobID|Submit|Start|End|State|AllocTRES\n" + "\n".join(rows))
    workload = read_trace(path)
    assert workload.jobs["gang_size"].to_list() == [4]
    assert left_out(workload) == [(2, "not a number", "gres/gpu", f"cpu=1,gres/gpu={number}")]


def test_standard_workload_format() -> None:
    workload = read_trace(DATA / "swf.txt")
    assert workload.source.recognised == "lines of 18 numbers between blanks"
    assert workload.source.origin == "2024-05-01T00:00:00+00:00"
    assert jobs(workload, "status") == [
        ("1", 0.0, 800.0, 8, "completed"),
        ("4", 5.0, 320.0, 2, "completed"),
        ("3", 15.0, 240.0, 4, "failed"),
    ]
    assert workload.apps.select("user", "tenant").rows() == [("3", "1"), ("4", "2"), ("4", "2")]
    assert left_out(workload) == [
        (5, "never scheduled", "job", "2"),
        (8, "partial execution", "job", "4"),
        (10, "missing value", "submit", None),
        (11, "too few fields", "", "6 30 0 60"),
    ]
