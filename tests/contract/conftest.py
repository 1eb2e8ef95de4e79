from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Themis = Callable[..., subprocess.CompletedProcess[str]]


def start(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "themis", *arguments],
        capture_output=True,
        check=False,
        text=True,
        cwd=cwd,
        env=env,
        timeout=120,
    )


@pytest.fixture
def themis(tmp_path: Path) -> Themis:
    """The command line as a process of its own, started in an empty folder."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return start(*arguments, cwd=tmp_path)

    return call
