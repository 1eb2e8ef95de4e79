"""The native format: tables of jobs, and of apps and jobs."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from themis.errors import TraceError
from themis.schema.host import OF_GPU
from themis.synthetic import generate
from themis.traces import read_trace
from themis.workload.workload import Workload


def table(folder: Path, text: str | bytes, **options: object) -> Workload:
    path = folder / "jobs.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_trace(path, "native", **options)


def rejected(workload: Workload) -> list[tuple[object, ...]]:
    assert workload.source.report is not None
    return workload.source.report.rejected.rows()


def notes(workload: Workload) -> str:
    assert workload.source.report is not None
    return "\n".join(workload.source.report.notes)


def test_cpu_rows_take_no_gpu(tmp_path: Path) -> None:
    """Case 1."""
    workload = table(tmp_path, "id,submit,gpus,duration\na,0,1,100\nb,5,0,50\nc,10,2,80\n")
    assert workload.gpu_seconds == 260.0
    assert workload.jobs.select("job_id", "gang_size", "serial_time_s").rows() == [
        ("a", 1, 100.0),
        ("b", 0, 50.0),
        ("c", 2, 160.0),
    ]


def test_missing_and_cut_off_times(tmp_path: Path) -> None:
    """Case 2."""
    text = (
        "id,submit,gpus,start,end\n"
        "p1,0,1,10,60\np2,20,1,,\np3,30,1,40,None\np4,,1,,90\np5,50,1,55,200\n"
    )
    workload = table(tmp_path, text)
    assert workload.jobs.select("job_id", "serial_time_s").rows() == [("p1", 50.0), ("p5", 145.0)]
    assert rejected(workload) == [
        (3, "never scheduled", "id", "p2"),
        (4, "still running at the end", "start", "40"),
        (5, "began before the trace", "end", "90"),
    ]


def test_odd_durations_and_negative_times(tmp_path: Path) -> None:
    """Case 3."""
    text = "id,submit,gpus,start,end\nz1,0,1,0,0\nz2,1.5,1,1.5,3.75\nz3,4,1,9,7\nz4,-3,1,-3,2\n"
    workload = table(tmp_path, text)
    assert rejected(workload) == [(4, "end before start", "end", "7")]
    assert workload.jobs.select("job_id", "submit_s", "serial_time_s").rows() == [
        ("z4", 0.0, 5.0),
        ("z1", 3.0, 0.0),
        ("z2", 4.5, 2.25),
    ]
    assert "all times were shifted by 3 s" in notes(workload)


def test_same_id_twice(tmp_path: Path) -> None:
    """Case 4."""
    text = "id,submit,gpus,duration\n70001,0,1,10\n70002,130,1,100\n70001,0,1,10\n70002,100,1,30\n"
    workload = table(tmp_path, text)
    assert workload.jobs.select("job_id", "submit_s").rows() == [("70001", 0.0), ("70002", 100.0)]
    assert rejected(workload) == [
        (3, "conflicting id", "job_id", "70002"),
        (4, "repeated row", "job_id", "70001"),
    ]
    assert workload.source.report is not None
    assert workload.source.report.gpu_s_rows == 150.0
    assert workload.source.report.gpu_s_jobs == 40.0


def test_attempts_of_a_job_and_ids_that_are_used_again(tmp_path: Path) -> None:
    """Case 4: attempts do not overlap and follow within an hour; much later it is another job."""
    head = "id,submit,gpus,start,end,status\n"
    rows = [
        "70001,0,1,0,10,COMPLETED",
        "70001,0,1,0,10,COMPLETED",
        "70002,100,1,100,130,NODE_FAIL",
        "70002,130,1,150,250,COMPLETED",
        "again,0,1,0,10,COMPLETED",
        "again,3611,1,4000,4010,COMPLETED",
        "overlap,0,1,5,50,COMPLETED",
        "overlap,20,1,30,60,COMPLETED",
        "other gang,0,1,0,5,COMPLETED",
        "other gang,6,2,6,9,COMPLETED",
    ]
    order = [3, 9, 1, 6, 0, 8, 5, 2, 7, 4]
    workload = table(tmp_path, head + "\n".join(rows))
    assert set(workload.jobs.select("job_id", "submit_s", "serial_time_s").rows()) == {
        ("70001", 0.0, 10.0),
        ("70002", 100.0, 130.0),
        ("again", 0.0, 10.0),
        ("again#2", 3611.0, 10.0),
        ("overlap", 0.0, 45.0),
        ("other gang", 0.0, 5.0),
    }
    assert rejected(workload) == [
        (3, "repeated row", "job_id", "70001"),
        (4, "earlier attempt", "job_id", "70002"),
        (9, "conflicting id", "job_id", "overlap"),
        (11, "conflicting id", "job_id", "other gang"),
    ]
    assert "the id was used again" in notes(workload)
    shuffled = table(tmp_path, head + "\n".join(rows[at] for at in order))
    assert shuffled.equals(workload)
    milliseconds = [
        ",".join(f"{cell}000" if cell.isdigit() and at in {1, 3, 4} else cell for at, cell in cells)
        for cells in (list(enumerate(row.split(","))) for row in rows)
    ]
    assert table(tmp_path, head + "\n".join(milliseconds), unit="ms").equals(workload)
    chosen = table(tmp_path, head + "\n".join(rows), repair={"conflicting_id": "earliest"})
    assert ("70002", 30.0) in chosen.jobs.select("job_id", "serial_time_s").rows()


def test_row_order_does_not_matter(tmp_path: Path) -> None:
    """Case 5."""
    rows = ["a,500,1,10\n", "b,20,1,10\n", "c,260,1,10\n"]
    one = table(tmp_path, "id,submit,gpus,duration\n" + "".join(rows))
    other = table(tmp_path, "id,submit,gpus,duration\n" + "".join(rows[::-1]))
    assert one.equals(other)
    assert one.jobs["submit_s"].to_list() == [20.0, 260.0, 500.0]


def test_milliseconds_are_doubted_and_scaled(tmp_path: Path) -> None:
    """Case 8."""
    text = "id,submit,gpus,duration\na,0,1,7200000\nb,86400000,1,7200000\n"
    assert "milliseconds (unit='ms')?" in notes(table(tmp_path, text))
    workload = table(tmp_path, text, unit="ms")
    assert workload.jobs["submit_s"].to_list() == [0.0, 86400.0]
    assert workload.jobs["serial_time_s"].to_list() == [7200.0, 7200.0]
    assert notes(workload) == ""
    assert table(tmp_path, text, unit="min").jobs["submit_s"][1] == 86400000.0 * 60


def test_unit_against_the_column_names(tmp_path: Path) -> None:
    text = "id,submit_s,gpus,duration_s\na,0,1,10\n"
    with pytest.raises(TraceError, match="the names of the time columns say seconds"):
        table(tmp_path, text, unit="ms")
    with pytest.raises(TraceError, match="option unit is 'hours': expected one of s, ms, min"):
        table(tmp_path, text, unit="hours")


def test_bytes_of_other_programs(tmp_path: Path) -> None:
    """Case 9: byte-order mark, index column, CRLF, blanks, NA, trailing commas, no last newline."""
    dirty = (
        b"\xef\xbb\xbf,id, submit,gpus,duration,colour,\r\n"
        b"0,a,0, 2,10,red,\r\n"
        b"\r\n"
        b"1,b,NA,2,10,red,\r\n"
        b"2,c,5,1, 20,blue"
    )
    workload = table(tmp_path, dirty)
    assert rejected(workload) == [
        (3, "empty line", "", None),
        (4, "missing value", "submit", "NA"),
    ]
    clean = table(tmp_path, "id,submit,gpus,duration\na,0,2,10\nc,5,1,20\n")
    assert workload.equals(clean)
    assert notes(workload) == "columns not used: unnamed_0, colour, unnamed_6"


def test_impossible_numbers(tmp_path: Path) -> None:
    """Case 14."""
    cells = ["nan", "inf", "-1", "1e19", "2.5", ""]
    rows = "".join(f"j{index},0,{cell},10\n" for index, cell in enumerate(cells))
    workload = table(tmp_path, "id,submit,gpus,duration\n" + rows + "good,1,1,10\n")
    assert [row[:2] for row in rejected(workload)] == [
        (2, "not a finite number"),
        (3, "not a finite number"),
        (4, "negative number of GPUs"),
        (5, "number too large"),
        (6, "fraction of a GPU"),
        (7, "missing value"),
    ]
    assert [row[3] for row in rejected(workload)] == ["nan", "inf", "-1", "1e19", "2.5", None]
    assert workload.gpu_seconds == 10.0


def test_every_column(tmp_path: Path) -> None:
    text = (
        "job_id,arrival_s,gang_size,max_gpus,serial_time_s,app_id,user,tenant,profile,stopping,"
        "weight,gpu_types,app_max_gpus,target_loss,checkpoint_s,status,iterations,loss_a,loss_b,"
        "loss_c,bracket,gpu_milli,mixes_types,cpu_cores_per_gpu,memory_gib_per_gpu\n"
        "j1,0,2,8,100,a,ann,t1,vgg16,first,2.5,A|B,6,0.2,30,done,1000,0.01,0.5,0.1,2,1000,false,4,32.5\n"
        "j2,4,2,,50,a,ann,t1,resnet50,first,2.5,A|B,6,0.2,,,20,,,,,,,,\n"
        "j3,9,1,1,7,,bob,,null,,,,,,,,,,,,,250,true,,8\n"
    )
    workload = table(tmp_path, text)
    assert workload.apps.rows() == [
        ("a", "ann", "t1", 0.0, "first", 2.5, None, "A|B", 6, 0.2),
        ("j3", "bob", None, 9.0, "all", 1.0, None, None, None, None),
    ]
    assert workload.jobs.rows() == [
        (
            "j1",
            "a",
            0.0,
            100.0,
            2,
            8,
            "vgg16",
            30.0,
            "done",
            1000.0,
            0.01,
            0.5,
            0.1,
            2,
            1000,
            False,
            4.0,
            32.5,
        ),
        ("j2", "a", 4.0, 50.0, 2, 2, "resnet50", None, None, 20.0, *[None] * 8),
        ("j3", "j3", 9.0, 7.0, 1, 1, *[None] * 8, 250, True, None, 8.0),
    ]
    workload.write(tmp_path / "again")
    assert read_trace(tmp_path / "again").equals(workload)


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("max_gpus", "1", "max_gpus below the gang"),
        ("stopping", "hyperband", "unknown stopping rule"),
        ("app_max_gpus", "0", "app without a GPU"),
        ("app_max_gpus", "1", "app cap below the gang"),
        ("app_max_gpus", "2.5", "fraction of a GPU"),
        ("target_loss", "low", "not a number"),
        ("iterations", "0", "iterations not positive"),
        ("iterations", "1e13", "number too large"),
        ("loss_a", "-1", "loss curve that rises"),
        ("loss_b", "0", "loss curve without a start"),
        ("loss_c", "1", "loss curve incomplete"),
        ("bracket", "1.5", "bracket not a whole number"),
        ("bracket", "-1", "bracket not a whole number"),
        ("weight", "0", "weight not positive"),
        ("weight", "heavy", "not a number"),
        ("checkpoint_s", "-1", "negative duration"),
    ],
)
def test_bad_optional_value_is_reported(
    tmp_path: Path, column: str, cell: str, reason: str
) -> None:
    text = f"id,submit,gpus,duration,{column}\ngood,0,2,10,\nbad,0,2,10,{cell}\n"
    assert rejected(table(tmp_path, text)) == [(3, reason, column, cell)]


def test_jobs_that_disagree_about_their_app_are_noted(tmp_path: Path) -> None:
    text = "id,submit,gpus,duration,app_id,user\na,0,1,1,x,bob\nb,0,1,1,x,ann\n"
    workload = table(tmp_path, text)
    assert workload.apps["user"].to_list() == ["ann"]
    assert "1 apps have jobs of different user" in notes(workload)


def test_quoted_cells_with_line_breaks_keep_line_numbers(tmp_path: Path) -> None:
    text = 'id,user,submit,gpus,duration\n"a","x\ny, z",0,1,10\n\nb,"q ""w""",bad,1,10\nc,,1,1,5\n'
    workload = table(tmp_path, text)
    assert workload.apps["user"].to_list() == ["x\ny, z", None]
    assert rejected(workload) == [
        (4, "empty line", "", None),
        (5, "not a number", "submit", "bad"),
    ]


