"""Compare benchmarks with the committed reference, by CPU time.

    bench_compare.py MEASURED.json                  against bench/reference.json
    bench_compare.py MEASURED.json --write          make it the reference

A line a benchmark: the reference with its spread, the measurement, their ratio, and the margin
that it may reach. The least of several rounds is compared: other programs only ever add. The exit
code is 1 if a margin is passed. Both must be measured on the same machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[1] / "bench" / "reference.json"
LEAST_MARGIN = 1.25
"""Ratio that no benchmark stays below for certain, however small its spread."""

MARGIN_OF_SPREAD = 2.0
"""So many times the spread of the reference's rounds is chance."""

Row = dict[str, float]


def main(arguments: list[str]) -> int:
    """Compare or write; return the exit code."""
    match arguments:
        case [measured]:
            return compare(summary(Path(measured)), json.loads(REFERENCE.read_text("utf-8")))
        case [measured, "--write"]:
            rows = summary(Path(measured))
            text = json.dumps(rows, indent=1, sort_keys=True)
            REFERENCE.write_text(text + "\n", encoding="utf-8")
            return 0
        case _:
            raise SystemExit(__doc__)


def summary(path: Path) -> dict[str, Row]:
    """Return least seconds and relative spread (half of the rounds lie within) by benchmark."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows: dict[str, Row] = {}
    for bench in document["benchmarks"]:
        stats = bench["stats"]
        spread = stats["iqr"] / stats["median"] if stats["median"] else 0.0
        rows[bench["fullname"]] = {
            "min_s": float(f"{stats['min']:.4g}"),
            "spread": round(spread, 3),
        }
    return rows


def compare(measured: dict[str, Row], reference: dict[str, Row]) -> int:
    """Print both and return 1 if one is beyond its margin."""
    beyond = 0
    for name in sorted(measured.keys() & reference.keys()):
        now, then = measured[name], reference[name]
        ratio = now["min_s"] / then["min_s"] if then["min_s"] else 1.0
        margin = max(LEAST_MARGIN, 1 + MARGIN_OF_SPREAD * then["spread"])
        beyond += ratio > margin
        sys.stdout.write(
            f"{'SLOWER' if ratio > margin else '      '} {ratio:5.2f} of {margin:4.2f}  "
            f"{then['min_s'] * 1e3:10.3f} ms +- {then['spread']:4.0%} -> "
            f"{now['min_s'] * 1e3:10.3f} ms  {name}\n"
        )
    for name in sorted(measured.keys() ^ reference.keys()):
        sys.stdout.write(f"only {'measured' if name in measured else 'in the reference'}: {name}\n")
    sys.stdout.write(f"{beyond} of {len(measured.keys() & reference.keys())} beyond their margin\n")
    return int(beyond > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
