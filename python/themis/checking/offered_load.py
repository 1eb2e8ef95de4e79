"""What a workload asks of a cluster before anything is simulated: load, drain, impossible jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.errors import ClusterError
from themis.schema.host import OF_GPU, OF_MACHINE, different_needs, served

__all__ = [
    "MAX_BINS",
    "ClusterSize",
    "HostLoad",
    "LoadReport",
    "TimeBins",
    "TypeLoad",
    "offered_load",
]


class ClusterSize(Protocol):
    """As much of a :class:`~themis.Cluster` as the load depends on."""

    @property
    def gpus(self) -> int:
        """All GPUs."""

    @property
    def machines(self) -> pl.DataFrame:
        """One row a machine: gpu_type (String), gpus (Int64); perhaps what limits it beside."""


MAX_BINS = 60
"""Most bins of a load over time."""

_WIDTHS_S = tuple(
    float(count * unit)
    for unit, counts in ((60, (1, 5, 15)), (3600, (1, 3, 6, 12)), (86400, (1, 2, 7, 14, 28)))
    for count in counts
)


@dataclass(frozen=True)
class TimeBins:
    """Equal parts of the time in which jobs arrive.

    Parameters
    ----------
    start_s
        Where the first begins: a whole number of widths.
    width_s
        Length of each.
    count
        How many.
    """

    start_s: float
    width_s: float
    count: int

    @classmethod
    def of(cls, submit_s: pl.Series) -> TimeBins:
        """Return the narrowest bins that number at most :data:`MAX_BINS`."""
        times = submit_s.to_numpy()
        first, last = float(times.min()), float(times.max())
        width_s = next((w for w in _WIDTHS_S if (last - first) / w <= MAX_BINS - 2), 0.0)
        if not width_s:
            width_s = 28 * 86400.0 * math.ceil((last - first) / (28 * 86400.0) / (MAX_BINS - 2))
        start_s = math.floor(first / width_s) * width_s
        return cls(start_s, width_s, math.floor((last - start_s) / width_s) + 1)

    def sums(self, submit_s: pl.Series, weights: pl.Series) -> npt.NDArray[np.float64]:
        """Add up the weights of the jobs submitted in each bin; one order, so one result."""
        place = np.floor((submit_s.to_numpy() - self.start_s) / self.width_s).astype(np.int64)
        place = np.clip(place, 0, self.count - 1)
        sums = np.bincount(place, weights=weights.to_numpy(), minlength=self.count)
        return sums.astype(np.float64)


@dataclass(frozen=True)
class TypeLoad:
    """Load on some GPU types.

    Parameters
    ----------
    gpu_types
        The types, ``"A|B"``; ``"any"`` for the whole cluster.
    gpus
        GPUs of these types.
    gpu_seconds
        Work of the feasible jobs that can run on these types only.
    load
        Their part of what the GPUs can do while jobs arrive; None when all arrive at once.
    over_time
        The same of each bin of `LoadReport.bin_s` seconds, by the submissions in it.
    """

    gpu_types: str
    gpus: int
    gpu_seconds: float
    load: float | None
    over_time: tuple[float, ...] = ()


@dataclass(frozen=True)
class HostLoad:
    """Load on the CPU cores or the memory of machines.

    Parameters
    ----------
    resource
        ``"cpu_cores"`` or ``"memory_gib"``.
    there
        What all machines have together.
    load
        What the feasible jobs take of it over their work, as a part of what there is while jobs
        arrive; None when all arrive at once.
    """

    resource: str
    there: float
    load: float | None


@dataclass(frozen=True)
class LoadReport:
    """What a workload asks of a cluster; only jobs that can ever run are counted.

    Parameters
    ----------
    cluster
        Short form of the cluster.
    gpus
        Its GPUs.
    window_s
        Time in which jobs arrive: first to last of n distinct arrivals, times n / (n - 1), so
        that evenly spaced arrivals count whole gaps; 0 when all arrive at once.
    load
        GPU-seconds of work / (GPUs x `window_s`); None when all arrive at once.
    types
        The same for each set of GPU types that an app asks for, the whole cluster first.
    host
        The same for CPU cores and memory, where every machine is limited in them and jobs need
        some.
    drains
        Whether every load is at most 1, so that queues need not grow while jobs arrive.
    drain_s
        Least seconds of full use that are left after the window.
    infeasible
        Ids of the jobs whose gang is larger than the GPUs of its types that have the CPU cores and
        memory that it needs, in canonical order.
    infeasible_gpu_s
        Their GPU-seconds.
    bin_s, bins_from_s
        Length of the bins of `TypeLoad.over_time` and where the first begins; at most
        :data:`MAX_BINS` of a minute, an hour, a day or a few of those.
    """

    cluster: str
    gpus: int
    window_s: float
    load: float | None
    types: tuple[TypeLoad, ...]
    host: tuple[HostLoad, ...]
    drains: bool
    drain_s: float
    infeasible: tuple[str, ...]
    infeasible_gpu_s: float
    bin_s: float
    bins_from_s: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON-able form."""
        return {
            "cluster": self.cluster,
            "gpus": self.gpus,
            "window_s": self.window_s,
            "load": self.load,
            "types": [
                {
                    "gpu_types": part.gpu_types,
                    "gpus": part.gpus,
                    "gpu_seconds": part.gpu_seconds,
                    "load": part.load,
                    "over_time": list(part.over_time),
                }
                for part in self.types
            ],
            "host": [
                {"resource": part.resource, "there": part.there, "load": part.load}
                for part in self.host
            ],
            "drains": self.drains,
            "drain_s": self.drain_s,
            "infeasible": list(self.infeasible),
            "infeasible_gpu_s": self.infeasible_gpu_s,
            "bin_s": self.bin_s,
            "bins_from_s": self.bins_from_s,
        }