def test_quote_that_never_ends(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="line 3: a quoted field does not end"):
        table(tmp_path, 'id,submit,gpus,duration\na,0,1,1\n"b,0,1,1\nc,0,1,1\n')


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_written_tables_read_back_equal(tmp_path: Path, ending: str) -> None:
    workload = generate("demo", seed=3).scale(load=1.7)
    workload.write(tmp_path / "whole")
    assert read_trace(tmp_path / "whole").equals(workload)
    for name, frame in (("apps", workload.apps), ("jobs", workload.jobs)):
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path)
        else:
            text = frame.reverse().write_csv().encode()
            path.write_bytes(gzip.compress(text) if ending == "csv.gz" else text)
    again = read_trace(str(tmp_path))
    assert again.equals(workload)
    assert again.source.paths == (
        str(tmp_path / f"apps.{ending}"),
        str(tmp_path / f"jobs.{ending}"),
    )


@pytest.mark.parametrize("version", [1, 2, 3, 5])
def test_tables_of_other_versions(tmp_path: Path, version: int) -> None:
    """Version 1 had no caps and losses, 2 no fractions, 3 no more; a newer is not known."""
    workload = generate("demo", apps=2)
    added = {"max_gpus", "target_loss", "iterations", "loss_a", "loss_b", "loss_c", "bracket"}
    added = (
        {"mixes_types", *OF_GPU}
        | (set() if version > 2 else {"gpu_milli"})
        | (set() if version > 1 else added)
    )
    metadata = {"themis.workload.workload": f'{{"schema_version": {version}}}'}
    for name, frame in (("apps", workload.apps), ("jobs", workload.jobs)):
        old = frame.drop(
            c for c in added & set(frame.columns) if frame[c].null_count() == len(frame)
        )
        old.write_parquet(tmp_path / f"{name}.parquet", metadata=metadata)
    if version < 5:
        assert read_trace(tmp_path).equals(workload)
    else:
        with pytest.raises(TraceError, match="schema version is 5: expected at most 4"):
            read_trace(tmp_path)


