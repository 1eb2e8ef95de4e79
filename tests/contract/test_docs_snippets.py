"""The Python of README.md and docs/*.md runs, and prints what the page says.

Every fenced ``python`` block is a program. The blocks of a page run in order, in one namespace and
one folder; a ``text`` block right after one is what it prints. A block after the line
``<!-- not run -->`` is not run.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SAMPLES = {
    "cluster_job_log": "philly_log.json",
    "philly.csv": "philly_pollux.csv",
    "hyperdrive.csv": "hyperdrive.csv",
}
"""Files that a page may read, and where the tests keep a small one of the kind."""

BLOCK = re.compile(
    r"(?P<skip><!-- not run -->\n+)?"
    r"^```python\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<out>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A program of a page, its first line there, and what it prints if the page says so."""

    code: str
    line: int
    printed: str | None


def blocks(text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        if found["skip"] is None:
            line = text.count("\n", 0, found.start("code")) + 1
            yield Block(found["code"], line, found["out"])


def with_code() -> list[Path]:
    return [page for page in PAGES if any(blocks(page.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", with_code(), ids=lambda page: page.name)
def test_the_python_of_a_page_runs_and_prints_what_it_says(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, sample in SAMPLES.items():
        shutil.copy(ROOT / "tests" / "data" / sample, tmp_path / name)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        lines = "\n" * (block.line - 1)  # a traceback then names the line of the page
        exec(compile(lines + block.code, str(page), "exec"), namespace)  # noqa: S102 - our own page
        printed = capsys.readouterr().out
        if block.printed is not None:
            assert printed == block.printed, f"{page.name}, line {block.line}"


def test_blocks_are_found_with_their_lines_and_output() -> None:
    text = (
        "a\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n"
        "<!-- not run -->\n```python\nfail\n```\n```console\n$ y\n```\n```python\nz\n```\n"
    )
    assert list(blocks(text)) == [Block("x = 1\nprint(x)\n", 3, "1\n"), Block("z\n", 18, None)]


def test_the_pages_that_explain_figures_have_programs() -> None:
    assert {"README.md", "simulation.md", "traces.md"} <= {page.name for page in with_code()}
