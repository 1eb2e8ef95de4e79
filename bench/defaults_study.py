"""Which settings behave: the tables of docs/defaults.md, measured.

    python bench/defaults_study.py --hyperdrive philly_hyperdrive_workload.csv \\
        --philly philly.pollux.csv.gz --work study --write docs/defaults.md

Every choice is varied alone, the others at their defaults. Results are kept in the folder `--work`,
so that a study which was stopped goes on; without a trace its column is left out. The tables
replace what stands in the page between the markers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import polars as pl
from bench.pages import put, table

import themis
from themis.metrics.statistics import jain_index, present

CHOICES: Mapping[str, tuple[str | float, ...]] = {
    "payment": ("lottery", "lease", "gpus", "gpus_random", "none"),
    "outside_option": ("min_bundle", "fair_share", "cached", "unbounded"),
    "filter_key": ("best_case", "holdings", "cached"),
    "lease_mode": ("aligned", "rolling"),
    "leftover": ("random", "holders_first", "worst_first"),
    "fairness_knob": (0.5, 0.8, 0.9, 1.0),
}
READINGS = ("paper", "critical_path", "demand_capped")
OURS = ("slack", "max_rho", "fsp")
"""Policies that are no peers of the paper's: its own filter without the auction, and an extra."""

STEPS: Mapping[str, Mapping[str, str | float]] = {
    "the defaults": {},
    "nobody charged": {"payment": "none"},
    "f = 0.9": {"fairness_knob": 0.9},
    "f = 0.9, nobody charged": {"fairness_knob": 0.9, "payment": "none"},
    "f = 0.9, nobody charged, `worst_first`": {
        "fairness_knob": 0.9, "payment": "none", "leftover": "worst_first",
    },
    "f = 1, `worst_first`": {"fairness_knob": 1.0, "leftover": "worst_first"},
}  # fmt: skip
"""From themis to nearly `slack`, its filter alone, on `PAIRED`."""
PAIRED: Mapping[str, tuple[float, ...]] = {"W1": (2,), "W2": (1, 2, 4), "mix": (0.4,)}
PAIRED_SEEDS = 40

TESTBED: Mapping[str, Any] = {"spec": "nsdi20-testbed"}


@dataclass(frozen=True)
class Workload:
    """A workload with the values that it is played at."""

    name: str
    scenario: Mapping[str, Any]
    seeds: int
    axis: str | None = None
    values: tuple[float, ...] = ()
    without: tuple[str, ...] = ()
    """Choices that would take too long."""

    def axes(self) -> dict[str, Sequence[object]]:
        varied: dict[str, Sequence[object]] = {} if self.axis is None else {self.axis: self.values}
        return {**varied, "seed": range(self.seeds)}

    def column(self) -> str:
        return "" if self.axis is None else self.axis


GENERATED = {
    "W1": ("nsdi20-w1", "contention", (1, 2, 4)),
    "W2": ("nsdi20-w2", "contention", (1, 2, 4)),
    "mix": ("mix", "network_share", (0, 0.4, 1)),
}


def generated(seeds: int) -> Iterator[Workload]:
    for name, (spec, parameter, values) in GENERATED.items():
        scenario = {"cluster": TESTBED, "workload": {"generate": spec}}
        yield Workload(name, scenario, seeds, f"workload.params.{parameter}", values)


def replayed(arguments: argparse.Namespace) -> Iterator[Workload]:
    seeds = arguments.trace_seeds
    if arguments.hyperdrive is not None:
        trace = {"trace": str(Path(arguments.hyperdrive).absolute())}
        yield Workload("HyperDrive", {"cluster": {"spec": "nsdi20-sim"}, "workload": trace}, seeds)
    if arguments.philly is not None:
        first, last = arguments.philly_days
        window = {"start_s": first * 86400.0, "end_s": last * 86400.0}
        trace = {"trace": str(Path(arguments.philly).absolute())}
        cluster = {"spec": "8x(8x8)"}
        yield Workload(
            "Philly", {"cluster": cluster, "workload": {**trace, "window": window}}, seeds
        )
        if arguments.philly_whole:
            whole = {"cluster": cluster, "workload": trace}
            yield Workload("Philly, whole", whole, 1, without=("lease_mode",))