def test_written_workload_keeps_origin_and_notes(tmp_path: Path) -> None:
    data = Path(__file__).parents[1] / "data"
    workload = read_trace(data / "philly_log.json").group_into_apps(gap_s=1e6)
    again = read_trace(workload.write(tmp_path / "deep" / "folder"))
    assert again.equals(workload)
    assert again.notes == workload.notes
    assert again.source.origin == "2017-10-07T01:00:00"


def test_parquet_rows_are_numbered_from_one(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "submit_s": [0.0, float("nan"), 2.0, None],
            "gpus": [1, 2, -3, 4],
            "duration_s": [0.1, 1.0, 1.0, 1.0],
        }
    )
    frame.write_parquet(tmp_path / "jobs.parquet")
    workload = read_trace(tmp_path / "jobs.parquet")
    assert rejected(workload) == [
        (2, "not a finite number", "submit_s", "NaN"),
        (3, "negative number of GPUs", "gpus", "-3"),
        (4, "missing value", "submit_s", None),
    ]
    assert workload.jobs["serial_time_s"].to_list() == [0.1]


def test_jobs_of_unknown_apps_and_apps_without_jobs(tmp_path: Path) -> None:
    (tmp_path / "apps.csv").write_text("app_id,user,weight\na,ann,2\nb,bob,\n")
    (tmp_path / "jobs.csv").write_text(
        "id,app_id,submit,gpus,duration\n1,a,0,1,1\n2,zz,0,1,1\n3,,0,1,1\n"
    )
    workload = read_trace(tmp_path)
    assert workload.apps.select("app_id", "user", "weight").rows() == [("a", "ann", 2.0)]
    assert [row[:3] for row in rejected(workload)] == [
        (3, "app not in the apps table", "app_id"),
        (4, "missing value", "app_id"),
    ]
    assert "1 apps without usable jobs were left out" in notes(workload)


