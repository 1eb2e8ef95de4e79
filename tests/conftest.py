"""What the tests of whole commands share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines may be busy: time decides nothing. The same examples in every run of the checks.
settings.register_profile(
    "themis",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("themis")

Themis = Callable[..., subprocess.CompletedProcess[str]]

JOBS = """\
id,submit_s,gpus,duration,user,app_id
a1,0,2,900,ann,a
a2,0,2,1200,ann,a
b1,60,4,1500,bob,b
c1,120,1,300,cai,c
d1,120,8,600,dee,d
e1,4000,2,700,ann,e
"""


@pytest.fixture
def themis(tmp_path: Path) -> Themis:
    """The command line as a process of its own, started in an empty folder.

    Keyword arguments are environment variables.
    """

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "themis", *arguments],
            capture_output=True,
            check=False,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **environment},
            timeout=240,
        )

    return call


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Six jobs of five apps, as a native CSV file in the folder where commands start."""
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS, encoding="utf-8")
    return path
