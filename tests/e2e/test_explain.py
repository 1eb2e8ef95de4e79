"""`themis explain` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import Themis


@pytest.fixture
def result(themis: Themis, trace: Path) -> Path:
    done = themis("run", "--trace", str(trace), "--cluster", "2x4", "--out", "result", "-q")
    assert done.returncode == 0, done.stderr
    return trace.parent / "result"


def test_text_and_json_tell_the_same(themis: Themis, result: Path) -> None:
    text = themis("explain", str(result), "--app", "d", "--quiet")
    assert (text.returncode, text.stderr) == (0, "")
    assert text.stdout.startswith("app 'd' needs 8 GPUs at once: submitted at 120 s")
    document = json.loads(themis("explain", str(result), "--app", "d", "--json").stdout)
    assert document["why"] == text.stdout.split("\n\n")[0].splitlines()
    assert document["smallest_change"] in document["changes"]
    assert document["at_s"] == document["app"]["first_gpu_s"]
    assert {row["app_id"] for row in document["holders"]} <= {"a", "b", "c"}


def test_without_what_if_nothing_is_tried(themis: Themis, result: Path) -> None:
    done = themis("explain", str(result), "--job", "d1", "--no-what-if", "--json")
    document = json.loads(done.stdout)
    assert document["changes"] is None
    assert "trying" not in done.stderr


def test_who_is_not_there_is_bad_input(themis: Themis, result: Path) -> None:
    done = themis("explain", str(result), "--job", "d2")
    assert (done.returncode, done.stdout) == (3, "")
    assert "job 'd2' is not in the result (did you mean 'd1'?)" in done.stderr
    assert themis("explain", str(result)).returncode == 2
    assert themis("explain", str(result), "--app", "d", "--job", "d1").returncode == 2
    assert themis("explain", "nowhere", "--app", "d").returncode == 3


def test_a_comparison_names_its_results(themis: Themis, trace: Path) -> None:
    flags = ("--trace", str(trace), "--cluster", "2x4", "--policies", "themis,fifo", "-q")
    assert themis("compare", *flags, "--out", "both").returncode == 0
    whole = themis("explain", "both", "--app", "d")
    assert whole.returncode == 3
    assert "a comparison: name one of its results, such as both/fifo" in whole.stderr
    one = themis("explain", "both/fifo", "--app", "d", "--json")
    assert json.loads(one.stdout)["policy"] == "fifo"


def test_an_infeasible_app_is_told_why(themis: Themis, trace: Path) -> None:
    flags = ("--trace", str(trace), "--cluster", "1x4", "--out", "small", "-q")
    assert themis("run", *flags).returncode == 0
    document = json.loads(themis("explain", "small", "--app", "d", "--json").stdout)
    assert document["app"]["state"] == "infeasible"
    assert document["waits"] == []
    assert document["smallest_change"]["kind"] == "gang"