@pytest.mark.parametrize(
    ("apps", "message"),
    [
        (
            "app_id,weight\na,-1\n",
            r"apps\.csv, line 2: weight not positive in column 'weight': '-1'",
        ),
        ("app_id\na\na\n", r"apps\.csv, line 2: repeated id"),
        ("user\nann\n", r"apps\.csv: column 'app_id' is missing"),
    ],
)
def test_bad_apps_table(tmp_path: Path, apps: str, message: str) -> None:
    (tmp_path / "apps.csv").write_text(apps)
    (tmp_path / "jobs.csv").write_text("id,app_id,submit,gpus,duration\n1,a,0,1,1\n")
    with pytest.raises(TraceError, match=message):
        read_trace(tmp_path)


def test_directory_without_jobs_and_with_two(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no jobs\.parquet or jobs\.csv"):
        read_trace(tmp_path, "native")
    with pytest.raises(TraceError, match="no file found there"):
        read_trace(tmp_path)
    (tmp_path / "jobs.csv").write_text("id\n")
    (tmp_path / "jobs.parquet").write_text("id\n")
    with pytest.raises(TraceError, match=r"both jobs\.parquet and jobs\.csv"):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id,submit,gpus", r"column 'duration_s' is missing \(accepted: duration, duration_s"),
        ("id,submit,duration", r"column 'gang_size' is missing"),
        (
            "submit,gpus,duration",
            r"column 'job_id' is missing \(accepted: job_id, id\): found .*submit",
        ),
        ("id,job_id,submit,gpus,duration", "'job_id' and 'id' both mean job_id"),
        ("id,submit,gpus,duration,id", "column 'id' stands twice in the header"),
    ],
)
def test_bad_header(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        table(tmp_path, f"{header}\n1,2,3,4,5\n")


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("id", [["a"]], r"jobs\.parquet: column 'id' has type List"),
        ("gpus", [{"n": 1}], r"jobs\.parquet: column 'gpus' has type Struct"),
        ("duration", [timedelta(seconds=5)], r"jobs\.parquet: column 'duration' has type Duration"),
        ("id", [b"\xff"], r"jobs\.parquet: .*expected text"),
    ],
)
def test_parquet_columns_of_no_use_are_named(
    tmp_path: Path, column: str, values: list[object], says: str
) -> None:
    path = tmp_path / "jobs.parquet"
    good: dict[str, list[object]] = {"id": ["a"], "submit": [0], "gpus": [1], "duration": [5]}
    pl.DataFrame({**good, column: values}).write_parquet(path)
    with pytest.raises(TraceError, match=says):
        read_trace(path)