@dataclass(frozen=True)
class Study:
    """Where results are kept, and how much is played."""

    work: Path
    workers: int

    def runs(self, workload: Workload, axes: Mapping[str, Sequence[object]]) -> pl.DataFrame:
        """A row a run: the axes and every metric. Runs that are known are not played again."""
        sweep = themis.sweep(
            dict(workload.scenario),
            {**axes, **workload.axes()},
            workers=self.workers,
            out=self.work / workload.name,
            tables=False,
        )
        if sweep.runs["state"].unique().to_list() != ["done"]:
            raise SystemExit(f"{workload.name}: {sweep.runs['error'].drop_nulls().to_list()}")
        return sweep.runs


def figures(runs: pl.DataFrame) -> str:
    """Medians over runs: max rho, Jain's index, mean completion (h), GPU time (h)."""
    rho, jain = median(runs["rho_max"]), median(runs["jain"])
    hours, gpu_h = (median(runs[name]) / 3600 for name in ("app_completion_mean_s", "gpu_s"))
    return f"{rho:.3f} / {jain:.3f} / {hours:.2f} / {gpu_h:.0f}"


def choices(study: Study, workloads: Sequence[Workload]) -> Iterator[str]:
    default = themis.Settings()
    for key, values in CHOICES.items():
        fit = (one for one in workloads if key not in one.without)
        played = {one.name: study.runs(one, {key: values}) for one in fit}
        rows = [
            [
                f"`{value}`" + (" (default)" if getattr(default, key) == value else ""),
                *(figures(runs.filter(pl.col(key) == value)) for runs in played.values()),
            ]
            for value in values
        ]
        yield f"\n`{key}`\n\n" + table(["value", *played], rows)


def policies(study: Study, workloads: Sequence[Workload]) -> Iterator[str]:
    names = [policy.name for policy in themis.POLICIES]
    cells = []
    for one in workloads:
        runs = study.runs(one, {"policy": names})
        cells += [
            (f"{one.name} {at:g}", runs.filter(pl.col(one.column()) == at)) for at in one.values
        ]
    head = ["policy", *(name for name, _ in cells)]
    for title, metric, unit in (("max rho", "rho_max", 1), ("GPU time, hours", "gpu_s", 3600)):
        medians = {
            name: [
                median(runs.filter(pl.col("policy") == name)[metric]) / unit for _, runs in cells
            ]
            for name in names
        }
        digits = 3 if unit == 1 else 0
        rows = [[f"`{name}`", *(f"{v:.{digits}f}" for v in line)] for name, line in medians.items()]
        if unit == 1:
            ratios = zip(medians["tiresias"], medians["themis"], strict=True)
            rows.append(["tiresias / themis", *(f"{las / mine:.2f}" for las, mine in ratios)])
            rows.append(["seeds with themis lowest", *(lowest(runs) for _, runs in cells)])
        yield f"\nMedian {title}\n\n" + table(head, rows)


def lowest(runs: pl.DataFrame) -> str:
    """Of how many seeds no peer has a lower max rho than themis."""
    peers = runs.filter(~pl.col("policy").is_in(["themis", *OURS])).group_by("seed")
    mine = runs.filter(pl.col("policy") == "themis")
    best = mine.join(peers.agg(pl.col("rho_max").min().alias("best")), on="seed")
    return (
        f"{best.filter(pl.col('rho_max') <= pl.col('best') * (1 + 1e-9)).height} of {best.height}"
    )


