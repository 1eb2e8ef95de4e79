"""Synthetic workloads by name: the same for a seed on every machine.

Random numbers are the raw 64-bit words of PCG64, seeded by a `SeedSequence` with one stream a
purpose, turned into values by inverse distribution functions written here; times are whole
seconds. So no release of NumPy and no processor changes a workload.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.errors import TraceError
from themis.nearest import nearest
from themis.traces.schema import MAX_GPUS, apps_from_jobs
from themis.workload import TraceSource, Workload

__all__ = ["GENERATORS", "DemoParams", "generate"]

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]

_STREAMS = ("arrivals", "sizes", "gangs", "elastic", "durations", "profiles", "people")


@dataclass(frozen=True)
class DemoParams:
    """Hyper-parameter searches of a few teams, enough to contend for 64 GPUs for some hours.

    Parameters
    ----------
    apps
        How many apps.
    load, gpus
        The apps arrive so fast that their work is `load` times what `gpus` GPUs can do meanwhile;
        gaps between arrivals are exponential.
    jobs_min, jobs_max
        Jobs of an app, log-uniform between these.
    gangs, gang_shares
        GPUs that a job needs at once, the same for all jobs of an app, and how often each occurs.
    elastic_share, elastic_factor
        Share of apps whose jobs can use up to `elastic_factor` times their gang.
    job_s
        Median duration of a job at its gang, seconds.
    app_spread, job_spread
        Spread of durations over apps, and over the jobs of an app: durations are log-logistic,
        and half of them lie within a factor of ``3 ** spread`` of the median.
    profiles
        Placement profiles, equally often.
    users, tenants
        How many; user i is 1 / i as active as user 1, and users take turns in the tenants.
    """

    apps: int = 24
    load: float = 1.5
    gpus: int = 64
    jobs_min: int = 1
    jobs_max: int = 40
    gangs: tuple[int, ...] = (1, 2, 4)
    gang_shares: tuple[float, ...] = (0.5, 0.25, 0.25)
    elastic_share: float = 0.25
    elastic_factor: int = 2
    job_s: float = 2400.0
    app_spread: float = 0.4
    job_spread: float = 0.2
    profiles: tuple[str, ...] = ("vgg16", "resnet50", "alexnet", "inception3")
    users: int = 6
    tenants: int = 3

    def __post_init__(self) -> None:
        for name, low, high in (
            ("apps", 1, 10**7),
            ("load", 1e-3, 1e6),
            ("gpus", 1, 10**6),
            ("jobs_min", 1, 10**6),
            ("jobs_max", self.jobs_min, 10**6),
            ("elastic_share", 0, 1),
            ("elastic_factor", 1, 1000),
            ("job_s", 1, 1e8),
            ("app_spread", 0, 1),
            ("job_spread", 0, 1),
            ("users", 1, 10**6),
            ("tenants", 1, 10**6),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise TraceError(f"demo: {name} is {value!r}: expected {low:g} to {high:g}")
        if not self.gangs or not all(1 <= gang <= MAX_GPUS // 1000 for gang in self.gangs):
            raise TraceError(f"demo: gangs is {self.gangs!r}: expected sizes from 1 to 1000")
        shares = self.gang_shares
        if len(shares) != len(self.gangs) or not all(0 <= s < 1e9 for s in shares):  # noqa: PLR2004
            raise TraceError(
                f"demo: gang_shares is {shares!r}: expected {len(self.gangs)} shares, one a gang"
            )
        if sum(shares) <= 0:
            raise TraceError(f"demo: gang_shares is {shares!r}: expected a positive share")
        if not self.profiles or not all(self.profiles):
            raise TraceError(f"demo: profiles is {self.profiles!r}: expected at least one name")


def generate(spec: str, seed: int = 0, **params: object) -> Workload:
    """Make a synthetic workload.

    Parameters
    ----------
    spec
        Name in :data:`GENERATORS`: ``"demo"``.
    seed
        Not negative; the same seed and parameters give the same workload.
    **params
        Any field of the generator's parameters, for example of :class:`DemoParams`.

    Raises
    ------
    TraceError
        The name, a parameter or a value is not one that is expected.
    """
    if not isinstance(spec, str) or spec not in GENERATORS:
        raise TraceError(
            f"workload {spec!r} is unknown{nearest(str(spec), GENERATORS)}: "
            f"expected one of {', '.join(GENERATORS)}"
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise TraceError(f"{spec}: seed is {seed!r}: expected a whole number, 0 or more")
    kind, make = GENERATORS[spec]
    settings = _parse(spec, kind, params)
    about = json.dumps({"spec": spec, "seed": seed, **dataclasses.asdict(settings)}, sort_keys=True)
    source = TraceSource(
        format=f"generated:{spec}",
        recognised=f"seed {seed}",
        sha256=hashlib.sha256(about.encode()).hexdigest(),
    )
    return make(settings, seed, source)


def _parse(spec: str, kind: type[DemoParams], params: Mapping[str, object]) -> DemoParams:
    """Make the parameters, each of the type of its default."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for name, value in params.items():
        if name not in defaults:
            raise TraceError(
                f"{spec}: parameter {name!r} is unknown{nearest(name, defaults)}: "
                f"expected some of {', '.join(defaults)}"
            )
        values[name] = _like(f"{spec}: {name}", value, defaults[name])
    return kind(**values)


