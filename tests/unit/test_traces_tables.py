"""Formats that are one table: what each sample means, by hand."""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from themis.checking.problems import TraceReport
from themis.errors import TraceError
from themis.traces import read_trace
from themis.workload.workload import Workload

DATA = Path(__file__).parents[1] / "data" / "traces"
DAY_S = 86_400.0


def report_of(workload: Workload) -> TraceReport:
    assert workload.source.report is not None
    return workload.source.report


def jobs(workload: Workload, *columns: str) -> list[tuple[object, ...]]:
    return workload.jobs.select("job_id", "submit_s", "serial_time_s", "gang_size", *columns).rows()


def left_out(workload: Workload) -> list[tuple[object, ...]]:
    return report_of(workload).rejected.select("line", "reason", "column").rows()


def kept(workload: Workload) -> dict[str, int]:
    return {p.name: p.count for p in report_of(workload).problems if not p.rejected}


def test_helios_runs_from_start_to_end() -> None:
    workload = read_trace(DATA / "helios.csv")
    assert workload.source.format == "helios"
    assert workload.source.origin == "2020-04-01T00:00:00"
    assert jobs(workload, "status") == [
        ("12", 0.0, 30.0, 0, "failed"),
        ("11", 10.0, 3600.0 * 8, 8, "completed"),
        ("13", 20.0, (14 * DAY_S + 5) * 16, 16, "failed"),
        ("16", 1 * DAY_S + 8 * 3600, 0.0, 1, "unknown"),
    ]
    assert left_out(workload) == [
        (5, "still running at the end", "start_time"),
        (6, "never scheduled", "job_id"),
        (8, "end before start", "end_time"),
    ]
    assert kept(workload) == {
        "no GPU": 1,
        "no work": 1,
        "ends with the trace": 1,
        "unknown status": 1,
    }
    tenants = workload.apps.select("user", "tenant").rows()
    assert tenants == [("uA1", "vcAAA"), ("uA1", "vcAAA"), ("uB2", "vcbbb"), ("uC3", "vcAAA")]
    assert any("name no zone" in note for note in report_of(workload).notes)


def test_acme_offsets_are_honoured_and_the_stated_duration_is_not_believed() -> None:
    kalos = read_trace(DATA / "acme_kalos.csv")
    assert kalos.source.origin == "2023-05-17T11:00:00+00:00"
    assert jobs(kalos) == [
        ("dlc2", 0.0, 240.0, 8),
        ("dlc3", 5.0, 20.0, 0),
        ("dlc1", 58.0, 8.0 * 64, 64),
    ]
    assert report_of(kalos).notes == ("duration is not end_time - start_time in 1 rows: not used",)
    seren = read_trace(DATA / "acme_seren.csv")
    assert seren.source.origin == "2023-02-28T16:18:00+00:00"
    assert jobs(seren) == [("502", 0.0, 30.0, 1), ("501", 22.0, 960.0, 8)]
    assert report_of(seren).notes == ()


def test_openb_pods_keep_their_fractions_of_gpus() -> None:
    workload = read_trace(DATA / "openb.csv")
    assert jobs(workload, "status") == [
        ("pod-0", 0.0, 100.0, 1, "unknown"),
        ("pod-1", 5.0, 0.46 * 15.0, 1, "completed"),
        ("pod-2", 7.0, 80.0, 8, "failed"),
        ("pod-3", 9.0, 10.0, 0, "completed"),
    ]
    assert left_out(workload) == [(6, "never scheduled", "name")]
    assert workload.jobs["gpu_milli"].to_list() == [None, 460, None, None]
    assert report_of(workload).gpu_s_rows == report_of(workload).gpu_s_jobs == 100 + 6.9 + 80
    assert kept(workload) == {"no GPU": 1, "unknown status": 1}
    assert workload.apps["gpu_types"].to_list() == [None, "V100M16|V100M32", None, None]
    assert workload.apps["tenant"].to_list() == ["LS", "BE", "Guaranteed", "Burstable"]
    whole = read_trace(DATA / "openb.csv", fractions="round_up")
    assert jobs(whole, "status")[1] == ("pod-1", 5.0, 15.0, 1, "completed")
    assert whole.jobs["gpu_milli"].null_count() == 4
    assert kept(whole) == {"no GPU": 1, "fraction of a GPU": 1, "unknown status": 1}
    assert "whole GPUs for fractions add 8 GPU-seconds to the work of the jobs" in (
        report_of(whole).notes
    )
    without = read_trace(DATA / "openb.csv", fractions="leave_out")
    assert left_out(without)[0] == (3, "fraction of a GPU", "gpu_milli")
    assert without.jobs.height == 3