def test_parquet_text_without_an_encoding_is_text(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    table = {"id": [b"a"], "submit": [0], "gpus": [1], "duration": [5]}
    pl.DataFrame(table).write_parquet(path)
    assert read_trace(path).jobs["job_id"].to_list() == ["a"]


def test_shares_of_a_gpu(tmp_path: Path) -> None:
    """Work is what the share does; a share is of one GPU, in whole thousandths."""
    rows = "a,0,1,100,500\nb,0,1,100,\nc,0,2,100,500\nd,0,1,100,0\ne,0,1,100,0.5\nf,0,1,100,1000\n"
    workload = table(tmp_path, "id,submit,gpus,duration,gpu_milli\n" + rows)
    assert workload.jobs.select("job_id", "serial_time_s", "gpu_milli").rows() == [
        ("a", 50.0, 500),
        ("b", 100.0, None),
        ("f", 100.0, 1000),
    ]
    assert rejected(workload) == [
        (4, "fraction of several GPUs", "gpu_milli", "500"),
        (5, "gpu_milli not from 1 to 1000", "gpu_milli", "0"),
        (6, "gpu_milli not from 1 to 1000", "gpu_milli", "0.5"),
    ]


def test_fractional_numbers_of_gpus_are_shares_of_one(tmp_path: Path) -> None:
    text = "id,submit,num_gpus,duration\na,0,0.25,100\nb,0,1.0,10\nc,0,1.5,10\nd,0,0.0001,10\n"
    workload = table(tmp_path, text)
    jobs = workload.jobs.select("job_id", "gang_size", "max_gpus", "serial_time_s", "gpu_milli")
    assert jobs.rows() == [("a", 1, 1, 25.0, 250), ("b", 1, 1, 10.0, None)]
    assert [row[:2] for row in rejected(workload)] == [
        (4, "fraction of a GPU"),
        (5, "fraction of a GPU"),
    ]
    whole = table(tmp_path, text, repair={"fraction_of_a_gpu": "round_up"}).jobs
    assert whole.select("job_id", "gang_size", "serial_time_s", "gpu_milli").rows() == [
        ("a", 1, 100.0, None),
        ("b", 1, 10.0, None),
        ("c", 2, 20.0, None),
        ("d", 1, 10.0, None),
    ]
    bent = "id,submit,num_gpus,max_gpus,duration\na,0,0.25,2,100\nb,0,1,2,10\n"
    assert rejected(table(tmp_path, bent)) == [(2, "fraction of several GPUs", "num_gpus", "0.25")]


def test_mixes_types_is_true_false_or_nothing(tmp_path: Path) -> None:
    rows = ["id,submit,gpus,duration,mixes_types"]
    rows += [f"{k},0,2,10,{word}" for k, word in enumerate(("true", "FALSE", "1", "0", "", "yes"))]
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(rows) + "\n")
    workload = read_trace(path)
    assert workload.jobs["mixes_types"].to_list() == [True, False, True, False, None]
    assert rejected(workload) == [(7, "neither true nor false", "mixes_types", "yes")]
    workload.write(tmp_path / "again", form="csv")
    again = read_trace(tmp_path / "again")
    assert again.jobs.equals(workload.jobs)


def test_a_table_of_ones_own_is_told_what_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("submit_s,job_id,n_gpus,minutes\n0,a,4,90\n")
    lacks = (
        r"column 'gang_size' is missing \(accepted: gang_size, num_gpus, gpus\), "
        r"column 'duration_s' is missing"
    )
    with pytest.raises(TraceError, match=rf"not recognised: .*; as native: {lacks}"):
        read_trace(file)
    with pytest.raises(TraceError, match=rf"own.csv: {lacks} .*: found .*minutes"):
        read_trace(file, format="native")
