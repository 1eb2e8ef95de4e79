"""Repairs: what becomes of rows in trouble, by choice, and that the accounts still add up."""

from __future__ import annotations

import itertools
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from themis.checking.repairs import RULES, chosen
from themis.errors import TraceError
from themis.traces import read_trace
from themis.workload.workload import Workload

Themis = Callable[..., subprocess.CompletedProcess[str]]

ROWS = """\
id,submit,gpus,duration
a,0,2,100
b,5,1,10
b,5,1,10
c,9,1,20
c,7,2,30
d,1,1,-4
e,1,0.3333,8
f,2,0,6
g,3,1,0
"""


def read(folder: Path, text: str = ROWS, **repair: str) -> Workload:
    path = folder / "jobs.csv"
    path.write_text(text)
    return read_trace(path, repair=repair)


def jobs_of(workload: Workload) -> dict[str, tuple[float, int, float]]:
    columns = workload.jobs.select("job_id", "submit_s", "gang_size", "serial_time_s")
    return {name: (submit, gang, work) for name, submit, gang, work in columns.iter_rows()}


PLAIN = {"a": (0, 2, 200), "b": (5, 1, 10), "c": (7, 2, 60), "f": (2, 0, 6), "g": (3, 1, 0)}


@pytest.mark.parametrize(
    ("rule", "choice", "changed"),
    [
        ("conflicting_id", "earliest", {}),
        ("conflicting_id", "latest", {"c": (9, 1, 20)}),
        ("conflicting_id", "separate", {"c#2": (9, 1, 20)}),
        ("conflicting_id", "join", {"c": (7, 2, 80)}),
        ("repeated_row", "once", {}),
        ("repeated_row", "separate", {"b#2": (5, 1, 10)}),
        ("negative_duration", "leave_out", {}),
        ("negative_duration", "zero", {"d": (1, 1, 0)}),
        ("fraction_of_a_gpu", "leave_out", {}),
        ("fraction_of_a_gpu", "round_up", {"e": (1, 1, 8)}),
        ("no_gpu", "keep", {}),
        ("no_gpu", "leave_out", {"f": None}),
        ("no_work", "keep", {}),
        ("no_work", "leave_out", {"g": None}),
    ],
)
def test_what_a_repair_makes_of_the_rows(
    rule: str, choice: str, changed: dict[str, tuple[float, int, float] | None], tmp_path: Path
) -> None:
    workload = read(tmp_path, **{rule: choice})
    expected = {name: job for name, job in {**PLAIN, **changed}.items() if job is not None}
    assert jobs_of(workload) == expected
    report = workload.source.report
    assert report is not None
    assert (report.rows, report.rejected.height) == (9, 9 - len(expected))
    settled = {problem.name for problem in report.problems if problem.settled}
    assert {name.lower().replace(" ", "_") for name in settled} == {rule}
    offered = {text for problem in report.problems for text in problem.repairs}
    assert {f"{rule}={other}" for other in RULES[rule] if other != choice} <= offered
    assert f"{rule}={choice}" not in offered


def test_an_end_before_its_start_can_be_no_work(tmp_path: Path) -> None:
    text = "id,submit,gpus,start,end\na,0,2,5,9\nb,1,2,9,5\n"
    assert jobs_of(read(tmp_path, text)) == {"a": (0, 2, 8)}
    workload = read(tmp_path, text, end_before_start="zero")
    assert jobs_of(workload) == {"a": (0, 2, 8), "b": (1, 2, 0)}
    report = workload.source.report
    assert report is not None
    assert [(p.name, p.count, p.lines, p.rejected) for p in report.problems] == [
        ("end before start", 1, (3,), False),
        ("no work", 1, (3,), False),
    ]


@pytest.mark.parametrize("unit", ["s", "min"])
def test_a_job_that_still_ran_can_keep_its_time_up_to_the_end(unit: str, tmp_path: Path) -> None:
    """The last instant is the latest of all usable rows: here the submission of c."""
    text = "id,submit,gpus,start,end\na,0,2,5,9\nb,1,3,4,\nc,20,1,,\nd,14,0,15,-\ne,19,1,19,20\n"
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    scale = {"s": 1, "min": 60}[unit]
    plain = read_trace(path, unit=unit)
    assert set(plain.jobs["job_id"]) == {"a", "e"}
    workload = read_trace(path, unit=unit, repair={"still_running": "to_the_end"})
    work = {name: work / scale for name, (_, _, work) in jobs_of(workload).items()}
    assert work == {"a": 8, "b": 3 * (20 - 4), "d": 20 - 15, "e": 1}
    report = workload.source.report
    assert report is not None
    assert (report.rows, report.jobs, report.rejected["reason"].to_list()) == (
        *(5, 4),
        ["never scheduled"],
    )
    still = next(p for p in report.problems if p.name == "still running at the end")
    assert (still.count, still.lines, still.rejected, still.settled) == (2, (3, 5), False, True)
    assert report.gpu_s_rows == report.gpu_s_jobs == 57 * scale
    assert workload.check().censoring.still_running == 2


