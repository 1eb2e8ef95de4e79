from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from themis.cli.compare import _keeping_finished_runs, _Watch
from themis.cli.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_bar_off_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("themis", quiet=False) as progress:
        assert progress is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("quiet", "drawn"), [(False, True), (True, False)])
def test_a_bar_on_a_terminal_unless_quiet(
    *, quiet: bool, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar("themis", quiet=quiet) as progress:
        assert (progress is not None) == drawn
        if progress is not None:
            progress(3, 12, 2 * 86_400.0)
    assert ("3/12" in terminal.getvalue()) == drawn
    assert ("day 2.0" in terminal.getvalue()) == drawn


def test_each_run_is_timed_once(capsys: pytest.CaptureFixture[str]) -> None:
    watch = _Watch(quiet=False)
    with watch.stack:
        for policy, seed, jobs in [("fifo", 0, 1), ("fifo", 0, 2), ("fifo", 1, 1), ("las", 0, 9)]:
            watch(policy, seed, jobs, 9, 0.0)
    watch.finish()
    watch.finish()
    lines = capsys.readouterr().err.splitlines()
    assert [line.rsplit(": ", 1)[0] for line in lines] == [
        "themis: fifo, seed 0",
        "themis: fifo, seed 1",
        "themis: las, seed 0",
    ]


@pytest.mark.parametrize(("left", "said"), [(True, True), (False, False)])
def test_finished_runs_are_pointed_out_when_a_later_one_fails(
    *, left: bool, said: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    def compare() -> None:
        with _keeping_finished_runs(str(out)):
            if left:
                out.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare()
    assert (str(out) in capsys.readouterr().err) == said