def test_openb_lists_without_times_need_a_duration() -> None:
    with pytest.raises(TraceError, match="a pod list without times: give option duration_s"):
        read_trace(DATA / "openb_multigpu.csv")
    for odd in (0, -1, "x", True, float("inf")):
        with pytest.raises(TraceError, match=r"duration_s is .*: expected a positive number"):
            read_trace(DATA / "openb_multigpu.csv", duration_s=odd)
    workload = read_trace(DATA / "openb_multigpu.csv", duration_s=60)
    assert jobs(workload) == [
        ("pod-0", 0.0, 60.0, 1),
        ("pod-1", 0.0, 0.46 * 60.0, 1),
        ("pod-2", 0.0, 480.0, 8),
    ]


def test_spot_workers_each_take_their_own_devices() -> None:
    workload = read_trace(DATA / "alibaba_spot.csv")
    assert jobs(workload) == [
        ("101", 0.0, 2_764_799.0, 1),
        ("103", 10.0, 300.0, 3),
        ("104", 20.0, 50.0, 0),
        ("102", 9_589_663.0, 41_060.0 * 16, 16),
    ]
    assert workload.apps["gpu_types"].to_list() == ["A10", "A10", "A10", "A100-SXM4-80GB"]
    assert workload.apps["tenant"].to_list() == ["13", "57", "7", "57"]


def test_units_of_the_simulators() -> None:
    assert jobs(read_trace(DATA / "tiresias.csv"), "profile") == [
        ("0", 0.0, 164.0, 1, "vgg19"),
        ("1", 30.0, 147.0 * 8, 8, "vgg11"),
        ("2", 53.0, 127.0 * 2, 2, "lenet"),
    ]
    assert jobs(read_trace(DATA / "muri.csv")) == [
        ("0", 0.0, DAY_S * 2, 2),
        ("1", DAY_S, 7200.0 * 4, 4),
    ]
    chronus = read_trace(DATA / "chronus.csv")
    assert jobs(chronus) == [
        ("2", 7198 * 60.0, 600.0, 0),
        ("1", 7199 * 60.0, 1860.0, 1),
        ("0", 12198 * 60.0, 211 * 60.0 * 4, 4),
    ]
    assert chronus.apps["user"].to_list() == ["vc_7f04ca", "vc_7f04ca", "vc_103959"]
    old = read_trace(DATA / "tiresias_old.csv")
    assert left_out(old) == [(3, "repeated row", "job_id")]
    assert jobs(old) == [("11", 3.0, 200.0, 4), ("10", 11.0, 240.0, 12)]


def test_a_unit_can_be_given_and_is_doubted(tmp_path: Path) -> None:
    path = tmp_path / "ms.csv"
    path.write_text(
        "job_id,num_gpu,submit_time,duration,model_name\na,1,0,7200000,x\nb,1,86400000,7200000,x\n"
    )
    assert any("milliseconds (unit='ms')?" in note for note in report_of(read_trace(path)).notes)
    workload = read_trace(path, unit="ms")
    assert jobs(workload) == [("a", 0.0, 7200.0, 1), ("b", DAY_S, 7200.0, 1)]
    assert report_of(workload).notes == ()
    with pytest.raises(TraceError, match="option unit is 'h': expected one of s, ms, min"):
        read_trace(path, unit="h")


def test_a_negative_submission_shifts_all_times(tmp_path: Path) -> None:
    path = tmp_path / "neg.csv"
    path.write_text("job_id,submission_time,duration,num_gpu\na,-4,5,1\nb,6,5,1\n")
    workload = read_trace(path)
    assert workload.jobs["submit_s"].to_list() == [0.0, 10.0]
    assert report_of(workload).notes == ("all times were shifted by 4 s: one was negative",)