@pytest.mark.parametrize(
    ("name", "job", "work"),
    [
        ("philly_log.json", "job_0004", 3600.0),
        ("traces/helios.csv", "14", 4 * 1_123_220.0),
        ("traces/acme_kalos.csv", "dlc4", 0.0),
        ("traces/pai", "j5", 395.0 - 212.0),
    ],
)
def test_still_running_jobs_of_other_formats(name: str, job: str, work: float) -> None:
    path = Path(__file__).parents[1] / "data" / name
    assert job not in jobs_of(read_trace(path))
    workload = read_trace(path, repair={"still_running": "to_the_end"})
    assert jobs_of(workload)[job][2] == work
    report = workload.source.report
    assert report is not None
    assert report.rows == report.jobs + report.rejected.height


@pytest.mark.parametrize(
    ("last", "cut"),
    [("d,3,1,4,60", {"c", "d"}), ("d,3,1,4,", {"c"}), ("d,3,1,4,50", set())],
    ids=["several end then", "others still ran", "one just ends last"],
)
def test_jobs_that_the_trace_may_have_cut_off(last: str, cut: set[str], tmp_path: Path) -> None:
    text = f"id,submit,gpus,start,end\na,0,1,5,9\nb,1,1,5,50\nc,2,1,6,60\n{last}\n"
    every = set(read(tmp_path, text).jobs["job_id"])
    left = read(tmp_path, text, ends_with_the_trace="leave_out")
    assert every - set(left.jobs["job_id"]) == cut


CHOICES = [dict(zip(RULES, pick, strict=True)) for pick in itertools.product(*RULES.values())]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 3),
            st.sampled_from(["0", "1", "2", "1.5"]),
            st.integers(-2, 3),
        ),
        min_size=1,
        max_size=9,
    ),
    repair=st.sampled_from(CHOICES),
    data=st.data(),
)
def test_rows_are_jobs_or_reported_under_every_repair(
    tmp_path: Path,
    rows: list[tuple[str, int, str, int]],
    repair: dict[str, str],
    data: st.DataObject,
) -> None:
    found: list[Workload | None] = []
    for order in (rows, data.draw(st.permutations(rows))):
        text = "".join(f"{job},{at},{gpus},{run}\n" for job, at, gpus, run in order)
        try:
            found.append(read(tmp_path, "id,submit,gpus,duration\n" + text, **repair))
        except TraceError:
            found.append(None)
    one, other = found
    if one is None or other is None:
        assert one is other
        return
    assert one.equals(other)
    report = one.source.report
    assert report is not None
    assert report.rows == len(rows) == one.jobs.height + report.rejected.height
    assert report.gpu_s_jobs == one.gpu_seconds <= report.gpu_s_rows + 1e-9
    if repair["conflicting_id"] in {"separate", "join"} and repair["repeated_row"] == "separate":
        usable = [
            max(run, 0) * math.ceil(float(gpus))
            for _, _, gpus, run in rows
            if not (run < 0 and repair["negative_duration"] == "leave_out")
            and not (gpus == "1.5" and repair["fraction_of_a_gpu"] == "leave_out")
        ]
        if repair["conflicting_id"] == "separate":
            assert one.gpu_seconds == sum(usable)


@pytest.mark.parametrize(
    ("repair", "message"),
    [
        (
            {"conflicting": "latest"},
            "repair 'conflicting' is unknown (did you mean 'conflicting_id",
        ),
        (
            {"conflicting_id": "last"},
            "repair conflicting_id is 'last' (did you mean 'latest'?): exp",
        ),
        ("latest", "option repair is 'latest': expected choices by rule"),
    ],
)
def test_unknown_repairs_are_refused(repair: object, message: str, trace: Path) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(trace, repair=repair)
    assert message in str(caught.value)


def test_a_repair_holds_for_its_reading_only(tmp_path: Path) -> None:
    read(tmp_path, conflicting_id="latest")
    assert chosen("conflicting id") == "earliest"
    with pytest.raises(TraceError):
        read(tmp_path, "id,submit,gpus,duration\n", conflicting_id="latest")
    assert jobs_of(read(tmp_path)) == PLAIN


def test_strict_is_about_what_no_repair_settles(themis: Themis, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(ROWS)
    done = themis("check", "jobs.csv", "--strict")
    assert done.returncode == 4
    assert "conflicting id in job_id: line 5 ('c')" in done.stdout
    assert (
        "or conflicting_id=latest or conflicting_id=separate or conflicting_id=join" in done.stdout
    )
    rules = [flag for rule in RULES for flag in ("--repair", f"{rule}={RULES[rule][-1]}")]
    done = themis("check", "jobs.csv", "--strict", *rules)
    assert done.returncode == 0, done.stdout
    done = themis("check", "jobs.csv", "--repair", "no_gpu=drop")
    assert (done.returncode, done.stdout) == (3, "")
    assert "jobs.csv: repair no_gpu is 'drop'" in done.stderr


def test_a_run_repairs_too(themis: Themis, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(ROWS)
    flags = ("--trace", "jobs.csv", "--cluster", "2x4", "--repair", "conflicting_id=separate")
    done = themis("run", *flags, "--json")
    assert done.returncode == 0, done.stderr
    assert '"jobs": 6,' in done.stdout
    done = themis("run", *flags, "--print-scenario")
    assert '[workload.options.repair]\nconflicting_id = "separate"' in done.stdout
