"""How long large gangs wait: the table of docs/policies.md, measured on the Philly trace.

    python bench/gangs_study.py philly.pollux.csv.gz --work study --write docs/policies.md

Policies play the whole trace on 512 GPUs; some also with reservations. Results are kept in the
folder `--work`, so that a study which was stopped goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import polars as pl
from bench.pages import put, table

import themis

CLUSTER = themis.Cluster.parse("8x(8x8)")
SIZES = ((1, 4), (8, 8), (12, 32), (64, 64), (128, 128))
RESERVED = ("themis", "tiresias", "max_rho")
AFTER_S = 6 * 3600.0


def runs(names: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is played of these policies: its name and settings."""
    for name in names:
        yield name, {"policy": name}
        if name in RESERVED:
            yield f"{name}, reserved", {"policy": name, "reserve_after_s": AFTER_S}


def played(trace: str, settings: Mapping[str, Any], kept: Path) -> themis.Result:
    """A run of the trace, read where it is kept already."""
    if kept.exists():
        return themis.load_result(kept)
    result = themis.simulate(themis.read_trace(trace, format="philly"), CLUSTER, **settings)
    result.write(kept)
    return result


def jobs_of(result: themis.Result) -> pl.DataFrame:
    """The jobs: gang, wait until the first GPU in hours, rho of its app."""
    rho = result.apps.select("app_id", "rho")
    wait = (pl.col("start_s") - pl.col("submit_s")) / 3600
    return (
        result.jobs.filter(pl.col("gang_size") > 0).join(rho, on="app_id").with_columns(wait_h=wait)
    )


def cells(jobs: pl.DataFrame, column: str, digits: int) -> list[str]:
    """Median and largest of each size of gangs."""
    found = []
    for least, most in SIZES:
        values = jobs.filter(pl.col("gang_size").is_between(least, most))[column].drop_nulls()
        median, most_of_all = (float(np.quantile(values, share)) for share in (0.5, 1.0))
        found.append(f"{median:.{digits}f} / {most_of_all:.{digits}f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("trace", metavar="CSV")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument(
        "--policies", nargs="+", default=[policy.name for policy in themis.POLICIES]
    )
    arguments = parser.parse_args()
    waits, rhos = [], []
    counts: list[str] = []
    for name, settings in runs(arguments.policies):
        kept = arguments.work / name.replace(", ", "-")
        jobs = jobs_of(played(arguments.trace, settings, kept))
        waits.append([name, *cells(jobs, "wait_h", 2)])
        rhos.append([name, *cells(jobs, "rho", 3)])
        gangs = pl.col("gang_size")
        counts = [str(jobs.filter(gangs.is_between(*size)).height) for size in SIZES]
    head = [
        f"{a} GPU" if b == 1 else f"{a} GPUs" if a == b else f"{a} to {b} GPUs" for a, b in SIZES
    ]
    text = "\nWait until the first GPU, in hours\n\n"
    text += table(["policy", *head], [["jobs", *counts], *waits])
    text += "\nrho\n\n" + table(["policy", *head], rhos)
    put(text, "bench/gangs_study.py", arguments.write)


if __name__ == "__main__":
    main()
