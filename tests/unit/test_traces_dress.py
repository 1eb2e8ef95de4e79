"""What must not matter in any format: order of the rows, line ends, byte-order mark, time zone."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from themis.checking.check import CheckReport
from themis.traces import read_trace
from themis.traces.registry import READERS
from themis.workload.workload import Workload

DATA = Path(__file__).parents[1] / "data"
TRACES = {
    path.stem: path
    for folder in (DATA, DATA / "traces")
    for path in sorted(folder.iterdir())
    if path.stem not in {"auction_lies", "traces"}
}
"""Samples of all formats but native, by their names; PAI is a folder."""
OPTIONS: dict[str, dict[str, Any]] = {"openb_multigpu": {"duration_s": 60}}
NATIVE = (
    "id,submit,gpus,start,end,user\n"
    "a,0,1,0,10,ann\nb,5,2,,,bob\nc,7,4,9,20,\nc,7,4,9,20,\nd,-1,x,3,4,dee\ne,9,1,9,,ann\n"
)
HEADLESS = {"pai", "gavel7", "gavel10", "shockwave12"}
DRESSES = list(itertools.product(["\n", "\r\n"], [b"", b"\xef\xbb\xbf"], [1, 2]))


def dressed(text: str, *, headless: bool, end: str, mark: bytes, seed: int) -> bytes:
    """The rows of a file in another order, with other line ends, without the last one."""
    order = random.Random(seed)  # noqa: S311 - any order will do
    if text.startswith("["):
        entries = json.loads(text)
        return mark + json.dumps(order.sample(entries, len(entries)), indent=1).replace(
            "\n", end
        ).encode("utf-8")
    lines = text.splitlines()
    comments = [at for at, line in enumerate(lines) if line.startswith(";")]
    head = 0 if headless else 1 + max(comments, default=0)
    rows = order.sample(lines[head:], len(lines) - head)
    last = end if rows and not rows[-1] else ""  # an empty line is one only if it ends
    return mark + (end.join([*lines[:head], *rows]) + last).encode("utf-8")


def accounts(workload: Workload) -> tuple[object, ...]:
    """All that a report says but for the places of the rows."""
    report = workload.source.report
    assert report is not None
    assert report.rows == report.jobs + report.rejected.height
    counts = sorted((p.name, p.column, p.count, p.rejected) for p in report.problems)
    check: CheckReport = workload.check()
    return (
        *(workload.source.format, workload.source.origin, report.rows, counts, report.notes),
        *(check.gpu_s_rows, check.gpu_s_read, check.censoring, check.gangs),
    )


@pytest.mark.parametrize(("end", "mark", "seed"), DRESSES)
@pytest.mark.parametrize("name", [*TRACES, "native"])
def test_dress_and_order_do_not_matter(
    name: str, end: str, mark: bytes, seed: int, tmp_path: Path
) -> None:
    options = OPTIONS.get(name, {})
    sample = TRACES.get(name, tmp_path / "native.csv")
    if name == "native":
        sample.write_text(NATIVE)
    files = sorted(sample.iterdir()) if sample.is_dir() else [sample]
    target = tmp_path / "dressed" / sample.name
    for file in files:
        copy = target / file.name if sample.is_dir() else target
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(
            dressed(file.read_text(), headless=name in HEADLESS, end=end, mark=mark, seed=seed)
        )
    plain, other = read_trace(sample, **options), read_trace(target, **options)
    assert other.equals(plain)
    mine, theirs = (
        re.sub(r"line \d+", "", str(accounts(workload)).replace(str(path), ""))
        for workload, path in ((plain, sample), (other, target))
    )
    assert theirs == mine


def test_samples_are_of_every_format(tmp_path: Path) -> None:
    (tmp_path / "native.csv").write_text(NATIVE)
    paths = [*TRACES.values(), tmp_path / "native.csv"]
    formats = {read_trace(path, **OPTIONS.get(path.stem, {})).source.format for path in paths}
    assert formats == set(READERS)


def test_the_zone_of_the_machine_does_not_matter(tmp_path: Path) -> None:
    """One process a zone reads all samples, as they stand and with a zone of their own."""
    (tmp_path / "native.csv").write_text(NATIVE)
    code = (
        "import sys, themis\n"
        "for path in sys.argv[1:]:\n"
        "    for options in ({}, {'timezone': 'America/Los_Angeles'}, {'duration_s': 60}):\n"
        "        try:\n"
        "            workload = themis.read_trace(path, **options)\n"
        "        except themis.TraceError as error:\n"
        "            print(error)\n"
        "        else:\n"
        "            print(workload.check().to_text())\n"
        "            print(workload.jobs.rows(), workload.apps.rows())\n"
    )
    paths = [str(path) for path in (*TRACES.values(), tmp_path / "native.csv")]
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, *paths],
            env={**os.environ, "TZ": zone},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for zone in ("UTC", "Asia/Shanghai", "America/Los_Angeles")
    }
    assert len(seen) == 1
