"""A workload as the columns that the compiled core takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.boundary.claims import Claims
from themis.boundary.job_speeds import JobSpeeds, job_speeds
from themis.cluster.cluster import Cluster
from themis.profiles import COLD_START, ProfileInput, read_profiles
from themis.schema.host import needed
from themis.schema.workload import LOSS, STOPPING, WHOLE_MILLI
from themis.workload.tenants import Tenant, names_of_tenants
from themis.workload.workload import Workload

if TYPE_CHECKING:
    from themis import _core

__all__ = ["CoreColumns", "first_jobs", "jobs_by_app", "workload_columns"]

Columns = dict[str, npt.NDArray[Any]]

_US = 1_000_000
_NO_CAP = 2**32 - 1
_RULES = pl.Series(list(STOPPING)), pl.Series(range(len(STOPPING)), dtype=pl.UInt8)


@dataclass(frozen=True)
class CoreColumns:
    """Arrays for :class:`themis.Workload`.

    Parameters
    ----------
    apps
        arrival_us (int64), stopping (uint8: position in `themis.schema.workload.STOPPING`), jobs
        (uint32: how many), max_gpus (uint32; 2^32 - 1: no cap), target_loss (float64; NaN: none),
        weight (float64), tenant (uint32: row of `tenants`), claimed_work, claimed_slowdown and
        claimed_excess (float64: factors of bids).
    jobs
        submit_us (int64), work_gpu_us (float64: on the fastest type that the job may use), gang and
        max (uint32), profile (uint32: row of `slowdowns`), speeds (uint32: row of `speeds.table`),
        checkpoint_us (int64; -1: the setting), iterations, loss_a, loss_b and loss_c (float64; NaN:
        unknown), bracket (uint32; 0: none), gpu_milli (uint32), needs (int64, shape (jobs, 2):
        :func:`themis.schema.host.needed`), app by app.
    slowdowns
        S at slot, machine, rack, cluster: float64, shape (profiles, 4).
    scaling
        Of each profile its (GPUs, efficiency), by GPUs; empty: linear.
    speeds
        Of each job on the GPU types of the cluster.
    tenants
        Lists name, weight, guaranteed and quota (of from_us, GPUs); empty where apps share as if
        they were all of one.
    notes
        What a reader of the result should know.
    """

    apps: Columns
    jobs: Columns
    slowdowns: npt.NDArray[np.float64]
    scaling: list[list[tuple[int, float]]]
    speeds: JobSpeeds
    tenants: dict[str, list[Any]]
    notes: tuple[str, ...]

    def core(self) -> _core.Workload:
        """Return the workload of the compiled core, which has a copy of the columns."""
        from themis import _core  # noqa: PLC0415 - loaded when something runs

        profiles = self.slowdowns, self.scaling
        speeds = self.speeds.table, self.speeds.mixes
        return _core.Workload(self.apps, self.jobs, *profiles, *speeds, self.tenants)


def workload_columns(
    workload: Workload,
    cluster: Cluster,
    profiles: Mapping[str, ProfileInput],
    claimed: Claims,
    tenants: Mapping[str, Tenant] | None = None,
) -> CoreColumns:
    """Return the columns of a workload, jobs app by app.

    Raises
    ------
    ScenarioError
        A profile is invalid, or tenants leave nothing for some app.
    """
    known = read_profiles(profiles)
    names = sorted(known.slowdowns)
    apps, jobs = workload.apps, jobs_by_app(workload)
    chosen = jobs.get_column("profile").fill_null("")
    rows = {name: row for row, name in enumerate(names)}
    cold = rows[COLD_START]
    profile = chosen.replace_strict(rows, default=cold, return_dtype=pl.UInt32)
    gang = jobs.get_column("gang_size").to_numpy()
    speeds = job_speeds(jobs, cluster, known.speeds)
    counts = np.diff(first_jobs(workload), append=jobs.height)
    owner, owners = _tenants(workload, tenants or {})
    return CoreColumns(
        apps={
            "arrival_us": _us(apps.get_column("arrival_s")),
            "stopping": apps.get_column("stopping").replace_strict(*_RULES).to_numpy(),
            "jobs": counts.astype(np.uint32),
            "max_gpus": apps.get_column("max_gpus").fill_null(_NO_CAP).to_numpy().astype(np.uint32),
            "target_loss": _numbers(apps.get_column("target_loss")),
            "weight": apps.get_column("weight").to_numpy(),
            "tenant": owner,
            **claimed.columns(),
        },
        jobs={
            "submit_us": _us(jobs.get_column("submit_s")),
            "work_gpu_us": np.rint(
                jobs.get_column("serial_time_s").to_numpy() * _US / speeds.fastest
            ),
            "gang": gang.astype(np.uint32),
            "max": jobs.get_column("max_gpus").to_numpy().astype(np.uint32),
            "profile": profile.to_numpy(),
            "speeds": speeds.row,
            "checkpoint_us": _us(jobs.get_column("checkpoint_s").fill_null(-1 / _US)),
            **{name: _numbers(jobs.get_column(name)) for name in ("iterations", *LOSS)},
            "bracket": jobs.get_column("bracket").fill_null(0).to_numpy().astype(np.uint32),
            "gpu_milli": _milli(jobs).to_numpy().astype(np.uint32),
            "needs": needed(jobs),
        },
        slowdowns=np.array([known.slowdowns[name] for name in names], dtype=np.float64),
        scaling=[list(known.scaling.get(name, {}).items()) for name in names],
        speeds=speeds,
        tenants=owners,
        notes=(*_notes(workload, chosen.filter(pl.Series(gang > 1)), names), *speeds.notes),
    )


def _tenants(
    workload: Workload, tenants: Mapping[str, Tenant]
) -> tuple[npt.NDArray[np.uint32], dict[str, list[Any]]]:
    """Return the number of each app's tenant, and what the core knows of the tenants."""
    apps = workload.apps.get_column("tenant")
    if not tenants:
        nothing: dict[str, list[Any]] = {
            key: [] for key in ("name", "weight", "guaranteed", "quota")
        }
        return np.zeros(apps.len(), dtype=np.uint32), nothing
    names = names_of_tenants(tenants, workload)
    numbers = {name: number for number, name in enumerate(names)}
    found = [tenants.get(name or "", Tenant()) for name in names]
    return np.array([numbers.get(name, 0) for name in apps], dtype=np.uint32), {
        "name": ["" if name is None else name for name in names],
        "weight": [tenant.weight for tenant in found],
        "guaranteed": [tenant.guaranteed for tenant in found],
        "quota": [
            [(round(at_s * _US), gpus) for at_s, gpus in tenant.quota_gpus or ()]
            for tenant in found
        ],
    }


