"""What a result says, in whole microseconds and plain Python, for the checks of this package.

Nothing here comes from the engine's own code: only the tables, the workload and the machine list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from themis.cluster.cluster import Cluster
from themis.profiles import PROFILES
from themis.results.result import Result
from themis.workload.workload import Workload

__all__ = ["App", "Facts", "Gpu", "Job", "Lease", "Span", "us"]

Gpu = tuple[str, int]
"""A machine and an index in it."""

Row = Mapping[str, Any]


def us(seconds: float) -> int:
    """Whole microseconds."""
    return round(seconds * 1_000_000)


class Lease(NamedTuple):
    """A row of the leases."""

    app: str
    gpus: tuple[Gpu, ...]
    slot: int
    start: int
    end: int
    cause: str
    renewals: int
    ended_by: str


class Span(NamedTuple):
    """A time in which an app holds the same GPUs."""

    start: int
    end: int
    gpus: frozenset[Gpu]


@dataclass(frozen=True)
class Job:
    """A job: as submitted, and what became of it. Times in microseconds."""

    name: str
    submit: int
    work: float
    gang: int
    most: int
    slowdowns: tuple[float, float, float, float]
    checkpoint: int | None
    iterations: float | None
    loss: tuple[float, float, float] | None
    out: Row

    @property
    def end(self) -> int | None:
        return None if self.out["end_s"] is None else us(self.out["end_s"])

    def is_open(self, at: int) -> bool:
        """Whether it was submitted and has not ended; never, when its app ended before that."""
        if self.end is None:
            return self.submit <= at and self.out["state"] == "unfinished"
        return self.submit <= at < self.end

    @property
    def start(self) -> int | None:
        return None if self.out["start_s"] is None else us(self.out["start_s"])


@dataclass(frozen=True)
class App:
    """An app with its jobs, its leases, and its row of the result."""

    name: str
    arrival: int
    stopping: str
    cap: int | None
    target: float | None
    jobs: tuple[Job, ...]
    leases: tuple[Lease, ...]
    out: Row
    run_end: int

    @property
    def end(self) -> int:
        """Its end, or that of the run."""
        return self.run_end if self.out["end_s"] is None else us(self.out["end_s"])

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """What it holds from change to change of its leases, also when that is nothing."""
        times = sorted({t for lease in self.leases for t in (lease.start, lease.end)})
        found = []
        for start, end in pairwise(times):
            held = {g for x in self.leases if x.start <= start < x.end for g in x.gpus}
            found.append(Span(start, end, frozenset(held)))
        return tuple(found)

    def held(self, at: int) -> int:
        """GPUs that it holds from `at` on."""
        return sum(len(lease.gpus) for lease in self.leases if lease.start <= at < lease.end)


@dataclass(frozen=True)
class Facts:
    """A result beside what it was made from."""

    result: Result
    workload: Workload
    cluster: Cluster

    @property
    def settings(self) -> Row:
        settings = self.result.manifest["settings"]
        assert isinstance(settings, Mapping)
        return settings

    @cached_property
    def run_end(self) -> int:
        """The last end, or the horizon when something was unfinished then."""
        horizon = self.settings["horizon_s"]
        states = self.result.jobs.get_column("state").to_list()
        if horizon is not None and "unfinished" in states:
            return us(horizon)
        rows = self.result.jobs.select("submit_s", "end_s").iter_rows()
        return max(us(submit if end is None else end) for submit, end in rows)

    @cached_property
    def leases(self) -> tuple[Lease, ...]:
        return tuple(
            Lease(
                row["app_id"],
                tuple((row["machine"], row["gpu_first"] + k) for k in range(row["gpus"])),
                row["slot"],
                us(row["start_s"]),
                us(row["end_s"]),
                row["cause"],
                row["renewals"],
                row["ended_by"],
            )
            for row in self.result.leases.iter_rows(named=True)
        )

    @cached_property
    def apps(self) -> tuple[App, ...]:
        jobs: dict[str, list[Job]] = {name: [] for name in self.workload.apps["app_id"]}
        given = self.workload.apps.iter_rows(named=True)
        profiles = {row["app_id"]: row["profile"] for row in given}
        outs = {row["job_id"]: row for row in self.result.jobs.iter_rows(named=True)}
        for row in self.workload.jobs.iter_rows(named=True):
            profile = row["profile"] or profiles[row["app_id"]] or "cold_start"
            jobs[row["app_id"]].append(
                Job(
                    row["job_id"],
                    us(row["submit_s"]),
                    float(us(row["serial_time_s"])),
                    row["gang_size"],
                    row["max_gpus"],
                    PROFILES.get(profile, PROFILES["cold_start"]),
                    None if row["checkpoint_s"] is None else us(row["checkpoint_s"]),
                    row["iterations"],
                    None
                    if row["loss_a"] is None
                    else (row["loss_a"], row["loss_b"], row["loss_c"]),
                    outs[row["job_id"]],
                )
            )
        specs = self.workload.apps.iter_rows(named=True)
        rows = self.result.apps.iter_rows(named=True)
        return tuple(
            App(
                spec["app_id"],
                us(spec["arrival_s"]),
                spec["stopping"],
                spec["max_gpus"],
                spec["target_loss"],
                tuple(jobs[spec["app_id"]]),
                tuple(x for x in self.leases if x.app == spec["app_id"]),
                out,
                self.run_end,
            )
            for spec, out in zip(specs, rows, strict=True)
        )

    def gpu_jobs(self, app: App) -> Iterator[Job]:
        """Its jobs that need GPUs and could run on this cluster."""
        for job in app.jobs:
            if 0 < job.gang <= self.cluster.gpus and job.work > 0:
                yield job

    def gpu_end(self, app: App) -> int:
        """When its work for GPUs ended (or the run did)."""
        jobs = list(self.gpu_jobs(app))
        if app.stopping in {"successive_halving", "performance_curve"}:
            ends = [job.end for job in jobs if job.out["state"] in {"done", "killed"}]
            over = app.out["state"] == "done" and ends
            return max(end for end in ends if end is not None) if over else self.run_end
        done = [job.end for job in jobs if job.out["state"] == "done" and job.end is not None]
        if app.stopping == "first" and done:
            return min(done)
        return max(done) if done and len(done) == len(jobs) else self.run_end

    @cached_property
    def machines(self) -> dict[str, tuple[str, int, int]]:
        """Rack, GPUs and GPUs a slot by machine."""
        rows = self.cluster.machines.select("machine", "rack", "gpus", "slot_gpus").iter_rows()
        return {name: (rack, gpus, slot) for name, rack, gpus, slot in rows}

    def level(self, gpus: frozenset[Gpu]) -> int:
        """0 to 3: all in one slot, one machine, one rack, or spread."""
        machines = {machine for machine, _ in gpus}
        if len(machines) > 1:
            return 2 if len({self.machines[m][0] for m in machines}) == 1 else 3
        return int(len({index // self.machines[m][2] for m, index in gpus}) > 1)

    @cached_property
    def part_sizes(self) -> tuple[int, int, int, int]:
        """GPUs of the largest slot, machine, rack, and of the cluster."""
        racks: dict[str, int] = {}
        for rack, gpus, _ in self.machines.values():
            racks[rack] = racks.get(rack, 0) + gpus
        slot = max(slot for _, _, slot in self.machines.values())
        machine = max(gpus for _, gpus, _ in self.machines.values())
        return slot, machine, max(racks.values()), self.cluster.gpus

    def best_rate(self, job: Job) -> float:
        """GPU-seconds of work a second on the best GPUs of an empty cluster."""
        rates = [0.0]
        for size, slowdown in zip(self.part_sizes, job.slowdowns, strict=True):
            gpus = min(job.most, size)
            if gpus >= job.gang:
                rates.append(gpus / slowdown)
        return max(rates)

    @cached_property
    def instants(self) -> list[int]:
        """Every instant at which a table says that something happened, from the first arrival."""
        times = {t for lease in self.leases for t in (lease.start, lease.end)}
        times |= {job.submit for app in self.apps for job in app.jobs}
        times |= {job.end for app in self.apps for job in app.jobs if job.end is not None}
        return sorted(t for t in times if t <= self.run_end)

    def usage_at(self, at: int) -> Row | None:
        """The row of use that is valid at an instant."""
        rows = self.usage
        found = bisect_right([us(row["at_s"]) for row in rows], at)
        return rows[found - 1] if found else None

    @cached_property
    def usage(self) -> list[dict[str, Any]]:
        return list(self.result.usage.iter_rows(named=True))
