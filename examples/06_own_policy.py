"""Write a policy: the user who has held the fewest GPU-hours so far goes first."""

# ruff: noqa: INP001, T201 - a script to read and run, which prints

from __future__ import annotations

from collections import Counter

import polars as pl

import themis


class UsersInTurn(themis.Policy):
    """Least attained service of users, over all of their apps, those that have ended too."""

    name = "users-in-turn"

    def __init__(self, apps: pl.DataFrame) -> None:
        self.user: dict[str, str] = dict(apps.select("app_id", "user").iter_rows())
        self.attained_gpu_s: dict[str, float] = {}

    def decide(self, view: themis.PolicyView) -> list[themis.Grant]:
        """Serve the apps by their users; those of one user by arrival."""
        names = [view.app_ids[app] for app in view.apps.app]
        self.attained_gpu_s.update(zip(names, view.apps.attained_gpu_s.tolist(), strict=True))
        of_user: Counter[str] = Counter()
        for app, gpu_s in self.attained_gpu_s.items():
            of_user[self.user[app]] += round(gpu_s)
        apps = sorted(
            zip(names, view.apps.app, strict=True), key=lambda a: of_user[self.user[a[0]]]
        )
        return [grant for _, app in apps for grant in view.claim_app(app)]


cluster = themis.Cluster.parse("1x(2x8/4)")
workload = themis.generate("demo", seed=0)
policies = ["fifo", "tiresias", UsersInTurn(workload.apps)]
comparison = themis.compare(workload, cluster, policies=policies)

print(f"{'':15}{'mean hours of an app':>22}{'of the worst user':>19}")
for policy in comparison.policies:
    apps = comparison.results[policy, 0].apps
    hours = apps.select("user", hours=(pl.col("end_s") - pl.col("arrival_s")) / 3600)
    means = [part["hours"].mean() for part in hours.partition_by("user")]
    print(f"{policy:15}{hours['hours'].mean():22.2f}{max(means):19.2f}")