def _milli(jobs: pl.DataFrame) -> pl.Series:
    return jobs.get_column("gpu_milli").fill_null(WHOLE_MILLI)


def _us(seconds: pl.Series) -> npt.NDArray[np.int64]:
    whole: npt.NDArray[np.int64] = np.rint(seconds.to_numpy() * _US).astype(np.int64)
    return whole


def _numbers(values: pl.Series) -> npt.NDArray[np.float64]:
    """Return NaN where there is none."""
    numbers: npt.NDArray[np.float64] = values.fill_null(np.nan).to_numpy()
    return numbers


def jobs_by_app(workload: Workload) -> pl.DataFrame:
    """Return the jobs in the core's order (that of the workload) with `app`, its app's number.

    Beside it stand the `gpu_types` of the app. A job without a profile has that of its app.
    """
    app = _app_of_jobs(workload).cast(pl.Int64).set_sorted()
    of_app = workload.apps.select(pl.col("gpu_types", "profile").gather(app))
    return workload.jobs.with_columns(
        of_app.get_column("gpu_types"),
        app=app,
        profile=pl.coalesce("profile", of_app.get_column("profile")),
    )


def first_jobs(workload: Workload) -> npt.NDArray[np.int64]:
    """Return the row of the first job of each app."""
    app = _app_of_jobs(workload).to_numpy().view(np.int32)
    return np.flatnonzero(np.diff(app, prepend=-1))


def _app_of_jobs(workload: Workload) -> pl.Series:
    # Jobs stand in the order of their apps, each of which has some: a join on the ids of a million
    # would take 170 MiB.
    return workload.jobs.get_column("app_id").rle_id()


def _notes(workload: Workload, gangs: pl.Series, known: Sequence[str]) -> tuple[str, ...]:
    """Say where the cold-start profile stands in for one that nobody gave."""
    nameless = int((gangs == "").sum())
    unknown = gangs.filter((gangs != "") & ~gangs.is_in(known))
    notes = []
    cold = "slowdowns 1, 1, 1.1, 1.3 at slot, machine, rack, cluster"
    if nameless:
        notes.append(
            f"{nameless} of {workload.jobs.height} jobs run on several GPUs and name no placement "
            f"profile: cold_start is assumed ({cold})"
        )
    if unknown.len():
        names = ", ".join(sorted(unknown.unique().to_list())[:5])
        notes.append(f"{unknown.len()} jobs name an unknown profile ({names}): cold_start ({cold})")
    return tuple(notes)