def _like(what: str, value: object, default: object) -> object:
    if isinstance(default, tuple):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise TraceError(f"{what} is {value!r}: expected a list")
        return tuple(_like(what, item, default[0]) for item in value)
    good = not isinstance(value, bool) and isinstance(
        value, int | float if isinstance(default, float) else type(default)
    )
    if not good:
        kind = {int: "a whole number", float: "a number", str: "text"}[type(default)]
        raise TraceError(f"{what} is {value!r}: expected {kind}")
    return float(value) if isinstance(value, int) and isinstance(default, float) else value


class _Draws:
    """Uniform numbers in [0, 1), one stream a purpose."""

    def __init__(self, seed: int) -> None:
        children = np.random.SeedSequence(seed).spawn(len(_STREAMS))
        self._streams = {
            name: np.random.PCG64(child) for name, child in zip(_STREAMS, children, strict=True)
        }

    def uniform(self, stream: str, count: int) -> Floats:
        words = self._streams[stream].random_raw(count)
        numbers: Floats = (np.asarray(words, dtype=np.uint64) >> np.uint64(11)).astype(np.float64)
        return np.ldexp(numbers, -53)


def _demo(params: DemoParams, seed: int, source: TraceSource) -> Workload:
    draws = _Draws(seed)
    count = params.apps
    low, high = np.log(params.jobs_min), np.log(params.jobs_max + 1)
    jobs = np.floor(np.exp(low + (high - low) * draws.uniform("sizes", count))).astype(np.int64)
    jobs = np.clip(jobs, params.jobs_min, params.jobs_max)
    gang = np.array(params.gangs)[_pick(params.gang_shares, draws.uniform("gangs", count))]
    elastic = draws.uniform("elastic", count) < params.elastic_share
    profile = _pick([1.0] * len(params.profiles), draws.uniform("profiles", count))
    user = _pick(1 / np.arange(1, params.users + 1), draws.uniform("people", count))
    app_s = params.job_s * _log_logistic(draws.uniform("durations", count), params.app_spread)
    app = np.repeat(np.arange(count), jobs)
    spread = _log_logistic(draws.uniform("durations", len(app)), params.job_spread)
    duration_s = np.maximum(np.round(app_s[app] * spread), 1.0)
    work = duration_s * gang[app]
    arrivals = _arrivals(draws.uniform("arrivals", count), float(work.sum()), params)
    rows = pl.DataFrame(
        {
            "app_id": _ids("app", app, count),
            "number": np.arange(len(app)) - np.repeat(np.cumsum(jobs) - jobs, jobs),
            "submit_s": arrivals[app],
            "serial_time_s": work,
            "gang_size": gang[app],
            "max_gpus": (gang * np.where(elastic, params.elastic_factor, 1))[app],
            "profile": pl.Series(params.profiles).gather(profile[app]),
            "user": _ids("user", user[app], params.users),
            "tenant": _ids("team", (user % params.tenants)[app], params.tenants),
        }
    )
    width = max(2, len(str(params.jobs_max)))
    number = (pl.col("number") + 1).cast(pl.String).str.zfill(width)
    rows = rows.with_columns(
        pl.concat_str("app_id", pl.lit("/"), number).alias("job_id"),
        pl.lit(None, pl.Float64).alias("checkpoint_s"),
        pl.lit(None, pl.String).alias("status"),
    )
    apps = apps_from_jobs(rows)
    job_columns = ["job_id", "app_id", "submit_s", "serial_time_s", "gang_size", "max_gpus"]
    table = rows.select(*job_columns, "profile", "checkpoint_s", "status")
    return Workload(apps=apps, jobs=table, source=source)


def _arrivals(uniform: Floats, work_gpu_s: float, params: DemoParams) -> Floats:
    """Whole seconds with exponential gaps, from 0 to where the load is as wished."""
    count = len(uniform)
    places = np.cumsum(-np.log1p(-uniform))
    span_s = work_gpu_s / (params.gpus * params.load) * (count - 1) / count
    times: Floats = np.round((places - places[0]) / max(places[-1] - places[0], 1e-9) * span_s)
    return times


def _pick(shares: Sequence[float] | Floats, uniform: Floats) -> Indexes:
    """Index of the share that each uniform number falls into."""
    edges = np.cumsum(np.asarray(shares, dtype=np.float64))
    found = np.searchsorted(edges / edges[-1], uniform, side="right")
    return np.minimum(found, len(edges) - 1)


def _log_logistic(uniform: Floats, spread: float) -> Floats:
    """Quantiles with median 1, without the outermost hundredths."""
    inner = 0.01 + 0.98 * uniform
    factors: Floats = (inner / (1 - inner)) ** spread
    return factors


def _ids(word: str, index: Indexes, count: int) -> pl.Series:
    """``word-01`` and so on, zero-padded so that text order is number order."""
    width = max(2, len(str(count)))
    number = pl.Series(index + 1).cast(pl.String).str.zfill(width)
    return pl.select(pl.lit(f"{word}-") + number).to_series()


GENERATORS: Mapping[
    str, tuple[type[DemoParams], Callable[[DemoParams, int, TraceSource], Workload]]
] = {
    "demo": (DemoParams, _demo),
}
"""Parameters and maker of each built-in workload; a new one takes its line here."""
