"""The examples run as a user would run them, and print what is stored beside them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))

NEEDS = {"05_optuna_hyperband": "optuna"}
"""Examples that need an extra."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_its_stored_output(example: Path, tmp_path: Path) -> None:
    extra = NEEDS.get(example.stem, "themis")
    if importlib.util.find_spec(extra) is None:
        pytest.skip(f"{extra} is not installed")
    done = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == example.with_suffix(".out").read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def test_every_output_has_its_example() -> None:
    assert EXAMPLES
    outputs = sorted(EXAMPLES[0].parent.glob("*.out"))
    assert outputs == [example.with_suffix(".out") for example in EXAMPLES]
