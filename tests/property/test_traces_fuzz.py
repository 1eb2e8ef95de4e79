"""Damaged files of every format: read with full accounts or refused in one line, never a crash."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from themis.errors import ThemisError
from themis.machine_lists import read_cluster
from themis.traces import read_trace
from themis.traces.registry import READERS

DATA = Path(__file__).parents[1] / "data"
Result = TypeVar("Result")
NATIVE = (
    "id,submit,gpus,start,end,user,app_id,weight,stopping\n"
    "a,0,1,0,10,ann,x,1,all\nb,5,2,,,bob,x,1,all\nc,7,4,9,20,,y,,first\n"
)
OPTIONS: dict[str, dict[str, Any]] = {
    "openb_multigpu": {"duration_s": 60},
    "pai_instance_table": {"gpus_per_instance": 1},
    "helios": {"timezone": "America/Los_Angeles"},
}
SAMPLES = {
    path.stem: path.read_bytes()
    for path in sorted(DATA.rglob("*"))
    if path.is_file() and path.stem not in {"auction_lies", "pai_group_tag_table"}
} | {"native": NATIVE.encode()}
FORMAT = {
    name: read_trace(path, **OPTIONS.get(name, {})).source.format
    for path in sorted(DATA.rglob("*"))
    if (name := path.stem) in SAMPLES and path.is_file() and name != "pai_job_table"
} | {"native": "native", "pai_job_table": "pai"}
EXAMPLES = int(os.environ.get("THEMIS_FUZZ_EXAMPLES", "40"))
"""Damaged copies of each sample that are tried; more by hand."""

PIECES = st.one_of(
    st.binary(max_size=8),
    st.sampled_from(
        [b"\x00", b'"', b"\n", b"\r\n", b"\n\n", b",", b"|", b"\t", b";", b"\xff\xfe", b"\xc3"]
    ),
    st.sampled_from(
        [b"nan", b"inf", b"-1", b"1e19", b"1e400", b"0.5", b"None", b"99999999999999999999", b"-"]
    ),
    st.sampled_from(
        [b"2017-11-05 01:30:00", b"0000-00-00 00:00:00", b"9999-12-31 23:59:59.999999", b"{", b"[]"]
    ),
)
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(["put", "over", "cut", "twice"]), PIECES),
    min_size=1,
    max_size=6,
)
ENCODINGS = st.sampled_from(["as it is"] * 8 + ["utf-16", "utf-32", "latin-1", "half"])


def damaged(data: bytes, edits: list[tuple[float, str, bytes]], encoding: str) -> bytes:
    for where, how, piece in edits:
        at = int(where * len(data))
        if how == "put":
            data = data[:at] + piece + data[at:]
        elif how == "over":
            data = data[:at] + piece + data[at + len(piece) :]
        elif how == "cut":
            data = data[:at] + data[at + 7 :]
        else:
            data = data[:at] + data[at : at + 90] + data[at:]
    if encoding == "half":
        return data[: len(data) // 2]
    if encoding == "latin-1":
        return data.replace(b"a", "é".encode("latin-1"), 1)
    return data if encoding == "as it is" else data.decode("latin-1").encode(encoding)


def result_or_refusal(path: Path, read: Callable[[], Result]) -> Result | None:
    """What `read` returns, or None if it refuses the file with one line that names it."""
    try:
        return read()
    except ThemisError as error:
        message = str(error)
    assert path.name in message
    assert "\n" not in message
    return None


def test_every_format_is_damaged() -> None:
    assert set(FORMAT.values()) == set(READERS)
    assert set(FORMAT) == set(SAMPLES)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == 40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(edits=EDITS, encoding=ENCODINGS, named=st.booleans())
@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_damaged_files_are_read_or_refused(
    tmp_path: Path,
    sample: str,
    edits: list[tuple[float, str, bytes]],
    encoding: str,
    *,
    named: bool,
) -> None:
    path = tmp_path / "damaged.trace"
    path.write_bytes(damaged(SAMPLES[sample], edits, encoding))
    result_or_refusal(path, lambda: read_cluster(path))
    format_name = FORMAT[sample] if named else None
    options = OPTIONS.get(sample, {}) if named else {}
    workload = result_or_refusal(path, lambda: read_trace(path, format_name, **options))
    if workload is None:
        return
    report = workload.source.report
    assert report is not None
    assert report.rows == report.jobs + report.rejected.height
    assert report.jobs == workload.jobs.height
    assert report.rejected["line"].is_unique().all()
    assert report.rejected["reason"].str.len_chars().min() or report.rejected.is_empty()
    assert sum(p.count for p in report.problems if p.rejected) == report.rejected.height
    for frame in (workload.apps, workload.jobs):
        for series in frame.get_columns():
            if series.dtype == pl.Float64:
                assert series.drop_nulls().is_finite().all()
    assert workload.check().to_text()
