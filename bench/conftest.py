"""How every benchmark is timed, and the record of how cost grows with size.

Times are CPU seconds of this process, its threads together, so that other work on the machine
disturbs them little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

HERE = Path(__file__).parent

T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--larger", action="store_true", help="measure auctions on 16,384 GPUs and more as well"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Time benchmarks by CPU, from small to large, whatever shuffled them."""
    mine = [item for item in items if HERE in item.path.parents]
    rest = [item for item in items if HERE not in item.path.parents]
    mine.sort(key=_written_order)
    items[:] = rest + mine
    for item in mine:
        if not item.get_closest_marker("benchmark"):
            item.add_marker(pytest.mark.benchmark(timer=time.process_time, disable_gc=True))
        if item.get_closest_marker("larger") and not config.getoption("--larger"):
            item.add_marker(pytest.mark.skip(reason="asked for by --larger"))


def _written_order(item: pytest.Item) -> tuple[str, int, list[int]]:
    callspec = getattr(item, "callspec", None)
    indices = [] if callspec is None else list(callspec.indices.values())
    return (str(item.path), item.location[1] or 0, indices)


@dataclass
class Growth:
    """CPU seconds by family and size; a family is one operation at several sizes."""

    seconds: dict[str, dict[int, float]] = field(default_factory=dict)
    unit: dict[str, str] = field(default_factory=dict)

    def add(self, family: str, unit: str, size: int, seconds: float) -> float | None:
        """Record a time; return the exponent b of cost = a size^b since the size before."""
        sizes = self.seconds.setdefault(family, {})
        self.unit[family] = unit
        before = max((other for other in sizes if other < size), default=None)
        sizes[size] = seconds
        return None if before is None else self._exponent(sizes, before, size)

    @staticmethod
    def _exponent(sizes: dict[int, float], before: int, size: int) -> float:
        return math.log(sizes[size] / sizes[before]) / math.log(size / before)

    def lines(self) -> list[str]:
        """One line a family measured at several sizes: CPU ms by size, and the exponent."""
        lines = []
        for family, sizes in self.seconds.items():
            if len(sizes) > 1:
                cells = [f"{size:,}: {1e3 * sizes[size]:.4g}" for size in sorted(sizes)]
                power = self._exponent(sizes, min(sizes), max(sizes))
                growth = f"grows as {self.unit[family]}^{power:.2f}"
                lines.append(f"{family:<45} {', '.join(cells)} ms; {growth}")
        return lines


@dataclass
class Meter:
    """Times one operation at one size."""

    benchmark: BenchmarkFixture
    growth: Growth

    def time(
        self, family: str, unit: str, size: int, call: Callable[[], T], *, rounds: int = 3
    ) -> T:
        """Time a call; keep the least of `rounds` as its cost. Return what it returned."""
        self.benchmark.group = f"{family}, by {unit}"
        result: T = self.benchmark.pedantic(  # type: ignore[no-untyped-call]
            call, rounds=rounds, warmup_rounds=int(rounds > 1)
        )
        if self.benchmark.stats is not None:
            seconds: float = self.benchmark.stats.stats.min
            self.note(
                size=size,
                cpu_ms=1e3 * seconds,
                us_each=1e6 * seconds / size,
                each_a_s=size / seconds,
                growth_exponent=self.growth.add(family, unit, size, seconds),
            )
        return result

    def note(self, **figures: object) -> None:
        """Put figures beside the benchmark (``extra_info``)."""
        self.benchmark.extra_info.update(figures)


_GROWTH = pytest.StashKey[Growth]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_GROWTH] = Growth()
    config.addinivalue_line("markers", "larger: sizes that are measured by --larger only")


@pytest.fixture
def meter(benchmark: BenchmarkFixture, pytestconfig: pytest.Config) -> Meter:
    return Meter(benchmark, pytestconfig.stash[_GROWTH])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:  # noqa: ANN401
    lines = config.stash[_GROWTH].lines()
    if lines:
        terminalreporter.section("CPU time by size, and how it grows")
        for line in lines:
            terminalreporter.write_line(line)
