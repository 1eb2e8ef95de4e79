"""Between a policy in Python and the engine: makes the view, checks the form of the answer."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from themis.boundary.columns import jobs_by_app
from themis.errors import PolicyAnswerError, PolicyError
from themis.policies.policy import (
    AppTable,
    Decision,
    Grant,
    JobTable,
    Policy,
    PolicyView,
    SlotTable,
)

if TYPE_CHECKING:
    from themis import _core
    from themis.cluster.cluster import Cluster
    from themis.workload.workload import Workload

__all__ = ["PolicyDriver", "checked_name"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MOST_GPUS = 2**31
_LATEST_S = 9.2e12
_US = 1_000_000


class _Answer(NamedTuple):
    """What the engine takes."""

    grants: list[tuple[int, int, list[tuple[int, int]], float]]
    rejects: list[tuple[int, int, str]]
    wake_us: int | None


def checked_name(policy: Policy) -> str:
    """Return the name of a policy of one's own in results.

    Raises
    ------
    PolicyError
        It is no name of letters, digits, ``_``, ``.`` and ``-``.
    """
    name = policy.name or type(policy).__name__
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PolicyError(
            f"policy {type(policy).__name__}: its name is {name!r}: expected letters, digits, _, . "
            "and -"
        )
    return name


class PolicyDriver:
    """Asks one policy in one run.

    Parameters
    ----------
    policy
        The policy; it is used up.
    name
        Its name in results.
    workload, cluster
        What is played, and on what.
    lease_s
        Length of a lease.
    """

    def __init__(
        self, policy: Policy, name: str, workload: Workload, cluster: Cluster, lease_s: float
    ) -> None:
        self._policy = policy
        self.name = name
        self.leases: bool = policy.leases
        self._lease_s = lease_s
        self._now_s = -math.inf
        jobs = jobs_by_app(workload)
        self._app_ids: list[str] = workload.apps.get_column("app_id").to_list()
        self._job_ids: list[str] = jobs.get_column("job_id").to_list()
        self._app_of: list[int] = jobs.get_column("app").to_list()
        self._slots = SlotTable(**frozen(cluster.core.slot_columns()))
        if not isinstance(self.leases, bool):
            raise PolicyError(f"policy {name}: leases is {self.leases!r}: expected True or False")

    def decide(
        self,
        now_s: float,
        apps: Mapping[str, np.ndarray],
        jobs: Mapping[str, np.ndarray],
        offer: _core.PolicyOffer,
    ) -> _Answer:
        """Return what the policy says, in the engine's terms."""
        self._now_s = now_s
        view = PolicyView(
            now_s=now_s,
            lease_s=self._lease_s,
            slots=self._slots,
            apps=AppTable(**frozen(apps)),
            jobs=JobTable(**frozen(jobs)),
            app_ids=self._app_ids,
            job_ids=self._job_ids,
            offer=offer,
        )
        try:
            answer = self._policy.decide(view)
            decision = answer if isinstance(answer, Decision) else Decision(answer or ())
            grants = decision.grants
            listed = list(grants) if isinstance(grants, Iterable) else grants
        except Exception as error:
            told = f"decide raised {type(error).__name__}: {error}"
            raise self._wrong(told) from error
        if not isinstance(listed, list):
            raise self._wrong(f"decide returned {listed!r}: expected grants, a Decision or None")
        return _Answer(
            [self._grant(grant) for grant in listed],
            self._rejects(decision.rejects),
            self._wake_us(decision.wake_at_s),
        )

    def refusal(self, app: int, job: int, problem: str) -> PolicyAnswerError:
        """Return the error for an answer that the engine can't carry out."""
        return self._wrong(f"app {self._app_ids[app]!r}, job {self._job_ids[job]!r}: {problem}")

    def _wrong(self, problem: str) -> PolicyAnswerError:
        return PolicyAnswerError(f"policy {self.name}, at {self._now_s} s: {problem}")

    def _grant(self, grant: object) -> tuple[int, int, list[tuple[int, int]], float]:
        if not isinstance(grant, Grant):
            raise self._wrong(f"decide returned {grant!r} among its grants: expected a Grant")
        job = self._job(grant.job, "a grant")
        if not isinstance(grant.slots, Mapping):
            raise self._about(job, f"slots is {grant.slots!r}: expected GPUs by slot number")
        slots = [self._gpus(job, slot, gpus) for slot, gpus in grant.slots.items()]
        fraction = self._number(grant.lease_fraction)
        if fraction is None:
            raise self._about(job, f"lease_fraction is {grant.lease_fraction!r}: expected a number")
        return self._app_of[job], job, slots, fraction

    def _gpus(self, job: int, slot: object, gpus: object) -> tuple[int, int]:
        slots = len(self._slots.gpus)
        number, count = self._whole(slot, slots), self._whole(gpus, _MOST_GPUS)
        if number is None:
            raise self._about(job, f"slot {slot!r} is unknown: expected 0 to {slots - 1}")
        if not count:
            raise self._about(job, f"slot {number}: {gpus!r} GPUs: expected a whole number from 1")
        return number, count

    def _rejects(self, rejects: object) -> list[tuple[int, int, str]]:
        if not isinstance(rejects, Mapping):
            raise self._wrong(f"rejects is {rejects!r}: expected reasons by job number")
        found = []
        for given, why in rejects.items():
            job = self._job(given, "rejects")
            if not isinstance(why, str) or not why:
                raise self._about(job, f"is rejected for {why!r}: expected the reason, in words")
            found.append((self._app_of[job], job, why.encode(errors="replace").decode()))
        return sorted(found)

    def _wake_us(self, wake_at_s: object) -> int | None:
        if wake_at_s is None:
            return None
        at_s = self._number(wake_at_s)
        if at_s is None or not self._now_s < at_s:
            raise self._wrong(f"wake_at_s is {wake_at_s!r}: expected an instant after now")
        # Never now, nor an instant beyond the clock.
        return max(math.ceil(min(at_s, _LATEST_S) * _US), round(self._now_s * _US) + 1)

    def _job(self, job: object, what: str) -> int:
        number = self._whole(job, len(self._job_ids))
        if number is None:
            known = f"a number from 0 to {len(self._job_ids) - 1}"
            raise self._wrong(f"{what} names job {job!r}: expected {known} (view.jobs.job)")
        return number

    def _about(self, job: int, problem: str) -> PolicyAnswerError:
        return self.refusal(self._app_of[job], job, problem)

    @staticmethod
    def _whole(value: object, below: int) -> int | None:
        """Return a whole number from 0 on, NumPy's too; None for anything else."""
        if isinstance(value, bool) or not isinstance(value, Integral):
            return None
        number = int(value)
        return number if 0 <= number < below else None

    @staticmethod
    def _number(value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, Real):
            return None
        with contextlib.suppress(OverflowError):
            number = float(value)
            return number if math.isfinite(number) else None
        return None


def frozen(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return columns that nobody writes to."""
    for column in columns.values():
        column.flags.writeable = False
    return dict(columns)
