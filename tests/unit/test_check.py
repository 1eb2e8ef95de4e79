"""Check reports: accounts of the rows, and what a cluster is asked for."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.checking.offered_load import MAX_BINS, offered_load
from themis.schema.workload import apps_from_jobs
from themis.synthetic import generate
from themis.traces import read_trace
from themis.traces.check import check_trace
from themis.workload.workload import Workload

Themis = Callable[..., subprocess.CompletedProcess[str]]

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Pool:
    """A cluster as far as a load depends on it."""

    sizes: dict[str, int]

    @property
    def gpus(self) -> int:
        return sum(self.sizes.values())

    @property
    def machines(self) -> pl.DataFrame:
        return pl.DataFrame({"gpu_type": list(self.sizes), "gpus": list(self.sizes.values())})

    def __str__(self) -> str:
        return "+".join(f"{kind}x{gpus}" for kind, gpus in self.sizes.items())


def write(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_report_of_a_trace_adds_up() -> None:
    report = check_trace(DATA / "philly_pollux.csv", "philly")
    assert (report.rows, report.jobs_read, report.rejected) == (6, 5, 1)
    assert report.rows == report.jobs_read + report.rejected
    assert report.gangs == ((0, 1), (1, 1), (2, 1), (4, 2))
    assert (report.first_s, report.last_s, report.tenants, report.users) == (0.0, 3600.0, 2, 0)
    assert report.gpu_s == report.gpu_s_read == report.gpu_s_rows == 2460.0
    assert not report.clean
    assert report.load is None
    text = report.to_text()
    assert "6 lines -> 5 jobs, 1 left out" in text
    assert "1 x empty line: line 4; left out" in text
    assert "1 x no GPU: line 6; kept: takes no GPU" in text
    assert text.endswith("\n")


def test_report_is_plain_json() -> None:
    report = check_trace(DATA / "philly_log.json", cluster=Pool({"v100": 2}))
    document = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert document["row_word"] == "entry"
    assert [problem["name"] for problem in document["problems"]] == [
        "never scheduled",
        "still running at the snapshot",
        "no work",
        "ends with the trace",
        "attempt without both times",
        "unknown status",
    ]
    assert document["problems"][0]["lines"] == [3]
    assert document["load"]["infeasible"] == ["job_0001"]
    assert document["load"]["infeasible_gpu_s"] == 540.0
    assert "1 job can never run (gang larger than the cluster, 540 GPU-seconds): job_0001" in (
        report.to_text()
    )


def test_more_work_than_the_cluster_can_do(tmp_path: Path) -> None:
    """Case 12: twelve jobs of 1,000 s in 1,000 s on six GPUs."""
    rows = "".join(f"j{index},{index * 1000 / 12},1,1000\n" for index in range(12))
    path = write(tmp_path, "id,submit,gpus,duration\n" + rows)
    report = check_trace(path, cluster=Pool({"T": 6}))
    assert report.load is not None
    assert report.load.load == pytest.approx(2.0)
    assert report.load.window_s == pytest.approx(1000.0)
    assert not report.load.drains
    assert report.load.drain_s == pytest.approx(1000.0)
    text = report.to_text()
    assert "offered load, any (6 GPUs): 2.00" in text
    assert "cannot drain" in text


def test_load_of_each_type(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "id,submit,gpus,duration,gpu_types\n"
        "a,0,1,100,A\nb,50,2,100,A|B\nc,100,4,100,\nd,0,3,100,A\ne,0,1,100,C\nf,0,0,100,C\n",
    )
    report = check_trace(path, cluster=Pool({"A": 2, "B": 4}))
    assert report.load is not None
    assert report.load.infeasible == ("d", "e")
    assert report.load.window_s == 150.0
    loads = {part.gpu_types: (part.gpus, part.gpu_seconds, part.load) for part in report.load.types}
    assert loads == {
        "any": (6, 700.0, 700 / 900),
        "A": (2, 100.0, 100 / 300),
        "A|B": (6, 700.0, 700 / 900),
        "C": (0, 0.0, None),
    }
    assert report.load.drains
    assert report.load.drain_s == 0.0


def test_arrivals_all_at_once_have_no_load(tmp_path: Path) -> None:
    path = write(tmp_path, "id,submit,gpus,duration\na,7,1,100\nb,7,1,60\n")
    report = check_trace(path, cluster=Pool({"": 2}))
    assert report.load is not None
    assert report.load.load is None
    assert report.load.drain_s == 80.0
    assert "all jobs arrive at once" in report.to_text()


def test_clean_generated_workload_has_nothing_to_report() -> None:
    report = generate("demo").check()
    assert report.clean
    assert report.problems == ()
    assert report.paths == ()
    assert "no problems found" in report.to_text()
    assert report.elastic_jobs > 0


def test_transformations_show_in_the_totals() -> None:
    workload = generate("demo")
    half = workload.window(end_s=5000.0).check()
    assert half.gpu_s < half.gpu_s_read or half.gpu_s_read == half.gpu_s
    assert half.notes[0].startswith("window(start_s=0, end_s=5000)")


def test_repeated_rows_show_before_and_after(tmp_path: Path) -> None:
    path = write(tmp_path, "id,submit,gpus,duration\na,0,2,100\na,0,2,100\n")
    report = check_trace(path)
    assert (report.gpu_s_rows, report.gpu_s_read) == (400.0, 200.0)
    [problem] = report.problems
    assert (problem.name, problem.lines, problem.action) == ("repeated row", (3,), "counted once")


def test_the_ends_of_a_trace_are_counted(tmp_path: Path) -> None:
    """Case 2: finished, never started, still running, began before."""
    path = write(
        tmp_path,
        "id,submit,gpus,start,end\n"
        "p1,0,1,10,60\np2,20,1,,\np3,30,1,40,None\np4,,1,,90\np5,50,2,55,200\np6,0,1,0,5\n",
    )
    report = check_trace(path)
    assert report.censoring.to_dict() == {
        "began_before": 1,
        "still_running": 1,
        "never_ran": 1,
        "at_first_instant": 2,
        "past_last_submission": 1,
        "past_gpu_s": 290.0,
    }
    assert "1 x ends with the trace: line 6; kept: may have been cut off" in report.to_text()
    assert "not seen whole: 1 line began before the trace, 1 line still ran at its end, 1 line" in (
        report.to_text()
    )


def test_a_window_says_what_it_cuts(tmp_path: Path) -> None:
    path = write(tmp_path, "id,submit,gpus,duration\na,0,1,100\nb,0,1,10\nc,50,1,10\nd,60,1,99\n")
    [note] = read_trace(path).window(start_s=50, end_s=100).notes
    assert note.endswith(
        "; 1 jobs left out would still run at its start; 1 jobs kept would still run at its end"
    )


@settings(max_examples=60)
@given(
    times=st.lists(st.floats(0, 1e9), min_size=1, max_size=30),
    gangs=st.lists(st.integers(0, 3), min_size=30, max_size=30),
)
def test_load_over_time_adds_up(times: list[float], gangs: list[int]) -> None:
    rows = pl.DataFrame(
        {
            "job_id": [f"j{k}" for k in range(len(times))],
            "app_id": [f"j{k}" for k in range(len(times))],
            "submit_s": times,
            "serial_time_s": [100.0] * len(times),
            "gang_size": gangs[: len(times)],
            "max_gpus": gangs[: len(times)],
        }
    )
    workload = Workload(apps=apps_from_jobs(rows), jobs=rows)
    load = offered_load(workload.apps, workload.jobs, Pool({"A": 2}))
    [part] = load.types
    assert 1 <= len(part.over_time) <= MAX_BINS
    assert load.bins_from_s <= min(times) < load.bins_from_s + load.bin_s
    assert max(times) < load.bins_from_s + load.bin_s * (len(part.over_time) + 1e-9)
    expected = [0.0] * len(part.over_time)
    for at, gang in zip(times, gangs, strict=False):
        if 0 < gang <= 2:
            expected[int((at - load.bins_from_s) // load.bin_s)] += 100 / (2 * load.bin_s)
    assert part.over_time == pytest.approx(expected)


def test_the_page_holds_the_report_and_nothing_from_elsewhere(
    themis: Themis, trace: Path, tmp_path: Path
) -> None:
    trace.write_text(trace.read_text() + "<b>,1,x,1,eve,<i>\n")
    done = themis("check", "jobs.csv", "--cluster", "2x4", "--html", "page.html")
    assert (done.returncode, done.stderr.startswith("themis: page: ")) == (0, True), done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "not a number" in page
    assert '<td class="text">x</td>' in page
    assert "Offered load over time" in page
    assert page.count("<svg") == 3
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", page)
    assert "<b>" not in page
    quiet = themis("check", "jobs.csv", "--html", "page.html", "--quiet")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert "Work over time" in (tmp_path / "page.html").read_text()
    bad = themis("check", "jobs.csv", "--html", "absent/page.html")
    assert (bad.returncode, bad.stdout) == (3, "")
    assert "absent/page.html: its directory does not exist" in bad.stderr