def test_several_files_are_one_trace_whose_ids_say_which(tmp_path: Path) -> None:
    for cluster in ("Venus", "Earth"):
        (tmp_path / cluster).mkdir()
        (tmp_path / cluster / "cluster_log.csv").write_bytes((DATA / "helios.csv").read_bytes())
        (tmp_path / cluster / "notes.txt").write_text("hello\n")
    (tmp_path / ".hidden.csv").write_text("x")
    lone = read_trace(DATA / "helios.csv")
    for path in (tmp_path, tmp_path / "*" / "cluster_*.csv", tmp_path / "**" / "*.csv"):
        workload = read_trace(path)
        report = report_of(workload)
        assert workload.jobs.height == 2 * lone.jobs.height
        assert workload.gpu_seconds == 2 * lone.gpu_seconds
        ids = set(lone.jobs["job_id"])
        assert set(workload.jobs["job_id"]) == {f"{c}/{i}" for c in ("Venus", "Earth") for i in ids}
        assert report.rows == 14 == report.jobs + report.rejected.height
        assert report.rejected.columns == ["line", "reason", "column", "value", "file"]
        assert report.rejected["file"].to_list() == ["Earth"] * 3 + ["Venus"] * 3
        (never,) = [p for p in report.problems if p.name == "never scheduled"]
        assert never.places == ("Earth:6", "Venus:6")
        assert "Earth:6, Venus:6" in workload.check().to_text()
    assert "2 other files not read" in read_trace(tmp_path).source.recognised


