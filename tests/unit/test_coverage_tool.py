"""What `make coverage` prints of sources with counts."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
LISTING = """\
/home/any/rust/themis-core/src/auction/few.rs
    1|       |//! Few bidders.
    2|      3|fn one() {
    3|      0|    two();
    4|      3|}
    5|       |#[cfg(test)]
    6|      0|fn of_tests() {}

/home/any/.cargo/registry/src/index/numpy-1.0.0/src/lib.rs
    1|      0|fn of_others() {}
rust/themis-sim/src/engine.rs
    1|      7|fn three() {}
"""


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_tool", ROOT / "tools/coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def test_lines_that_never_ran_are_named_those_of_tests_and_others_left_out(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(LISTING))
    assert tool.main(tool.FOLDERS) == 0
    assert capsys.readouterr().out.splitlines() == [
        "  66.7% of    3  rust/themis-core/src/auction/few.rs",
        " 100.0% of    1  rust/themis-sim/src/engine.rs",
        "  75.0% of    4  in all",
        "",
        "rust/themis-core/src/auction/few.rs:3: two();",
    ]


def test_a_listing_of_nothing_is_an_error(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert tool.main(tool.FOLDERS) == 1
    assert "cov show" in capsys.readouterr().err
