"""Outputs never land on inputs, on files of others, or on what a link points at."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Themis = Callable[..., subprocess.CompletedProcess[str]]

ON_8 = ("--cluster", "2x4", "--quiet")


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder and a file that links point at; they must be the same in the end."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years", encoding="utf-8")
    (tmp_path / "to_folder").symlink_to(folder)
    (tmp_path / "to_file.html").symlink_to(folder / "thesis.tex")
    (tmp_path / "to_nothing").symlink_to(tmp_path / "nothing")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
    assert (folder / "thesis.tex").read_text(encoding="utf-8") == "years"
    assert not (tmp_path / "nothing").exists()


@pytest.fixture
def result(themis: Themis, trace: Path) -> Path:
    done = themis("run", "--trace", "jobs.csv", *ON_8, "--policy", "fifo", "--out", "result")
    assert done.returncode == 0, done.stderr
    return trace.parent / "result"


@pytest.mark.parametrize("link", ["to_folder", "to_folder/", "to_file.html", "to_nothing"])
@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
@pytest.mark.usefixtures("victim")
def test_directories_are_not_written_through_links(
    command: str, force: tuple[str, ...], link: str, themis: Themis, trace: Path
) -> None:
    axis = ("--axis", "lease_s=300") if command == "sweep" else ()
    done = themis(command, "--trace", trace.name, *ON_8, *axis, "--out", link, *force)
    assert done.returncode == 3
    assert "exists and is not a directory" in done.stderr


@pytest.mark.usefixtures("victim")
def test_a_page_takes_the_place_of_a_link(themis: Themis, result: Path) -> None:
    for arguments in (
        ("report", result.name, "-o", "to_file.html"),
        ("check", "jobs.csv", "--html", "to_file.html"),
    ):
        link = result.parent / "to_file.html"
        link.unlink()
        link.symlink_to(result.parent / "victim" / "thesis.tex")
        assert themis(*arguments).returncode == 0
        assert not link.is_symlink()
        assert link.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_figures_and_tables_take_the_place_of_links(
    themis: Themis, result: Path, victim: Path
) -> None:
    folder = result.parent / "drawn"
    folder.mkdir()
    (folder / "rho.svg").symlink_to(victim / "thesis.tex")
    done = themis("report", result.name, "-o", "page.html", "--figures", "drawn")
    assert done.returncode == 0, done.stderr
    assert not (folder / "rho.svg").is_symlink()


def test_links_inside_a_result_are_not_followed_when_it_is_replaced(
    themis: Themis, result: Path, victim: Path
) -> None:
    (result / "leases.parquet").unlink()
    (result / "leases.parquet").symlink_to(victim / "thesis.tex")
    assert themis("report", result.name, "-o", "page.html").returncode == 3
    again = ("run", "--trace", "jobs.csv", *ON_8, "--policy", "fifo", "--out", result.name)
    assert themis(*again).returncode == 0
    assert not (result / "leases.parquet").is_symlink()


@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
def test_what_a_run_reads_is_not_replaced_by_it(command: str, themis: Themis, trace: Path) -> None:
    folder = trace.parent / "mine"
    folder.mkdir()
    shutil.copy(trace, folder / "jobs.csv")
    axis = ("--axis", "lease_s=300") if command == "sweep" else ()
    arguments = (command, "--trace", "mine/jobs.csv", *ON_8, *axis, "--out", "mine", "--force")
    done = themis(*arguments)
    assert done.returncode == 3
    assert "mine/jobs.csv: name a directory of its own" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["jobs.csv"]


def test_a_scenario_file_is_not_replaced_by_its_run(themis: Themis, trace: Path) -> None:
    folder = trace.parent / "mine"
    folder.mkdir()
    text = themis("run", "--trace", "jobs.csv", *ON_8, "--print-scenario").stdout
    (folder / "run.toml").write_text(text, encoding="utf-8")
    done = themis("run", "mine/run.toml", "--out", "mine", "--force")
    assert done.returncode == 3
    assert (folder / "run.toml").is_file()


@pytest.mark.parametrize("command", [("convert", "jobs.csv"), ("generate", "demo")])
def test_tables_of_others_are_not_replaced(
    command: tuple[str, ...], themis: Themis, result: Path
) -> None:
    before = {path.name: path.read_bytes() for path in result.iterdir()}
    done = themis(*command, "-o", result.name)
    assert done.returncode == 3
    assert "jobs.parquet: is there already" in done.stderr
    assert {path.name: path.read_bytes() for path in result.iterdir()} == before


def test_a_trace_is_not_replaced_by_its_conversion_but_a_conversion_is(
    themis: Themis, trace: Path
) -> None:
    raw = trace.read_bytes()
    done = themis("convert", "jobs.csv", "--to", "csv", "-o", ".")
    assert done.returncode == 3
    assert "jobs.csv: is there already" in done.stderr
    assert trace.read_bytes() == raw
    for form in ("csv", "parquet"):
        for _ in range(2):
            assert themis("convert", "jobs.csv", "--to", form, "-o", form).returncode == 0