def test_files_of_clusters_without_tenants_become_tenants(tmp_path: Path) -> None:
    archive = tmp_path / "raw.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("cluster01.csv", "._cluster01.csv", "cluster02.csv", "LICENSE"):
            data = (DATA / "microsoft_itp.csv").read_bytes() if name[0] == "c" else b"words\n"
            entry = tarfile.TarInfo(f"raw/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    workload = read_trace(archive)
    assert workload.jobs.height == 6
    assert workload.apps["tenant"].unique().sort().to_list() == ["cluster01", "cluster02"]
    assert workload.source.paths == (str(archive),)
    assert "1 other files not read" in workload.source.recognised
    damaged = tmp_path / "cut.tar.gz"
    damaged.write_bytes(archive.read_bytes()[:-120])
    with pytest.raises(TraceError, match=r"cut\.tar\.gz"):
        read_trace(damaged)


@pytest.mark.parametrize("packing", ["gzip", "bz2", "lzma"])
def test_packed_files_read_equal(tmp_path: Path, packing: str) -> None:
    module = __import__(packing)
    path = tmp_path / "packed"
    data = (DATA / "microsoft_itp.csv").read_bytes()
    path.write_bytes(module.compress(data))
    assert read_trace(path).equals(read_trace(DATA / "microsoft_itp.csv"))
    path.write_bytes(module.compress(data * 50)[:-12])
    with pytest.raises(TraceError, match=r"packed: .*(truncated|damaged)"):
        read_trace(path)


def test_a_folder_of_several_formats_asks_for_one(tmp_path: Path) -> None:
    for name in ("helios.csv", "chronus.csv"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    with pytest.raises(TraceError, match=r"several formats: chronus \(.*\), helios \(.*\): name"):
        read_trace(tmp_path)
    assert read_trace(tmp_path, "helios").jobs.height == 4
    with pytest.raises(TraceError, match="none of the 2 files is of a format muri"):
        read_trace(tmp_path, "muri")
    with pytest.raises(TraceError, match="no file found there"):
        read_trace(tmp_path / "*.none")


SAMPLES = sorted(path for path in DATA.iterdir() if path.suffix == ".csv")
OPTIONS: dict[str, dict[str, Any]] = {"openb_multigpu": {"duration_s": 60}}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_dress_and_order_of_a_file_do_not_matter(sample: Path, tmp_path: Path) -> None:
    options = OPTIONS.get(sample.stem, {})
    plain = read_trace(sample, **options)
    header, *rows = sample.read_text().splitlines()
    shuffled = random.Random(3).sample(rows, len(rows))  # noqa: S311 - any order will do
    path = tmp_path / "dressed.csv"
    columns = ["", *header.split(",")]
    text = "\r\n".join([",".join(columns) + ",", *(f"7, {row} ," for row in shuffled)])
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    dressed = read_trace(path, **options)
    assert dressed.equals(plain)
    assert dressed.source.format == plain.source.format
    reports = report_of(plain), report_of(dressed)
    assert reports[0].rows == reports[1].rows == len(rows)
    assert [(p.name, p.count) for p in reports[0].problems] == [
        (p.name, p.count) for p in reports[1].problems
    ]
    for report in reports:
        assert report.rows == report.jobs + report.rejected.height


@pytest.mark.parametrize("name", ["helios", "acme_seren"])
def test_a_requeued_job_keeps_its_first_submission_and_all_its_work(
    name: str, tmp_path: Path
) -> None:
    """Case 4 in logs of schedulers."""
    head = (DATA / f"{name}.csv").read_text().split("\n", 1)[0]
    times = [("08:00:00", "08:01:40", "08:02:10"), ("08:02:10", "08:02:30", "08:04:10")]
    keys = ("submit_time", "start_time", "end_time")
    path = tmp_path / "log.csv"
    lines = []
    for clock in times:
        stamps = {key: f"2020-04-01 {at}" for key, at in zip(keys, clock, strict=True)}
        known = {"job_id": "70002", "gpu_num": "2", "state": "NODE_FAIL", **stamps}
        lines.append(",".join(known.get(column, "") for column in head.split(",")))
    path.write_text("\n".join([head, *lines]))
    workload = read_trace(path)
    assert workload.jobs.select("job_id", "submit_s", "serial_time_s").rows() == [
        ("70002", 0.0, 2 * (30.0 + 100.0))
    ]
    assert report_of(workload).rejected["reason"].to_list() == ["earlier attempt"]


def test_a_skipped_hour_is_taken_an_hour_later(tmp_path: Path) -> None:
    path = tmp_path / "dst.csv"
    head = (DATA / "helios.csv").read_text().split("\n", 1)[0]
    path.write_text(
        f"{head}\n"
        "1,u,v,1,1,1,COMPLETED,2017-03-12 01:59:00,2017-03-12 01:59:00,2017-03-12 02:01:00,120,0\n"
        "2,u,v,1,1,1,COMPLETED,2017-11-05 01:50:00,2017-11-05 01:50:00,2017-11-05 01:10:00,0,0\n"
    )
    workload = read_trace(path, timezone="America/Los_Angeles")
    assert workload.jobs["serial_time_s"].to_list() == [120.0, 1200.0]
    notes = " ".join(report_of(workload).notes)
    assert "1 time stamps lie in an hour that the clock of America/Los_Angeles skips" in notes
    assert "3 time stamps lie in an hour that the clock of America/Los_Angeles shows" in notes


def test_a_missing_column_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "itp.csv"
    path.write_text("job_id,submission_time,duration\na,1,2\n")
    with pytest.raises(TraceError, match=r"itp\.csv: column 'num_gpu' is missing: found"):
        read_trace(path, "microsoft-itp")


def test_impossible_numbers_are_reported_and_change_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "spot.csv"
    head = (DATA / "alibaba_spot.csv").read_text().split("\n", 1)[0]
    cells = ["nan", "inf", "-1", "1e19", "", "x"]
    lines = [f"{n},1,A10,1,{cell},2,0,10,HP" for n, cell in enumerate(cells)]
    path.write_text("\n".join([head, "good,2,A10,1,1,2,0,10,HP", *lines]) + "\n")
    workload = read_trace(path)
    assert jobs(workload) == [("good", 0.0, 20.0, 2)]
    assert report_of(workload).rejected.select("line", "reason", "value").rows() == [
        (3, "not a finite number", "nan"),
        (4, "not a finite number", "inf"),
        (5, "negative number of GPUs", "-1"),
        (6, "number too large", "1e19"),
        (7, "missing value", None),
        (8, "not a number", "x"),
    ]
    assert isinstance(workload.jobs.schema["gang_size"], pl.Int64)
