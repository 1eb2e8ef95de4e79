"""Files that expand out of all proportion are refused before they fill the memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import themis
from themis.errors import ThemisError, TraceError
from themis.files import expansion
from themis.traces import csvtext, read_trace

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEAD = b"id,submit,gpus,duration\n"
ROWS = HEAD + b"".join(b"j%d,%d,1,10\n" % (i, i) for i in range(200))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
}


@pytest.fixture
def free_bytes(monkeypatch: pytest.MonkeyPatch) -> int:
    """The limit, so low that a bomb is small."""
    monkeypatch.setattr(expansion, "_FREE_BYTES", 1 << 20)
    return 1 << 20


def archive(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.linkname = len(data), kind, "/etc/passwd"
            made.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
@pytest.mark.parametrize(
    "content",
    [HEAD + b"x" * (5 << 20), HEAD + b"a,0,1,5\n" * (1 << 19), HEAD + b"\n" * (5 << 20)],
    ids=["one line", "rows", "line ends"],
)
def test_a_bomb_is_refused(
    pack: Callable[[bytes], bytes], content: bytes, free_bytes: int, tmp_path: Path
) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pack(content))
    assert len(content) > max(free_bytes, 200 * path.stat().st_size)
    with pytest.raises(TraceError, match=r"bomb: expands more than 200-fold, beyond 1 MiB"):
        read_trace(path)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_a_bomb_in_an_archive_is_refused(
    pack: Callable[[bytes], bytes], free_bytes: int, tmp_path: Path
) -> None:
    path = tmp_path / "bomb.tar"
    bomb = HEAD + b"a,0,1,5\n" * (free_bytes // 4)
    for content in (
        pack(archive(("skipped.bin", b"\0" * (5 << 20)), ("jobs.csv", ROWS))),
        archive(("jobs.csv.packed", pack(bomb))),
        pack(archive(("jobs.csv.packed", pack(bomb)))),
    ):
        path.write_bytes(content)
        with pytest.raises(TraceError, match="expands more than 200-fold"):
            read_trace(path)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_what_stays_in_proportion_is_read(
    pack: Callable[[bytes], bytes], free_bytes: int, tmp_path: Path
) -> None:
    """Beyond the free bytes, and not below a size that the format packs well."""
    lines = b"".join(b"j%d,%d,1,%d\n" % (i, i, hash((i, 1)) % 10**6 + 1) for i in range(60_000))
    assert len(lines) > free_bytes
    plain, packed, tarred = tmp_path / "plain.csv", tmp_path / "packed", tmp_path / "packed.tar"
    plain.write_bytes(HEAD + lines)
    packed.write_bytes(pack(HEAD + lines))
    tarred.write_bytes(pack(archive(("first.md", b"words"), ("jobs.csv", HEAD + lines))))
    expected = read_trace(plain)
    assert read_trace(packed).equals(expected)
    assert read_trace(tarred).equals(expected)


def test_parquet_bombs_are_refused_unread(free_bytes: int, tmp_path: Path) -> None:
    rows = free_bytes // 8
    frame = pl.select(
        *(
            pl.repeat(value, rows).alias(name)
            for name, value in (("id", 0), ("submit_s", 0), ("gpus", 1))
        ),
        pl.repeat(5, rows).alias("duration_s"),
    )
    frame.write_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(TraceError, match=r"jobs\.parquet: expands more than 200-fold"):
        read_trace(tmp_path / "jobs.parquet")


def test_a_result_is_no_bomb_either(free_bytes: int, tmp_path: Path) -> None:
    workload = themis.generate("demo", apps=3)
    themis.simulate(workload, themis.Cluster.parse("1x8")).write(tmp_path / "result")
    usage = themis.load_result(tmp_path / "result").usage
    row = usage.head(1)
    usage = pl.concat([row] * 1000)
    pl.concat([usage] * (free_bytes // 8000)).write_parquet(tmp_path / "result" / "usage.parquet")
    with pytest.raises(ThemisError, match=r"usage\.parquet: expands more than"):
        themis.load_result(tmp_path / "result")


@pytest.mark.parametrize(("letter", "word"), [(b"x", "without an end"), (b'"', "quote")])
def test_a_record_without_an_end_is_refused(
    letter: bytes, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csvtext, "_MOST_RECORD_BYTES", 1 << 20)
    path = tmp_path / "long.csv"
    path.write_bytes(ROWS + letter + b"y" * (40 << 20))
    with pytest.raises(TraceError, match=rf"long\.csv, line 202: 1 MiB .*{word}"):
        read_trace(path)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null", "pipe"])
def test_devices_and_pipes_are_no_traces(place: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="a device or pipe"):
        read_trace(tmp_path / place)


def test_archives_of_too_many_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.tar.gz"
    path.write_bytes(gzip.compress(archive(*((f"{at}.csv", b"") for at in range(501)))))
    with pytest.raises(TraceError, match="more than 500 members"):
        read_trace(path)


def test_a_member_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.tar"
    path.write_bytes(archive(("jobs.csv", ROWS), ("jobs.csv", HEAD)))
    with pytest.raises(TraceError, match=r"member 'jobs\.csv' stands twice"):
        read_trace(path)


@pytest.mark.parametrize("name", ["../../../jobs.csv", "/etc/jobs.csv", "a/../../jobs.csv"])
def test_names_of_members_lead_nowhere(name: str, tmp_path: Path) -> None:
    """Members are read where they are and never written."""
    path = tmp_path / "inner" / "trick.tar"
    path.parent.mkdir()
    path.write_bytes(archive((name, ROWS)))
    assert read_trace(path).jobs.height == 200
    assert sorted(tmp_path.rglob("*")) == [path.parent, path]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_archives_are_not_followed(kind: bytes, tmp_path: Path) -> None:
    path = tmp_path / "links.tar"
    path.write_bytes(archive(("jobs.csv", b""), kind=kind))
    with pytest.raises(TraceError, match="an archive without files"):
        read_trace(path)
