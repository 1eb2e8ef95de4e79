"""The comparison of benchmarks: what is slower than its margin is found, and nothing else."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_compare", ROOT / "tools/bench_compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(path: Path, **seconds: tuple[float, float, float]) -> Path:
    """A file of pytest-benchmark: least, median and interquartile range by name."""
    benchmarks = [
        {"fullname": name, "stats": {"min": least, "median": median, "iqr": iqr}}
        for name, (least, median, iqr) in seconds.items()
    ]
    path.write_text(json.dumps({"benchmarks": benchmarks}), encoding="utf-8")
    return path


def test_only_what_passes_its_margin_is_slower(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tool, "REFERENCE", tmp_path / "reference.json")
    first = measured(
        tmp_path / "a.json", calm=(1.0, 1.0, 0.01), noisy=(1.0, 1.0, 0.4), gone=(1.0, 1.0, 0.0)
    )
    assert tool.main([str(first), "--write"]) == 0
    assert tool.main([str(first)]) == 0
    same = measured(tmp_path / "b.json", calm=(1.2, 1.3, 0.1), noisy=(1.7, 2.0, 0.1))
    assert tool.main([str(same)]) == 0
    capsys.readouterr()
    slower = measured(
        tmp_path / "c.json", calm=(1.3, 1.3, 0.1), noisy=(1.7, 1.7, 0.1), new=(1, 1, 0)
    )
    assert tool.main([str(slower)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("SLOWER")] == [
        "SLOWER  1.30 of 1.25    1000.000 ms +-   1% ->   1300.000 ms  calm"
    ]
    assert lines[-3:] == [
        "only in the reference: gone",
        "only measured: new",
        "1 of 2 beyond their margin",
    ]


def test_the_reference_is_small_and_of_benchmarks_that_exist(tool: ModuleType) -> None:
    rows = json.loads(tool.REFERENCE.read_text(encoding="utf-8"))
    assert rows
    assert tool.REFERENCE.stat().st_size < 40_000
    assert all((ROOT / name.split("::")[0]).is_file() for name in rows)
    assert all(row["min_s"] > 0 and row["spread"] >= 0 for row in rows.values())
