"""Readers of other packages, found by their entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from themis.traces import read_trace
from themis.traces.registry import GROUP, READERS, readers

MODULE = """
from themis.traces.table import Table
from themis.traces.tabular import table_reader

READER = table_reader(
    Table(
        name="lab", title="log of our lab", known_by=("ticket", "cards"), unit="min",
        job_id="ticket", submit="at", duration="minutes", gpus="cards",
    )
)
SAME = table_reader(Table(name="helios", title="", known_by=("zzz",), gpus="g", duration="d"))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution that offers one good reader; returns its entry points file."""
    (tmp_path / "lab_traces.py").write_text(MODULE)
    about = tmp_path / "lab_traces-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-traces\nVersion: 1.0\n")
    points = about / "entry_points.txt"
    points.write_text(f"[{GROUP}]\nlab = lab_traces:READER\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    readers.cache_clear()
    yield points
    readers.cache_clear()
    sys.modules.pop("lab_traces", None)


@pytest.mark.usefixtures("package")
def test_a_reader_of_another_package_is_recognised(tmp_path: Path) -> None:
    assert list(readers()) == [*READERS, "lab"]
    path = tmp_path / "log.csv"
    path.write_text("ticket,at,minutes,cards\na,2,10,4\n")
    for format_name in (None, "lab"):
        workload = read_trace(path, format_name)
        assert workload.source.format == "lab"
        assert workload.jobs.select("submit_s", "serial_time_s").rows() == [(120.0, 2400.0)]


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("lab_traces:NOTHING", "cannot be loaded: AttributeError"),
        ("no_such_module:READER", "cannot be loaded: ModuleNotFoundError"),
        ("lab_traces:__name__", "is a str: expected a themis.traces.reader.Reader"),
        ("lab_traces:SAME", "has the name 'helios' of another reader"),
    ],
)
def test_a_broken_reader_is_a_warning(package: Path, point: str, message: str) -> None:
    package.write_text(f"[{GROUP}]\nlab = {point}\n")
    with pytest.warns(UserWarning, match=rf"reader 'lab' \({point}\) {message}"):
        assert dict(readers()) == dict(READERS)
