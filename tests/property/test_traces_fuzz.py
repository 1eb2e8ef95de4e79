"""Damaged files of every format: read with full accounts or refused in one line, never a crash."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.damage import EDITS, ENCODINGS, damaged, result_or_refusal

from themis.traces import read_trace
from themis.traces.machine_lists import read_cluster
from themis.traces.registry import READERS
from themis.workload.workload import Workload

DATA = Path(__file__).parents[1] / "data"
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
EXAMPLES = int(os.environ.get("THEMIS_FUZZ_EXAMPLES", "60"))
"""Damaged files a reader that are tried; more by hand."""
BYTES = int(os.environ.get("THEMIS_FUZZ_BYTES", "0"))
"""Bytes that each reader is given at least, by trying as many damaged files as that takes."""
HEADLESS = {"gavel", "pai", "swf", "sacct"}
"""Formats whose files have no header, or may have none or comments."""
BLANK = b" \t\r\n\x0b\x0c"
WITHOUT_IDS = {"philly", "gavel"}
"""Formats of which the first cell of a line is no id."""


def longer(sample: str, size: int) -> bytes:
    """The sample, its rows repeated up to about `size` bytes, under new ids if they have ids."""
    data = SAMPLES[sample]
    copies = 1 + size // len(data)
    if data.startswith(b"["):
        return json.dumps(json.loads(data) * copies).encode()
    head, *rows = data.rstrip(b"\n").split(b"\n")
    mark = b"" if FORMAT[sample] in WITHOUT_IDS else b"1"
    return b"\n".join([head, *(mark * copy + row for copy in range(copies) for row in rows), b""])


def check_accounts(path: Path, workload: Workload) -> None:
    """Every row is a job or reported, and no number is none."""
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
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if b'"' not in data and workload.source.format not in HEADLESS:
        # counted otherwise: each line after the first that is not blank
        lines = data.lstrip(BLANK).removesuffix(b"\n").split(b"\n")
        assert report.rows == len(lines) - 1


def test_every_format_is_damaged() -> None:
    assert set(FORMAT.values()) == set(READERS)
    assert set(FORMAT) == set(SAMPLES)


@pytest.mark.timeout(0 if BYTES else 300)
@pytest.mark.parametrize("reader", sorted(READERS))
def test_damaged_files_are_read_or_refused(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "damaged.trace"
    samples = sorted(name for name, kind in FORMAT.items() if kind == reader)
    fed = read = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=timedelta(seconds=20) if BYTES else None,
        derandomize=not BYTES,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        sample=st.sampled_from(samples),
        size=st.integers(1, 24_000),
        edits=EDITS,
        encoding=ENCODINGS,
        named=st.booleans(),
    )
    def try_one(
        sample: str,
        size: int,
        edits: list[tuple[float, str, bytes]],
        encoding: str,
        *,
        named: bool,
    ) -> None:
        nonlocal fed, read
        fed += path.write_bytes(damaged(longer(sample, size), edits, encoding))
        result_or_refusal(path, lambda: read_cluster(path))
        format_name = reader if named else None
        options = OPTIONS.get(sample, {}) if named else {}
        workload = result_or_refusal(path, lambda: read_trace(path, format_name, **options))
        if workload is not None:
            read += 1
            check_accounts(path, workload)

    try_one()
    while fed < BYTES:
        try_one()
    sys.stdout.write(f"{reader}: {fed:,} damaged bytes, {read:,} of the files read\n")
    assert read  # damage that is always refused would test little