def offered_load(apps: pl.DataFrame, jobs: pl.DataFrame, cluster: ClusterSize) -> LoadReport:
    """Compute the load that a workload's tables offer `cluster`.

    Raises
    ------
    ClusterError
        `cluster` has no machines: it is none.
    """
    if not hasattr(cluster, "machines"):
        raise ClusterError(f"cluster is {cluster!r}: expected a Cluster, as of Cluster.parse")
    sizes = _type_sizes(cluster.machines)
    submit_s = jobs.get_column("submit_s")
    wanted = apps.select("app_id", "gpu_types")
    jobs = jobs.join(wanted, on="app_id", how="left", maintain_order="left")
    jobs = jobs.filter(pl.col("gang_size") > 0)
    asked = {text: _types(text, sizes) for text in jobs.get_column("gpu_types").unique().sort()}
    asked.setdefault(None, frozenset(sizes))
    available = {text: sum(sizes.get(kind, 0) for kind in kinds) for text, kinds in asked.items()}
    jobs = jobs.with_columns(available=_usable(jobs, cluster.machines, asked))
    fits = pl.col("gang_size") <= pl.col("available")
    lost, jobs = jobs.filter(~fits), jobs.filter(fits)
    window_s = _window(submit_s)
    bins = TimeBins.of(submit_s)
    types = tuple(
        _type_load(text, asked, jobs, available[text], window_s, bins)
        for text in sorted(asked, key=lambda text: (text is not None, text or ""))
    )
    return LoadReport(
        cluster=str(cluster),
        gpus=cluster.gpus,
        window_s=window_s,
        load=types[0].load,
        types=types,
        host=_host_loads(jobs, cluster.machines, window_s),
        drains=all(part.load is None or part.load <= 1 for part in types),
        drain_s=max(_left(part, window_s) for part in types),
        infeasible=tuple(lost.get_column("job_id").to_list()),
        infeasible_gpu_s=math.fsum(lost.get_column("serial_time_s").to_list()),
        bin_s=bins.width_s,
        bins_from_s=bins.start_s,
    )


