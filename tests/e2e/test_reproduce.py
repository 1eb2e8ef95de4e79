"""`themis reproduce` as a whole command, on its two smallest experiments."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Themis = Callable[..., subprocess.CompletedProcess[str]]

ARGUMENTS = ("reproduce", "nsdi20", "--quick", "--seeds", "1", "--workers", "1")


def test_figures_come_as_tables_as_json_and_on_a_page(themis: Themis, tmp_path: Path) -> None:
    place = ("--figure", "table3", "--figure", "18", "-o", str(tmp_path / "out"))
    told = themis(*ARGUMENTS, *place)
    assert told.returncode == 0, told.stderr
    assert "Figure 18, slowdown: one of eight identical apps overstates its slowdown" in told.stdout
    assert "ok:      speed of a job of 4 GPUs of vgg16 falls (1, 1, 0.72, 0.52)" in told.stdout

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/runs/*")}
    again = themis(*ARGUMENTS, *place, "--json")
    assert again.returncode == 0, again.stderr
    document = json.loads(again.stdout)
    assert {path: path.stat().st_mtime_ns for path in before} == before  # nothing played twice
    table3, lying, _ = document["figures"]
    scores = [cell for cell in table3["cells"] if cell["series"] == "network"]
    paper = [cell["paper"] for cell in scores]
    assert [cell["median"] for cell in scores] == pytest.approx(paper)
    assert {cell["x"] for cell in lying["cells"]} == {0.1, 0.2, 0.34, 0.4, 0.5}
    verdicts = [claim["verdict"] for figure in document["figures"] for claim in figure["claims"]]
    assert document["ok"] == verdicts.count("ok")
    assert document["differs"] == verdicts.count("differs")

    page = Path(document["report"]).read_text(encoding="utf-8")
    assert page.count("<svg") == 2 + 4 + 2  # ours, and the paper's where it prints any
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page


def test_a_figure_that_is_not_there_is_bad_input(themis: Themis, tmp_path: Path) -> None:
    done = themis(*ARGUMENTS, "--figure", "8", "-o", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "figure is '8'" in done.stderr
    assert themis("reproduce", "nsdi21").returncode == 2


def test_a_setting_that_is_refused_is_bad_input(themis: Themis, tmp_path: Path) -> None:
    place = ("--figure", "18", "-o", str(tmp_path / "out"))
    done = themis(*ARGUMENTS, *place, "--set", "fairness_knob=2")
    assert done.returncode == 3
    assert "fairness_knob" in done.stderr
