"""Does a lie pay over a whole run? One liar each, against the same run without the lie.

    python bench/lying_study.py --liars 500 --write docs/defaults.md
    python bench/lying_study.py --liars 600 --lies "work overstated" --knobs 0.8 --payments lottery

A sample is a seed, a liar, what it misstates and by how much; the same samples are played under
every payment. A gain is the time by which the liar finishes sooner, in percent of its honest time.
A lottery makes one run a gamble, so that means are compared.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.pages import put, table

import themis

PAYMENTS = ("lottery", "lease", "none")
KNOBS = (0.8, 0.0)
SIZES = (0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
LIES = {
    "slowdown overstated": ("slowdown", 1),
    "slowdown understated": ("slowdown", -1),
    "speed understated": ("speed", -1),
    "work overstated": ("work", 1),
    "work understated": ("work", -1),
}
"""By what is said: the term and its sign."""
MOST = 0.5
"""Nobody understates more than by this share."""


class Sample(NamedTuple):
    seed: int
    app: int
    lie: str
    by: float


def samples(count: int, apps: int, lies: Sequence[str] = tuple(LIES)) -> list[Sample]:
    """Draw liars; every lie is equally frequent."""
    drawn = random.Random(count)  # noqa: S311 - no secret
    found = []
    for at in range(count):
        lie = lies[at % len(lies)]
        sign = LIES[lie][1]
        by = sign * drawn.choice([size for size in SIZES if sign > 0 or size <= MOST])
        found.append(Sample(drawn.randrange(1000), drawn.randrange(apps), lie, by))
    return found


def gains(sample: Sample, apps: int, settings: Mapping[str, Any]) -> tuple[float, float]:
    """Percent of time that the liar gains, and the mean of the others."""
    workload = themis.generate("nsdi20-lying", sample.seed, apps=apps, app_spread=0.35)
    liar = workload.apps["app_id"].sort()[sample.app]
    result = themis.simulate(
        workload,
        themis.Cluster.preset("nsdi20-lying"),
        seed=sample.seed,
        liars={"apps": [liar], "term": LIES[sample.lie][0], "by": sample.by},
        **settings,
    )
    told = result.apps
    percent = 100 * told["lie_gain_s"] / (told["t_sh_s"] + told["lie_gain_s"])
    mine, others = percent.filter(told["lied"]), percent.filter(~told["lied"])
    return float(mine.item()), fmean(others.to_list())


def mean(values: Sequence[float]) -> str:
    """The mean with its standard error."""
    return f"{fmean(values):+.2f} ({stdev(values) / len(values) ** 0.5:.2f})"


def tables(arguments: argparse.Namespace) -> Iterator[str]:
    count, apps, lies = arguments.liars, arguments.apps, arguments.lies
    drawn = samples(count, apps, lies)
    for knob in arguments.knobs:
        rows = []
        for payment in arguments.payments:
            settings = {"payment": payment, "fairness_knob": knob}
            found = [gains(one, apps, settings) for one in drawn]
            mine = [liar for liar, _ in found]
            by_lie = (
                mean([gain for gain, one in zip(mine, drawn, strict=True) if one.lie == lie])
                for lie in lies
            )
            rows.append([f"`{payment}`", mean(mine), *by_lie, mean([rest for _, rest in found])])
        head = ["payment", "any lie", *lies, "the honest"]
        yield f"\nf = {knob:g}: gain in %, mean (standard error) of {count} liars\n\n"
        yield table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--liars", type=int, default=200)
    parser.add_argument("--apps", type=int, default=16)
    parser.add_argument("--lies", nargs="+", choices=LIES, default=list(LIES))
    parser.add_argument("--knobs", nargs="+", type=float, default=KNOBS)
    parser.add_argument("--payments", nargs="+", choices=PAYMENTS, default=PAYMENTS)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    arguments = parser.parse_args()
    put("".join(tables(arguments)), "bench/lying_study.py", arguments.write)


if __name__ == "__main__":
    main()
