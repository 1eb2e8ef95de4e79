"""Workloads of simulators whose work is steps or a profile: Gavel, Shockwave, Pollux."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from themis.errors import TraceError
from themis.traces import read_trace
from themis.workload.workload import Workload

DATA = Path(__file__).parents[1] / "data" / "traces"


def jobs(workload: Workload) -> list[tuple[object, ...]]:
    return workload.jobs.select("submit_s", "serial_time_s", "gang_size", "profile").rows()


def left_out(workload: Workload) -> list[tuple[object, ...]]:
    assert workload.source.report is not None
    return workload.source.report.rejected.select("line", "reason", "column").rows()


def test_steps_over_throughput_are_the_duration() -> None:
    workload = read_trace(DATA / "gavel7.trace")
    assert workload.source.recognised == "7 fields between tabs"
    # steps/s: 10.06924 on 2 GPUs; 29.94716 on 1; A3C was measured on 1 GPU only: 4 x 7.17577
    assert jobs(workload) == [
        (0.0, pytest.approx(1000 / 10.06924 * 2), 2, "Transformer (batch size 128)"),
        (6.0, pytest.approx(100.0), 1, "ResNet-18 (batch size 32)"),
        (9.5, pytest.approx(10.0 * 4), 4, "A3C"),
    ]
    assert left_out(workload) == [
        (4, "no throughput known", "job_type"),
        (5, "negative number of steps", "total_steps"),
        (6, "too few fields", ""),
    ]
    assert workload.source.report is not None
    (scaled,) = [p for p in workload.source.report.problems if not p.rejected]
    assert (scaled.name, scaled.lines, scaled.values) == ("throughput of one GPU", (3,), ("A3C",))


def test_ten_and_twelve_fields_put_the_arrival_last() -> None:
    assert jobs(read_trace(DATA / "gavel10.trace")) == [
        (0.0, pytest.approx(10.0), 1, "LM (batch size 5)"),
        (6.0, pytest.approx(100.0), 1, "ResNet-18 (batch size 32)"),
    ]
    shockwave = read_trace(DATA / "shockwave12.trace")
    assert jobs(shockwave) == [
        (0.0, 3338.0, 1, "ResNet-18 (batch size 32)"),
        (7.0, 1418.0 * 2, 2, "LM (batch size 10)"),
    ]
    assert shockwave.source.report is not None
    assert shockwave.source.report.notes == ()


def test_fields_are_never_shifted(tmp_path: Path) -> None:
    path = tmp_path / "mixed.trace"
    lines = [
        (DATA / name).read_text().splitlines()[0]
        for name in ("gavel10.trace", "gavel7.trace", "shockwave12.trace")
    ]
    path.write_text("\n".join(lines) + "\n")
    workload = read_trace(path)
    assert workload.jobs["submit_s"].to_list() == [6.0]
    assert left_out(workload) == [(2, "too few fields", ""), (3, "too many fields", "")]
    path.write_text("a\tb\tc\t1\t2\n")
    with pytest.raises(TraceError, match=r"line 1: 5 fields between tabs: expected 7, 10, 12"):
        read_trace(path, "gavel")


def test_throughputs_can_be_given(tmp_path: Path) -> None:
    table = {"k80": {"('A3C', 4)": {"null": 2.0, "('A3C', 4)": [1, 1]}, "('A3C', 1)": {"null": 1}}}
    as_json, as_csv = tmp_path / "simulation_throughputs.json", tmp_path / "steps.csv"
    as_json.write_text(json.dumps(table))
    as_csv.write_text("job_type,gpu_type,gpus,steps_per_s\nA3C,k80,4,2.0\nA3C,k80,1,1.0\n")
    for path in (as_json, as_csv):
        workload = read_trace(DATA / "gavel7.trace", throughputs=str(path), gpu_type="k80")
        assert jobs(workload) == [(9.5, pytest.approx(287.0308 / 2 * 4), 4, "A3C")]
    with pytest.raises(TraceError, match="option gpu_type is 'v100': expected one of k80"):
        read_trace(DATA / "gavel7.trace", throughputs=str(as_json))
    for text in ("{", '{"k80": [1]}', '{"k80": {"(\'a\', 1)": {}}}', "a,b\n1\n", ""):
        as_json.write_text(text)
        with pytest.raises(TraceError, match=r"option throughputs: .* expected Gavel's JSON"):
            read_trace(DATA / "gavel7.trace", throughputs=str(as_json))
    with pytest.raises(TraceError, match=r"option throughputs: .*none.* cannot be read"):
        read_trace(DATA / "gavel7.trace", throughputs=str(tmp_path / "none"))


def test_pollux_work_is_assumed_or_given() -> None:
    workload = read_trace(DATA / "pollux.csv")
    assert jobs(workload) == [
        (107.5, pytest.approx(0.32 * 3600), 1, "cifar10"),
        (110.0, pytest.approx(320 * 3600), 8, "imagenet"),
    ]
    assert left_out(workload) == [(4, "application of unknown GPU-hours", "application")]
    assert workload.source.report is not None
    assert "cifar10 0.32" in workload.source.report.notes[0]
    given = read_trace(DATA / "pollux.csv", gpu_hours="gpt=2,imagenet=80")
    same = read_trace(DATA / "pollux.csv", gpu_hours={"gpt": 2, "imagenet": 80})
    assert given.equals(same)
    assert [work for _, work, _, _ in jobs(given)] == pytest.approx([1152.0, 80 * 3600, 7200.0])
    for odd in ("", "bert", "bert=x", 3, {"bert": -1}):
        with pytest.raises(TraceError, match="option gpu_hours"):
            read_trace(DATA / "pollux.csv", gpu_hours=odd)
