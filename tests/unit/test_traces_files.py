"""Files that are no trace, and the choice of a reader."""

from __future__ import annotations

import gzip
import hashlib
import pickle
from pathlib import Path

import polars as pl
import pytest

from themis.errors import TraceError
from themis.traces import csvtext, read_trace, source
from themis.traces.registry import READERS

DATA = Path(__file__).parents[1] / "data"
GOOD = b"id,submit,gpus,duration\n" + b"".join(b"j%d,%d,1,10\n" % (i, i) for i in range(200))


@pytest.mark.parametrize("format_name", [None, *READERS])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\x12\t\xf1a2" + b"\x00" * 40, "binary data"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary data"),
        (b"PK\x03\x04rest", "a ZIP archive"),
        (b"\xff\xfei\x00d\x00", "UTF-16 text"),
        (gzip.compress(GOOD, mtime=0)[:-20], "truncated gzip file"),
        (gzip.compress(GOOD, mtime=0)[:40] + b"garbage" * 9, "gzip file"),
        (b"PAR1 not really", "damaged Parquet file"),
        (b"\x28\xb5\x2f\xfdnot really", "damaged Zstandard file"),
        (b"id,submit\n\xe9,1\n", "line 2: byte 0xe9 is not UTF-8"),
    ],
)
def test_no_trace_is_one_clear_error(
    tmp_path: Path, content: bytes, message: str, format_name: str | None
) -> None:
    path = tmp_path / "broken.dat"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"broken\.dat") as caught:
        read_trace(path, format_name)
    assert message in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="none: no such file"):
        read_trace(tmp_path / "none")
    with pytest.raises(TraceError, match="no file found there"):
        read_trace(tmp_path, "philly")
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace("bad\x00name")


def test_a_file_whose_bytes_cannot_be_read(tmp_path: Path) -> None:
    path = Path("/proc/self/mem")
    if not path.exists():
        pytest.skip("needs a file that opens and cannot be read")
    with pytest.raises(TraceError, match="/proc/self/mem: cannot be read"):
        read_trace(path)
    (tmp_path / "link.csv").symlink_to(path)
    with pytest.raises(TraceError, match=r"link\.csv: cannot be read"):
        read_trace(tmp_path / "link.csv")


def test_late_byte_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(GOOD * 1 + b"x,1,1,\xff\n")
    with pytest.raises(TraceError, match=r"late\.csv, line 202: byte 0xff is not UTF-8"):
        read_trace(path, "native")


def test_formats_are_recognised_by_content(tmp_path: Path) -> None:
    for name, expected in (
        ("philly_log.json", "philly"),
        ("philly_pollux.csv", "philly"),
        ("hyperdrive.csv", "hyperdrive"),
    ):
        copy = tmp_path / f"{expected}.any"
        copy.write_bytes((DATA / name).read_bytes())
        found = read_trace(copy).source
        assert found.format == expected
        assert found.recognised
        assert found.sha256 == hashlib.sha256(copy.read_bytes()).hexdigest()
        assert found.paths == (str(copy),)


def test_wrong_and_unknown_formats() -> None:
    with pytest.raises(TraceError, match="not a philly trace: it looks like hyperdrive"):
        read_trace(DATA / "hyperdrive.csv", "philly")
    with pytest.raises(TraceError, match=r"format 'phily' is unknown \(did you mean 'philly'\?\)"):
        read_trace(DATA / "hyperdrive.csv", "phily")


def test_unrecognised_text_shows_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("apples,pears\n1,2\n")
    with pytest.raises(TraceError, match="first line is: apples, pears; expected one of philly"):
        read_trace(path)
    with pytest.raises(TraceError, match="column 'timestamp' is missing: found a text file"):
        read_trace(path, "philly")


def test_no_usable_row_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,submit,gpus,duration\na,0,1,-4\nb,0,1,-5\n")
    with pytest.raises(
        TraceError,
        match=r"none of the 2 rows can be used: 2 x negative duration in column 'duration' "
        r"\(first at line 2, for example '-4'\)",
    ):
        read_trace(path)
    path.write_text("id,submit,gpus,duration\na,0,1,4,5,6\n")
    with pytest.raises(TraceError, match=r"1 x too many fields \(first at line 2"):
        read_trace(path)
    path.write_text("id,submit,gpus,duration\n")
    with pytest.raises(TraceError, match="no rows after the header"):
        read_trace(path)


def test_compressed_files_read_equal(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "b"
    plain.write_bytes(GOOD)
    packed.write_bytes(gzip.compress(GOOD, mtime=0))
    assert read_trace(plain).equals(read_trace(packed))
    pl.read_csv(GOOD).write_csv(tmp_path / "c", compression="zstd", check_extension=False)
    assert (tmp_path / "c").read_bytes().startswith(b"\x28\xb5\x2f\xfd")
    assert read_trace(plain).equals(read_trace(tmp_path / "c"))


def test_blocks_do_not_change_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    rows = [
        f'"j{i}","u\n{i}",{i},{i % 3},10' if i % 5 else ("" if i % 2 else f"x{i},,bad,1,1")
        for i in range(300)
    ]
    path.write_text("\n\nid,user,submit,gpus,duration\n" + "\n".join(rows))
    whole = read_trace(path)
    monkeypatch.setattr(source, "BLOCK_BYTES", 37)
    pieces = read_trace(path)
    assert pieces.equals(whole)
    assert whole.source.report is not None
    assert pieces.source.report is not None
    assert pieces.source.report.rejected.equals(whole.source.report.rejected)
    text = path.read_text().split("\n")
    for line, reason, _, _ in whole.source.report.rejected.iter_rows():
        assert (text[line - 1] == "") == (reason == "empty line")
    assert whole.source.report.rejected.height == 60
    assert csvtext.SHAPE[1] == "empty line"
