"""Built-in policies written again in Python."""

from __future__ import annotations

import numpy as np

from themis.policies.policy import Grant, Policy, PolicyView

__all__ = ["TWINS"]


class Fifo(Policy):
    name = "own-fifo"
    leases = False

    def decide(self, view: PolicyView) -> list[Grant]:
        jobs, grants = view.jobs, list[Grant]()
        for row in np.lexsort((jobs.job, jobs.submit_s)):
            if jobs.gpus[row] or view.spare_gpus(jobs.app[row]) < jobs.gang_size[row]:
                continue  # it runs, or waits for its own app
            grant = view.claim(jobs.job[row])
            if grant is None:
                break
            grants.append(grant)
        return grants


class LeastFirst(Policy):
    """The app with the least key first."""

    def key(self, view: PolicyView) -> np.ndarray:
        raise NotImplementedError

    def decide(self, view: PolicyView) -> list[Grant]:
        order = np.argsort(self.key(view), kind="stable")
        return [grant for app in view.apps.app[order] for grant in view.claim_app(app)]


class Las(LeastFirst):
    name = "own-las"

    def key(self, view: PolicyView) -> np.ndarray:
        return view.apps.attained_gpu_s


class Srsf(LeastFirst):
    name = "own-srsf"

    def key(self, view: PolicyView) -> np.ndarray:
        return np.rint(view.apps.work_left_gpu_s * 1e6)


class Slack(LeastFirst):
    name = "own-slack"

    def key(self, view: PolicyView) -> np.ndarray:
        return -view.best_rho()


TWINS: dict[str, Policy] = {"fifo": Fifo(), "tiresias": Las(), "srsf": Srsf(), "slack": Slack()}
