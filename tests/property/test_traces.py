"""Properties of reading: nothing is lost, order does not matter, bytes never crash it."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from themis.errors import TraceError
from themis.traces import read_trace
from themis.workload.workload import Workload

SETTINGS = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
CELLS = st.sampled_from(
    [
        "",
        "1",
        " 2",
        "0",
        "3.0",
        "-1",
        "nan",
        "NA",
        "inf",
        "1e19",
        "2.5",
        "x",
        "7",
        "12",
        '"4"',
        "None",
    ]
)
ROWS = st.lists(st.tuples(st.sampled_from("abcdefg"), CELLS, CELLS, CELLS), min_size=1, max_size=20)


def read_or_none(path: Path, format_name: str | None = None) -> Workload | None:
    """The workload, or None if it is refused with one line that names the file."""
    try:
        return read_trace(path, format_name)
    except TraceError as error:
        message = str(error)
    assert path.name in message
    assert "\n" not in message
    return None


@SETTINGS
@given(rows=ROWS, blank=st.integers(0, 20))
def test_rows_in_are_jobs_and_rows_reported(
    tmp_path: Path, rows: list[tuple[str, ...]], blank: int
) -> None:
    lines = [",".join(row) for row in rows]
    lines.insert(blank % (len(lines) + 1), "")
    path = tmp_path / "jobs.csv"
    path.write_text("id,submit,gpus,duration\n" + "\n".join(lines) + "\n")
    workload = read_or_none(path)
    if workload is None:
        return
    report = workload.source.report
    assert report is not None
    assert report.rows == len(lines) == workload.jobs.height + report.rejected.height
    assert report.rejected["line"].is_unique().all()
    assert sum(p.count for p in report.problems if p.rejected) == report.rejected.height
    text = path.read_text().split("\n")
    for line, reason, column, value in report.rejected.iter_rows():
        assert (text[line - 1] == "") == (reason == "empty line")
        if value is not None and column in {"submit", "gpus", "duration"}:
            assert value in text[line - 1]
    for frame in (workload.apps, workload.jobs):
        for series in frame.get_columns():
            if series.dtype == pl.Float64:
                assert series.drop_nulls().is_finite().all()
    assert (workload.jobs["submit_s"] >= 0).all()
    assert report.gpu_s_jobs == workload.gpu_seconds <= report.gpu_s_rows


@SETTINGS
@given(rows=ROWS, data=st.data())
def test_order_of_rows_does_not_matter(
    tmp_path: Path, rows: list[tuple[str, ...]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    found = []
    for number, some in enumerate((rows, shuffled)):
        path = tmp_path / f"jobs{number}.csv"
        path.write_text("id,submit,gpus,duration\n" + "".join(",".join(r) + "\n" for r in some))
        found.append(read_or_none(path))
    one, other = found
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.equals(other)
        assert one.source.report is not None
        assert other.source.report is not None
        assert one.source.report.gpu_s_rows == other.source.report.gpu_s_rows
        counts = [
            {(p.name, p.column): p.count for p in w.source.report.problems}
            for w in (one, other)
            if w.source.report is not None
        ]
        assert counts[0] == counts[1]


@SETTINGS
@given(
    jobs=st.lists(
        st.tuples(
            st.integers(0, 10**6),
            st.integers(0, 10**5),
            st.sampled_from([0, 1, 2, 4, 128]),
            st.sampled_from(["v1", "v2", ""]),
        ),
        min_size=1,
        max_size=30,
    ),
    data=st.data(),
)
def test_pollux_rows_in_any_order_give_the_same_ids(
    tmp_path: Path, jobs: list[tuple[int, int, int, str]], data: st.DataObject
) -> None:
    found = []
    for some in (jobs, data.draw(st.permutations(jobs))):
        path = tmp_path / "p.csv.gz"
        lines = [
            f"2017-10-{1 + at // 86400:02}T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}"
            f",{run},{gpus},{run * gpus},{tenant}\n"
            for at, run, gpus, tenant in some
        ]
        text = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(lines)
        path.write_bytes(gzip.compress(text.encode()))
        found.append(read_trace(path))
    assert found[0].equals(found[1])
    assert found[0].jobs.height == len(jobs)
    assert found[0].gpu_seconds == sum(run * gpus for _, run, gpus, _ in jobs)


@SETTINGS
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 300), st.sampled_from([1, 2]), st.sampled_from("uv")),
        min_size=1,
        max_size=40,
    ),
    gap_s=st.sampled_from([0, 5, 30]),
    cap=st.integers(1, 6),
)
def test_bursts_are_those_of_a_loop_over_jobs(
    tmp_path: Path, jobs: list[tuple[int, int, str]], gap_s: int, cap: int
) -> None:
    path = tmp_path / "jobs.csv"
    lines = [f"j{i:03},{at},{gang},{i + 1},{user}\n" for i, (at, gang, user) in enumerate(jobs)]
    path.write_text("id,submit,gpus,duration,user\n" + "".join(lines))
    workload = read_trace(path)
    grouped = workload.group_into_apps(gap_s=gap_s, max_jobs=cap)
    bursts: list[list[list[str]]] = []
    for key in sorted({(gang, user) for _, gang, user in jobs}):
        mine = sorted(
            (at, f"j{i:03}") for i, (at, gang, user) in enumerate(jobs) if (gang, user) == key
        )
        last = -math.inf
        for at, name in mine:
            if at - last > gap_s:
                bursts.append([[]])
            if len(bursts[-1][-1]) == cap:
                bursts[-1].append([])
            bursts[-1][-1].append(name)
            last = at
    expected = sorted(sorted(app) for burst in bursts for app in burst)
    found: dict[str, list[str]] = {}
    for job_id, app_id in grouped.jobs.select("job_id", "app_id").iter_rows():
        found.setdefault(app_id, []).append(job_id)
    assert sorted(sorted(app) for app in found.values()) == expected
    assert grouped.gpu_seconds == workload.gpu_seconds
    first = {name: min(jobs[int(job[1:])][0] for job in app) for name, app in found.items()}
    arrivals = dict(grouped.apps.select("app_id", "arrival_s").iter_rows())
    assert arrivals == first


@SETTINGS
@given(content=st.binary(max_size=200))
@pytest.mark.parametrize(
    "start", [b"", b"id,submit,gpus,duration\n", b'[{"jobid": "a", ', b"\x1f\x8b"]
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, start: bytes, content: bytes) -> None:
    path = tmp_path / "any.bin"
    path.write_bytes(start + content)
    for format_name in (None, "native", "philly", "hyperdrive"):
        workload = read_or_none(path, format_name)
        assert workload is None or workload.jobs.height > 0