def against_slack(study: Study, workloads: Sequence[Workload]) -> str:
    """Max rho over that of `slack` with the same seed: the geometric mean, in percent above 1."""
    fewer = [replace(one, seeds=PAIRED_SEEDS, values=PAIRED[one.name]) for one in workloads]
    slack = [study.runs(one, {"policy": ["slack"]}) for one in fewer]
    rows = []
    for name, step in STEPS.items():
        cells = []
        for one, other in zip(fewer, slack, strict=True):
            mine = study.runs(one, {key: [value] for key, value in step.items()})
            pairs = mine.join(other, on=[one.column(), "seed"], suffix="_slack")
            above = pairs.with_columns((pl.col("rho_max") / pl.col("rho_max_slack")).log())
            for at in one.values:
                logs = above.filter(pl.col(one.column()) == at)["rho_max"].to_list()
                error = 100 * stdev(logs) / len(logs) ** 0.5
                cells.append(f"{100 * (exp(fmean(logs)) - 1):+.1f} ({error:.1f})")
        rows.append([name, *cells])
    head = ["themis with", *(f"{one.name} {at:g}" for one in fewer for at in one.values)]
    return f"\nMax rho over that of `slack`, {PAIRED_SEEDS} seeds\n\n" + table(head, rows)


def readings(workloads: Sequence[Workload]) -> str:
    """What the arbiter's reading of T_ID does to rho in both other readings."""
    cluster = themis.Cluster.preset("nsdi20-testbed")
    rows = []
    for one in workloads:
        found: dict[str, list[tuple[float, ...]]] = {reading: [] for reading in READINGS}
        for at in one.values:
            parameter = one.column().rpartition(".")[2]
            for seed in range(one.seeds):
                spec = one.scenario["workload"]["generate"]
                workload = themis.generate(spec, seed, **{parameter: at})
                apps = {
                    r: themis.simulate(workload, cluster, seed=seed, t_id=r).apps for r in READINGS
                }
                for reading in READINGS:
                    found[reading].append(cross(apps[reading], apps))
        for reading, lines in found.items():
            medians = [median(line[at] for line in lines) for at in range(4)]
            cells = [
                f"{medians[0]:.3f}",
                f"{medians[1]:.3f}",
                f"{medians[2]:.3f}",
                f"{medians[3]:.2f}",
            ]
            rows.append([one.name, f"`{reading}`", *cells])
    head = ["workload", "arbiter's `t_id`", "max rho, `paper`", "max rho, `critical_path`",
            "Jain, `paper`", "mean completion, h"]  # fmt: skip
    return "\n`t_id`\n\n" + table(head, rows)


def cross(apps: pl.DataFrame, by_reading: Mapping[str, pl.DataFrame]) -> tuple[float, ...]:
    """Max rho of a run in two readings, Jain's index in the first, mean completion.

    Both are N_avg times a figure of the app, which a run with that reading tells.
    """
    rhos = []
    for reading in ("paper", "critical_path"):
        other = by_reading[reading]
        ideal_s = other["t_id_s"] / other["n_avg"] * apps["n_avg"]
        rhos.append(present(apps["t_sh_s"] / ideal_s))
    completion_s = present(apps["t_sh_s"])
    return (
        float(rhos[0].max()),
        float(rhos[1].max()),
        jain_index(rhos[0]) or 0.0,
        float(completion_s.mean()) / 3600,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--hyperdrive", metavar="CSV")
    parser.add_argument("--philly", metavar="CSV")
    parser.add_argument("--philly-days", nargs=2, type=float, default=(28.0, 42.0))
    parser.add_argument("--philly-whole", action="store_true", help="all of it, too, one seed")
    parser.add_argument("--seeds", type=int, default=8, help="of generated workloads")
    parser.add_argument("--trace-seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    arguments = parser.parse_args()
    study = Study(arguments.work, arguments.workers)
    synthetic = list(generated(arguments.seeds))
    workloads = [*synthetic, *replayed(arguments)]
    parts = [
        *policies(study, synthetic),
        against_slack(study, synthetic),
        *choices(study, workloads),
        readings(synthetic),
    ]
    put("".join(parts), "bench/defaults_study.py", arguments.write)


if __name__ == "__main__":
    main()
