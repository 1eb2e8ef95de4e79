"""The kinds of dirty data behind public bug reports, at random, against plain loops over rows.

Numbers are those of the cases. Those about order, zones, bytes, columns and impossible numbers of
every format are with the readers.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from themis.cluster.cluster import Cluster
from themis.errors import TraceError
from themis.simulation.simulate import simulate
from themis.traces import read_trace
from themis.workload.workload import Workload

SETTINGS = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
BLANK = st.sampled_from(["", "None", "NA", "null", " "])
PACIFIC = ZoneInfo("America/Los_Angeles")


def read(folder: Path, header: str, rows: list[str], **options: object) -> Workload:
    path = folder / "jobs.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return read_trace(path, None, **options)


@SETTINGS
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 4), st.integers(1, 200)),
        min_size=1,
        max_size=12,
    )
)
@pytest.mark.parametrize("policy", ["fifo", "themis"])
def test_cpu_rows_run_beside_the_others(
    policy: str, jobs: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    """Case 1: they end after their duration, have no rho, and change nobody's times."""
    header = "id,submit,gpus,duration"
    rows = [f"j{k:02},{at},{gpus},{run}" for k, (at, gpus, run) in enumerate(jobs)]
    cluster = Cluster.parse("1x4")
    result = simulate(read(tmp_path, header, rows), cluster, policy=policy)
    found = {row["job_id"]: row for row in result.jobs.iter_rows(named=True)}
    rho = dict(result.apps.select("app_id", "rho").iter_rows())
    for k, (at, gpus, run) in enumerate(jobs):
        if gpus == 0:
            assert found[f"j{k:02}"]["end_s"] == at + run
            assert (found[f"j{k:02}"]["gpu_s"], rho[f"j{k:02}"]) == (0.0, None)
    work = sum(gpus * run for _, gpus, run in jobs)
    assert math.fsum(result.jobs["work_gpu_s"].to_list()) == pytest.approx(work)
    json.dumps(result.summary(), allow_nan=False)
    takers = [row for row, job in zip(rows, jobs, strict=True) if job[1] > 0]
    if policy == "fifo" and takers:
        alone = simulate(read(tmp_path, header, takers), cluster, policy=policy)
        for name, end_s in alone.jobs.select("job_id", "end_s").iter_rows():
            assert found[name]["end_s"] == end_s


@SETTINGS
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 99), BLANK),
            st.one_of(st.integers(0, 99), BLANK),
            st.one_of(st.integers(0, 99), BLANK),
        ),
        min_size=1,
        max_size=15,
    )
)
def test_missing_times_are_classes_and_never_numbers(
    rows: list[tuple[int | str, int | str, int | str]], tmp_path: Path
) -> None:
    """Case 2: an empty cell is neither 0 nor NaN, and every row is a job or of one class."""
    lines = [f"j{k:02},{at},1,{start},{end}" for k, (at, start, end) in enumerate(rows)]
    expected: dict[str, str] = {}
    work: dict[str, float] = {}
    for k, (at, start, end) in enumerate(rows):
        name, seen = f"j{k:02}", [isinstance(cell, int) for cell in (at, start, end)]
        if seen == [False, False, True]:
            expected[name] = "began before the trace"
        elif seen[0] and not seen[1]:
            expected[name] = "never scheduled"
        elif not seen[2]:
            expected[name] = "still running at the end"
        elif not seen[0]:
            expected[name] = "missing value"
        elif isinstance(start, int) and isinstance(end, int) and end < start:
            expected[name] = "end before start"
        elif isinstance(start, int) and isinstance(end, int):
            work[name] = end - start
    header = "id,submit,gpus,start,end"
    if not work:
        with pytest.raises(TraceError, match="none of the"):
            read(tmp_path, header, lines)
        return
    workload = read(tmp_path, header, lines)
    assert dict(workload.jobs.select("job_id", "serial_time_s").iter_rows()) == work
    report = workload.source.report
    assert report is not None
    reasons = report.rejected.select("line", "reason").iter_rows()
    assert {f"j{line - 2:02}": reason for line, reason in reasons} == expected


