"""The tables of Alibaba PAI."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from themis.errors import TraceError
from themis.traces import read_trace
from themis.workload.workload import Workload

DATA = Path(__file__).parents[1] / "data" / "traces" / "pai"


def jobs(workload: Workload, *columns: str) -> list[tuple[object, ...]]:
    return workload.jobs.select("job_id", "submit_s", "serial_time_s", "gang_size", *columns).rows()


def left_out(workload: Workload) -> list[tuple[object, ...]]:
    assert workload.source.report is not None
    return workload.source.report.rejected.rows()


def notes(workload: Workload) -> tuple[str, ...]:
    assert workload.source.report is not None
    return workload.source.report.notes


def some(tmp_path: Path, *kinds: str) -> Path:
    """A folder with some of the tables."""
    folder = tmp_path / "-".join(kinds)
    folder.mkdir()
    for kind in kinds:
        shutil.copy(DATA / f"pai_{kind}_table.csv", folder)
    return folder


def test_the_tables_together_make_the_jobs() -> None:
    workload = read_trace(DATA)
    assert workload.source.format == "pai"
    # j1: 3 workers of half a GPU take 3, from 112 to the end of its ps; j2: one, and a quarter;
    # j3: no instance, its tasks
    assert jobs(workload, "app_id", "status", "profile") == [
        ("j3", 90.0, (300 - 92) * 5.0, 5, "j3", "completed", None),
        ("j1", 100.0, (395 - 112) * 3.0, 3, "u1/g1", "completed", "resnet"),
        ("j2", 120.0, 0.25 * 20.0, 1, "u1/g1", "failed", "bert"),
    ]
    apps = workload.apps.select("app_id", "user", "gpu_types").rows()
    assert apps == [("j3", "u2", "P100|T4"), ("u1/g1", "u1", "MISC")]
    assert left_out(workload) == [
        (4, "never scheduled", "job_name", "j4"),
        (5, "still running at the end", "begin", "212.0"),
        (6, "no GPUs recorded", "job_name", "j6"),
        (7, "missing value", "start_time", None),
    ]
    problems = {p.name: p.values for p in workload.source.report.problems if not p.rejected}  # type: ignore[union-attr]
    assert problems == {"fraction of a GPU": ("1.5",), "ends with the trace": ()}
    assert "3 instances lack a start or an end" in notes(workload)[1]
    assert notes(workload)[0] == (
        f"{DATA / 'pai_task_table.csv'}: 1 rows could not be used; the first is line 9: "
        "not a number x"
    )
    added = (395 - 112) * 1.5
    assert f"add {added:,.0f} GPU-seconds" in notes(workload)[-1]


def test_options_for_fractions_and_apps() -> None:
    workload = read_trace(DATA, fractions="leave_out", apps="job")
    assert [job[0] for job in jobs(workload)] == ["j3"]
    assert (1, "fraction of a GPU", "gpus_asked", "1.5") in left_out(workload)
    assert workload.equals(read_trace(DATA, apps="job", repair={"fraction_of_a_gpu": "leave_out"}))
    alone = read_trace(DATA, apps="job")
    assert alone.apps["app_id"].to_list() == ["j3", "j1", "j2"]
    with pytest.raises(TraceError, match="option apps is 'user': expected one of group, job"):
        read_trace(DATA, apps="user")


def test_fewer_tables_say_less(tmp_path: Path) -> None:
    tasks = read_trace(some(tmp_path, "job", "task"))
    assert jobs(tasks) == [("j3", 90.0, 208.0 * 5, 5), ("j1", 100.0, 290.0 * 3, 3)]
    assert (2, "still running at the end", "begin", "130.0") in left_out(tasks)
    only = read_trace(DATA / "pai_task_table.csv")
    assert jobs(only) == [
        ("j3", 92.0, 208.0 * 5, 5),
        ("j1", 110.0, 290.0 * 3, 3),
        ("j7", 221.0, 19.0, 1),
    ]
    assert (2, "further row of a job", "job_name", "j1") in left_out(only)
    assert only.source.report is not None
    assert only.source.report.rows == 9
    instances = read_trace(some(tmp_path, "instance", "group_tag"), gpus_per_instance=1)
    assert jobs(instances, "app_id") == [
        ("j1", 112.0, 283.0 * 3, 3, "u1/g1"),
        ("j2", 131.0, 20.0, 1, "u1/g1"),
    ]
    with pytest.raises(TraceError, match="no task table, which has the GPUs"):
        read_trace(DATA / "pai_instance_table.csv")
    with pytest.raises(TraceError, match="no task table, which has the GPUs"):
        read_trace(DATA / "pai_job_table.csv", gpus_per_instance=1)
    with pytest.raises(TraceError, match="group tags without jobs"):
        read_trace(DATA / "pai_group_tag_table.csv")


def test_a_table_twice_or_with_a_header(tmp_path: Path) -> None:
    folder = some(tmp_path, "job", "task")
    shutil.copy(folder / "pai_job_table.csv", folder / "again.csv")
    with pytest.raises(TraceError, match=r"two job tables: .*again\.csv and .*pai_job_table\.csv"):
        read_trace(folder)
    (folder / "again.csv").unlink()
    (folder / "pai_job_table.header").write_text("job_name,inst_id,user,status,start_time,end_time")
    plain = read_trace(folder)
    path = folder / "pai_job_table.csv"
    path.write_text(f"{(folder / 'pai_job_table.header').read_text()}\n{path.read_text()}")
    headed = read_trace(folder)
    assert headed.equals(plain)
    assert [row[0] for row in left_out(headed)] == [row[0] + 1 for row in left_out(plain)]  # type: ignore[operator]
