"""Every kind of bad input: exit code 3, one message, nothing on stdout, nothing half-written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Themis = Callable[..., subprocess.CompletedProcess[str]]

ON_4 = ("--trace", "jobs.csv", "--cluster", "2x4", "--out", "out")


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refused(themis: Themis, folder: Path, *arguments: str) -> str:
    before = listing(folder)
    done = themis(*arguments)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert done.stderr.startswith("themis: error: ")
    assert done.stderr.count("themis: ") == 1
    assert "Traceback" not in done.stderr
    assert listing(folder) == before
    return done.stderr.removeprefix("themis: error: ").rstrip("\n")


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trace", "absent.csv", "--cluster", "1x4"), ["absent.csv"]),
        ((*ON_4, "--format", "phily"), ["phily", "philly"]),
        ((*ON_4, "--option", "unt=s", "--format", "native"), ["unt", "unit"]),
        (("--trace", "jobs.csv", "--cluster", "8x(8"), ["8x(8"]),
        (("--trace", "jobs.csv", "--cluster", "0x4"), ["0"]),
        (("--trace", "jobs.csv", "--cluster", "absent.toml"), ["absent.toml"]),
        ((*ON_4, "--set", "lease=3"), ["lease", "lease_s"]),
        ((*ON_4, "--set", "lease_s=-3"), ["settings.lease_s = -3"]),
        ((*ON_4, "--set", "payment=free"), ["policy.payment", "lottery"]),
        ((*ON_4, "--set", "bid_error=1.5"), ["settings.bid_error", "must be < 1"]),
        ((*ON_4, "--set", "workload.lod=2"), ["workload.lod", "load"]),
        ((*ON_4, "--set", "settings=3"), ["settings"]),
        (("absent.toml", "--out", "out"), ["absent.toml: no such file"]),
        ((*ON_4, "--option", "path=x"), ["options.path"]),
        (("--generate", "demo", "--cluster", "1x4", "--option", "spec=x"), ["params.spec"]),
        (("--generate", "demo", "--cluster", "1x4", "--option", "seed=x"), ["seed"]),
        (("--generate", "dem", "--cluster", "1x4"), ["dem", "demo"]),
        (("--generate", "demo", "--cluster", "1x4", "--option", "aps=3"), ["aps", "apps"]),
    ],
)
def test_inputs_of_simulations(
    command: str,
    arguments: tuple[str, ...],
    words: list[str],
    themis: Themis,
    trace: Path,
) -> None:
    message = refused(themis, trace.parent, command, *arguments)
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize(
    "arguments", [("run", "--policy", "fife"), ("compare", "--policies", "themis,fife")]
)
def test_an_unknown_policy_is_named_with_the_nearest(
    arguments: tuple[str, ...], themis: Themis, trace: Path
) -> None:
    message = refused(themis, trace.parent, *arguments, *ON_4)
    assert "'fife'" in message
    assert "fifo" in message


@pytest.mark.parametrize("policies", ["", ",", "fifo,fifo"])
def test_no_policy_and_one_twice_are_refused(policies: str, themis: Themis, trace: Path) -> None:
    assert "policy" in refused(themis, trace.parent, "compare", "--policies", policies, *ON_4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["jobs.csv"]),
        (b"id,submit_s,gpus,duration\n", ["jobs.csv"]),
        (b"some,other,columns\n1,2,3\n", ["jobs.csv"]),
        (b"\x1f\x8b\x08damaged", ["jobs.csv"]),
        (b"\xff\xfe\x00", ["jobs.csv"]),
    ],
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_traces_that_cannot_be_used(
    command: str, content: bytes, words: list[str], themis: Themis, trace: Path
) -> None:
    trace.write_bytes(content)
    arguments = ("jobs.csv",) if command == "check" else ON_4[0:2] + ON_4[2:]
    message = refused(themis, trace.parent, command, *arguments)
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize("option", ["path=x", "format=x", "cluster=x", "unt=s"])
def test_options_that_a_format_does_not_have(option: str, themis: Themis, trace: Path) -> None:
    name = option.split("=", maxsplit=1)[0]
    assert name in refused(themis, trace.parent, "check", "jobs.csv", "--option", option)


def test_a_folder_is_no_trace_and_no_scenario(themis: Themis, trace: Path) -> None:
    (trace.parent / "folder").mkdir()
    refused(themis, trace.parent, "check", "folder")
    refused(themis, trace.parent, "run", "folder", "--out", "out")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"offer": []}',
        '{"unknown": 1}',
        '{"schema_version": 99}',
    ],
)
def test_auction_files(content: str, themis: Themis, tmp_path: Path) -> None:
    (tmp_path / "auction.json").write_text(content, encoding="utf-8")
    assert "auction.json" in refused(themis, tmp_path, "auction", "auction.json")


def test_a_missing_auction_file(themis: Themis, tmp_path: Path) -> None:
    assert "absent.json" in refused(themis, tmp_path, "auction", "absent.json")


def test_reports_of_what_is_no_result(themis: Themis, trace: Path) -> None:
    folder = trace.parent
    assert "absent" in refused(themis, folder, "report", "absent")
    assert "jobs.csv" in refused(themis, folder, "report", "jobs.csv")
    (folder / "empty").mkdir()
    assert "manifest.json" in refused(themis, folder, "report", "empty")
    (folder / "empty" / "manifest.json").write_text("{}", encoding="utf-8")
    assert "manifest.json" in refused(themis, folder, "report", "empty")


def test_report_pages_are_not_written_over_other_files(themis: Themis, trace: Path) -> None:
    folder = trace.parent
    assert "jobs.csv" in refused(themis, folder, "report", "x", "-o", "jobs.csv")
    assert "no/page.html" in refused(themis, folder, "report", "x", "-o", "no/page.html")


@pytest.mark.parametrize("command", ["run", "compare", "demo"])
def test_output_folders_are_refused_before_the_run(
    command: str, themis: Themis, trace: Path
) -> None:
    folder = trace.parent
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.tex").write_text("x", encoding="utf-8")
    arguments = () if command == "demo" else ON_4[:4]
    for out, word in (
        ("jobs.csv", "not a directory"),
        ("jobs.csv/out", "cannot be written"),
        ("mine", "thesis.tex"),
        (".", "holds"),
    ):
        assert word in refused(themis, folder, command, *arguments, "--out", out)