@SETTINGS
@given(
    jobs=st.lists(
        st.tuples(
            st.floats(-50, 50).map(lambda at: round(at, 3)),
            st.sampled_from([0.0, 0.001, 2.25, 7.0]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_zero_and_fractional_durations_and_negative_times_end(
    jobs: list[tuple[float, float]], tmp_path: Path
) -> None:
    """Case 3: with room for all, each ends when it must, on a clock whose origin is stated."""
    rows = [f"j{k},{at},1,{run}" for k, (at, run) in enumerate(jobs)]
    workload = read(tmp_path, "id,submit,gpus,duration", rows)
    shift = max(0.0, -min(at for at, _ in jobs))
    report = workload.source.report
    assert report is not None
    assert any("times were shifted" in note for note in report.notes) == (shift > 0)
    result = simulate(workload, Cluster.parse("1x8"), policy="fifo", restart_s=0, checkpoint_s=0)
    ends = dict(result.jobs.select("job_id", "end_s").iter_rows())
    for k, (at, run) in enumerate(jobs):
        assert ends[f"j{k}"] == pytest.approx(at + shift + run, abs=2e-6)
    assert set(result.jobs["state"]) == {"done"}


@SETTINGS
@given(
    start=st.integers(0, 3 * 3600),
    length_s=st.integers(0, 2 * 3600),
)
def test_the_repeated_hour_never_makes_time_run_back(
    start: int, length_s: int, tmp_path: Path
) -> None:
    """Case 6: runs around the end of summer time, as a clock on the wall showed them."""
    begin = datetime(2017, 11, 5, 6, 30, tzinfo=ZoneInfo("UTC")) + timedelta(seconds=start)
    shown = [
        moment.astimezone(PACIFIC).strftime("%Y-%m-%d %H:%M:%S")
        for moment in (begin, begin + timedelta(seconds=length_s))
    ]
    attempt = {
        "start_time": shown[0],
        "end_time": shown[1],
        "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
    }
    entry = {"jobid": "a", "submitted_time": shown[0], "attempts": [attempt], "status": "Pass"}
    path = tmp_path / "log.json"
    path.write_text(json.dumps([entry]))
    workload = read_trace(path, "philly", timezone="America/Los_Angeles")
    [found] = workload.jobs["serial_time_s"].to_list()
    twice = timedelta(hours=1).total_seconds()
    assert found >= 0
    assert found in {length_s, length_s + twice, length_s - twice}
    if begin.astimezone(PACIFIC).utcoffset() == timedelta(hours=-7):  # its first pass, as taken
        assert found in {length_s, length_s - twice}


@SETTINGS
@given(
    slots=st.integers(1, 12),
    jobs=st.integers(2, 40),
    gap_s=st.integers(1, 500),
    run_s=st.integers(1, 3000),
    gang=st.integers(1, 3),
)
def test_more_work_than_the_cluster_can_do(  # noqa: PLR0917 - a case has five numbers
    slots: int, jobs: int, gap_s: int, run_s: int, gang: int, tmp_path: Path
) -> None:
    """Case 12: load of evenly spaced arrivals in closed form, and whether queues can drain."""
    rows = [f"j{k},{k * gap_s},{gang},{run_s}" for k in range(jobs)]
    report = read(tmp_path, "id,submit,gpus,duration", rows).check(Cluster.parse(f"1x{slots}"))
    assert report.load is not None
    if gang > slots:
        assert len(report.load.infeasible) == jobs
        assert not report.passed
        return
    load = gang * run_s / (slots * gap_s)
    assert report.load.load == pytest.approx(load)
    if abs(load - 1) > 1e-9:
        assert report.load.drains == (load < 1)
        assert ("cannot drain" in report.to_text()) == (load > 1)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 60.0], ids=["s", "ms", "min"])
def test_a_wrong_unit_is_doubted(scale: float, tmp_path: Path) -> None:
    """Case 8: a day of two-hour jobs, in each unit, read as seconds and in its own unit."""
    day = [f"j{k},{k * 3600 / scale:.0f},1,{7200 / scale:.0f}" for k in range(25)]
    header = "id,submit,gpus,duration"
    plain = read(tmp_path, header, day)
    report = plain.source.report
    assert report is not None
    assert any("milliseconds" in note for note in report.notes) == (scale == 1e-3)
    right = read(tmp_path, header, day, unit={1.0: "s", 1e-3: "ms", 60.0: "min"}[scale])
    assert right.jobs["submit_s"].to_list() == pytest.approx([k * 3600.0 for k in range(25)])
    assert set(right.jobs["serial_time_s"]) == {7200.0}


def test_two_rows_in_milliseconds_are_doubted(tmp_path: Path) -> None:
    """Case 8 as reported: both submitted at once, a day after the clock's zero."""
    rows = ["a,86400000,1,7200000", "b,86400000,1,7200000"]
    report = read(tmp_path, "id,submit,gpus,duration", rows).source.report
    assert report is not None
    assert "ends after 2.96 years and its median job runs 83.3 days" in " ".join(report.notes)


def test_bad_numbers_change_no_other_job(tmp_path: Path) -> None:
    """Case 14, to the end of a run: the good job's result is as if it stood alone."""
    bad = [f"b{k},0,{cell},50" for k, cell in enumerate(("nan", "inf", "-1", "1e19", "2.5", ""))]
    header, good = "id,submit,gpus,duration", "good,3,2,100"
    cluster = Cluster.parse("1x2")
    both, alone = (
        simulate(read(tmp_path, header, rows), cluster, policy="themis")
        for rows in ([*bad, good], [good])
    )
    assert both.apps.equals(alone.apps)
    assert both.jobs.equals(alone.jobs)


def test_the_zone_of_the_machine_does_not_matter_to_a_check(tmp_path: Path) -> None:
    """Case 6: stamps with offsets, with Z, and without; the whole report is the same."""
    rows = [
        "1, a, 2018-06-16T04:51:49+08:00, 100, 1",
        "1, b, 2018-06-15T20:51:59Z, 100, 1",
        "1, c, 2018-06-15 20:52:09, 100, 1",
    ]
    path = tmp_path / "h.csv"
    path.write_text("\n".join(["experiment-id,job-id,start-time,run-time,num-gpus", *rows]))
    texts = {
        subprocess.run(
            [
                sys.executable,
                "-m",
                "themis",
                "check",
                str(path),
                "--json",
                "--option",
                "jobs_at=start",
            ],
            env={"TZ": zone, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for zone in ("UTC", "Asia/Shanghai", "America/Los_Angeles")
    }
    [text] = texts
    assert (json.loads(text)["first_s"], json.loads(text)["last_s"]) == (0.0, 20.0)