def _usable(
    jobs: pl.DataFrame, machines: pl.DataFrame, asked: Mapping[str | None, frozenset[str]]
) -> pl.Series:
    """Return of how many GPUs of its types each job finds what they need of their machines.

    Of those of one type, for a job that does not mix them.
    """
    needs, need = different_needs(jobs)
    rows = []
    for number, takes in enumerate(needs):
        sizes = _type_sizes(machines.with_columns(gpus=pl.Series(served(machines, takes))))
        for text, kinds in asked.items():
            of_types = [sizes.get(kind, 0) for kind in kinds]
            rows.append((number, text, True, sum(of_types)))
            rows.append((number, text, False, max(of_types, default=0)))
    key = {"need": pl.Int64, "gpu_types": pl.String, "mixes_types": pl.Boolean}
    schema = {**key, "usable": pl.Int64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    mixes = pl.col("mixes_types").fill_null(value=True)
    wanted = jobs.select("gpu_types", mixes, need=pl.Series(need))
    joined = wanted.join(table, on=list(key), how="left", nulls_equal=True, maintain_order="left")
    return joined.get_column("usable")


def _host_loads(
    jobs: pl.DataFrame, machines: pl.DataFrame, window_s: float
) -> tuple[HostLoad, ...]:
    found = []
    for of_gpu, resource in zip(OF_GPU, OF_MACHINE, strict=True):
        if resource not in machines.columns:
            continue
        has, needs = machines.get_column(resource), jobs.get_column(of_gpu)
        if has.null_count() or not needs.count():
            continue
        there = math.fsum(has.to_list())
        taken = math.fsum((jobs.get_column("serial_time_s") * needs).drop_nulls().to_list())
        load = taken / (there * window_s) if there and window_s > 0 else None
        found.append(HostLoad(resource, there, load))
    return tuple(found)


def _type_sizes(machines: pl.DataFrame) -> dict[str, int]:
    machines = machines.select(pl.col("gpu_type").fill_null(""), "gpus")
    totals = machines.group_by("gpu_type").agg(pl.col("gpus").sum()).sort("gpu_type")
    return {str(kind): int(gpus) for kind, gpus in totals.iter_rows()}


def _types(text: str | None, sizes: dict[str, int]) -> frozenset[str]:
    """GPU types of the cluster that ``"A|B"`` allows; all for None."""
    if text is None:
        return frozenset(sizes)
    return frozenset(part.strip() for part in text.split("|"))


def _type_load(  # noqa: PLR0913, PLR0917 - the figures of one load belong together
    text: str | None,
    asked: dict[str | None, frozenset[str]],
    jobs: pl.DataFrame,
    gpus: int,
    window_s: float,
    bins: TimeBins,
) -> TypeLoad:
    """Load of the jobs that may run on these types and on no others."""
    inside = [other for other, kinds in asked.items() if kinds <= asked[text]]
    if text is None:
        inside = list(asked)
    chosen = pl.col("gpu_types").is_in([other for other in inside if other is not None])
    if None in inside:
        chosen = chosen.fill_null(value=True)
    mine = jobs.filter(chosen)
    work = math.fsum(mine.get_column("serial_time_s").to_list())
    load = work / (gpus * window_s) if gpus and window_s > 0 else None
    sums = bins.sums(mine.get_column("submit_s"), mine.get_column("serial_time_s"))
    over_time = tuple((sums / (gpus * bins.width_s)).tolist()) if gpus else ()
    return TypeLoad("any" if text is None else text, gpus, work, load, over_time)


def _left(part: TypeLoad, window_s: float) -> float:
    return max(part.gpu_seconds / part.gpus - window_s, 0.0) if part.gpus else 0.0


def _window(submit_s: pl.Series) -> float:
    times = np.unique(submit_s.to_numpy())
    if len(times) < 2:  # noqa: PLR2004 - one instant has no length
        return 0.0
    return float((times[-1] - times[0]) * len(times) / (len(times) - 1))
