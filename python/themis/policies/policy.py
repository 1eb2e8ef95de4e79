"""Policies of one's own: what a policy sees of a cluster, and what it answers.

:class:`Policy` is the interface that the built-in policies have in the engine: `decide` is asked at
every instant at which GPUs are on offer and an app could use more. ``themis.simulate(...,
policy=)`` plays one (docs/policies.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from themis import _core

__all__ = ["AppTable", "Decision", "Grant", "JobTable", "Policy", "PolicyView", "SlotTable"]

Counts = npt.NDArray[np.uint32]
Figures = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SlotTable:
    """The slots of the cluster: columns of shape (slots,), a row each, by slot number.

    Parameters
    ----------
    machine, rack
        Numbers of its machine (row of `Cluster.machines`) and rack: uint32.
    gpu_type
        Number of its GPU type (place in `Cluster.gpu_types`): uint32.
    gpus
        GPUs that it has, used or not: uint32.
    """

    machine: Counts
    rack: Counts
    gpu_type: Counts
    gpus: Counts


@dataclass(frozen=True)
class AppTable:
    """The active apps in tie order, (arrival, app id): columns of shape (apps,).

    Figures are those that agents report (docs/simulation.md, errors and lies).

    Parameters
    ----------
    app
        Number, by which ties are decided; its id is `PolicyView.app_ids[number]`: uint32.
    arrival_s
        When it arrived: float64.
    gpus
        GPUs that it keeps: uint32.
    offered_gpus
        GPUs that it holds whose lease ends now, so that they are on offer: uint32.
    max_gpus
        Most GPUs that it may hold, 2^32 - 1 for any number: uint32.
    unmet_gpus
        GPUs that it could use beyond those it keeps: uint32.
    attained_gpu_s
        GPU-seconds held so far: float64.
    work_left_gpu_s
        GPU-seconds of work until it is done, on one GPU and perfect placement: float64.
    t_id_s
        Its ideal time: float64.
    """

    app: Counts
    arrival_s: Figures
    gpus: Counts
    offered_gpus: Counts
    max_gpus: Counts
    unmet_gpus: Counts
    attained_gpu_s: Figures
    work_left_gpu_s: Figures
    t_id_s: Figures


@dataclass(frozen=True)
class JobTable:
    """The submitted, unfinished jobs of active apps, app by app: columns of shape (jobs,).

    Parameters
    ----------
    job, app
        Its number and that of its app; ids are in `PolicyView.job_ids` and `app_ids`: uint32.
    submit_s
        When it was submitted: float64.
    gang_size, max_gpus
        Fewest and most GPUs that it can use: uint32.
    gpus
        GPUs that it keeps: uint32.
    offered_gpus
        GPUs that it holds whose lease ends now, so that they are on offer: uint32.
    attained_gpu_s
        GPU-seconds held so far: float64.
    work_left_gpu_s
        GPU-seconds of work left, on one GPU and perfect placement: float64.
    requested_s
        The time its user asked for (`request_factor`): float64.
    slowdowns
        S on one slot, one machine, one rack, and across racks: float64, shape (jobs, 4).
    speeds
        Its speed on each GPU type by number, 1 on its fastest, 0 where it may not run: float64,
        shape (jobs, types).
    cpu_cores_per_gpu, memory_gib_per_gpu
        CPU cores and GiB of memory that it takes of a machine for each GPU there; for a share of a
        GPU, what that takes: float64.
    """

    job: Counts
    app: Counts
    submit_s: Figures
    gang_size: Counts
    max_gpus: Counts
    gpus: Counts
    offered_gpus: Counts
    attained_gpu_s: Figures
    work_left_gpu_s: Figures
    requested_s: Figures
    slowdowns: Figures
    speeds: Figures
    cpu_cores_per_gpu: Figures
    memory_gib_per_gpu: Figures


@dataclass(frozen=True)
class Grant:
    """GPUs for a job, beside those that it keeps.

    Parameters
    ----------
    job
        Its number.
    slots
        GPUs of each slot, by slot number.
    lease_fraction
        The share of a lease for which they are granted: above 0, at most 1.
    """

    job: int
    slots: Mapping[int, int]
    lease_fraction: float = 1.0


@dataclass(frozen=True)
class Decision:
    """Grants, and what else a policy asks for.

    Parameters
    ----------
    grants
        Who gets what; whatever is on offer and not granted stays free.
    rejects
        Jobs that wait and will never be served, by number, and why in words: they end in the
        state "rejected".
    wake_at_s
        An instant after now at which to be asked again, if nothing happens before. The last answer
        counts.
    """

    grants: Iterable[Grant] = ()
    rejects: Mapping[int, str] = field(default_factory=dict)
    wake_at_s: float | None = None


class PolicyView:
    """The cluster, the offer and the apps at one instant.

    Columns are the engine's own arrays, handed over without a copy; a view may be kept, and never
    changes but by claims.

    Parameters
    ----------
    now_s
        Seconds on the workload's clock.
    lease_s
        Length of a lease.
    slots, apps, jobs
        Columns.
    app_ids, job_ids
        Ids of all apps and jobs of the workload by number.
    offer
        The engine's side of it.
    """

    def __init__(  # noqa: PLR0913 - made by the driver alone
        self,
        *,
        now_s: float,
        lease_s: float,
        slots: SlotTable,
        apps: AppTable,
        jobs: JobTable,
        app_ids: Sequence[str],
        job_ids: Sequence[str],
        offer: _core.PolicyOffer,
    ) -> None:
        self.now_s = now_s
        self.lease_s = lease_s
        self.slots = slots
        self.apps = apps
        self.jobs = jobs
        self.app_ids = app_ids
        self.job_ids = job_ids
        self._offer = offer

    @property
    def free(self) -> Counts:
        """GPUs on offer and not claimed yet, by slot: uint32, shape (slots,), a new array."""
        return self._offer.free()

    @property
    def free_gpus(self) -> int:
        """GPUs on offer and not claimed yet, in all."""
        return self._offer.total()

    @property
    def free_host(self) -> Figures:
        """CPU cores and GiB of memory not taken or claimed yet, by machine: float64.

        Shape (machines, 2), a new array; (0, 2) where no machine of the cluster is limited.
        Infinite where one is not.
        """
        return self._offer.host()

    def rho(self) -> Figures:
        """Return each app's rho if it goes on with what it keeps and has claimed.

        Infinite without GPUs. float64, shape (apps,), beside `apps`.
        """
        return self._offer.rho()

    def best_rho(self) -> Figures:
        """Return each app's rho if the whole cluster were its own from now on.

        float64, shape (apps,), beside `apps`.
        """
        return self._offer.best_rho()

    def spare_gpus(self, app: int) -> int:
        """Return how many GPUs an app may hold beyond those it keeps and has claimed."""
        return self._offer.spare(self._app_row(app))

    def holdings(self, job: int) -> tuple[dict[int, int], dict[int, int]]:
        """Return GPUs by slot: those that a job keeps or has claimed, and those on offer again."""
        kept, offered = self._offer.holdings(*self._job_place(job))
        return dict(kept), dict(offered)

    def claim(self, job: int, most: int | None = None) -> Grant | None:
        """Take the GPUs on offer that speed a job up most, by the rule of the built-in policies.

        A job that waits gets its gang at least, at most what it can use and its app may hold; the
        GPUs that it had until now when none are better. None if there are none that help.

        Parameters
        ----------
        job
            Its number.
        most
            At most so many GPUs; None: as many as help.
        """
        limit = 2**32 - 1 if most is None else max(0, int(most))
        slots = self._offer.claim(*self._job_place(job), limit)
        return None if slots is None else Grant(int(job), dict(slots))

    def claim_app(self, app: int) -> list[Grant]:
        """Take all that helps an app, divided among its jobs as its scheduler does."""
        row = self._app_row(app)
        first = int(np.searchsorted(self.jobs.app, app))
        return [
            Grant(int(self.jobs.job[first + job]), dict(slots))
            for job, slots in self._offer.claim_app(row)
        ]

    def _app_row(self, app: int) -> int:
        return _row(self.apps.app, app, "app")

    def _job_place(self, job: int) -> tuple[int, int]:
        """Return the row of its app, and its position among the app's jobs."""
        row = _row(self.jobs.job, job, "job")
        app = self.jobs.app[row]
        first = int(np.searchsorted(self.jobs.app, app))
        return int(np.searchsorted(self.apps.app, app)), row - first


def _row(numbers: Counts, number: int, what: str) -> int:
    row = int(np.searchsorted(numbers, number))
    if row == len(numbers) or numbers[row] != number:
        raise KeyError(f"{what} {number} is not in this view")
    return row


class Policy:
    """A policy of one's own.

    A run plays a deep copy of the object that it is given, so that one object may be used in many
    runs and each starts from the same state. What `decide` does must depend on nothing but that
    state and the view: then the same input gives the same result.
    """

    name: str = ""
    """Its name in results: letters, digits, ``_``, ``.`` and ``-``; empty: that of its class."""

    leases: bool = True
    """Whether grants end with a lease. Without, a job keeps its GPUs until it ends."""

    needs: ClassVar[str] = ""
    """What it has to know of an app or a job, for ``themis policies``."""

    optimises: ClassVar[str] = ""
    """What it is after, for ``themis policies``."""

    def decide(self, view: PolicyView) -> Decision | Iterable[Grant] | None:
        """Return who gets which of the GPUs on offer: grants, a :class:`Decision`, or nothing.

        Raises
        ------
        NotImplementedError
            Always: a policy has its own.
        """
        raise NotImplementedError(f"{type(self).__name__} has no decide(view)")
