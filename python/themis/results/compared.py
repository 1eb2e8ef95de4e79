"""What a comparison tells: runs in brief, the headline table, who won and who lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import polars as pl

from themis.metrics import Number
from themis.metrics.catalogue import CATALOGUE, HEADLINES
from themis.notebook import grid
from themis.results.differences import differences
from themis.results.digest import RunDigest
from themis.results.paired import Grouping, default_baseline, winners

__all__ = ["Compared"]


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """Runs of several policies (and seeds) on the same workload and cluster, in brief.

    Parameters
    ----------
    runs
        One digest a run, in the order of policies, then seeds.
    apps
        Rows of :func:`themis.results.digest.app_rows`, one an app and run: the paired frame.
    complete
        False where the comparison was interrupted before its last run.
    baseline
        The policy that others are compared with; where no run has it,
        :func:`themis.results.paired.default_baseline`.
    """

    runs: Sequence[RunDigest]
    apps: pl.DataFrame
    _: KW_ONLY
    complete: bool = True
    baseline: str = ""

    def __post_init__(self) -> None:
        if self.baseline not in self.policies:
            object.__setattr__(self, "baseline", default_baseline(self.policies))

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in order."""
        return list(dict.fromkeys(run.label for run in self.runs))

    @property
    def seeds(self) -> list[int]:
        """Seeds, in order."""
        return list(dict.fromkeys(run.seed for run in self.runs))

    def table(self, *, spread: bool = False) -> pl.DataFrame:
        """One row a policy: the headline metrics, each the median over its seeds.

        Parameters
        ----------
        spread
            Add the lowest and highest value over the seeds (columns `<metric>_low`, `_high`).

        Returns
        -------
        polars.DataFrame
            policy, seeds (how many), then the metrics of
            :data:`themis.metrics.catalogue.HEADLINES`; null where no seed has the metric.
        """
        rows = []
        for policy in self.policies:
            summaries = [run.summary for run in self.runs if run.label == policy]
            row: dict[str, object] = {"policy": policy, "seeds": len(summaries)}
            for name in HEADLINES:
                row |= _over_seeds(name, summaries, spread=spread)
            rows.append(row)
        floats = {name: pl.Float64 for name in rows[0] if name not in ("policy", "seeds")}
        return pl.DataFrame(rows, schema={"policy": pl.String, "seeds": pl.Int64, **floats})

    def winners(self, baseline: str | None = None, *, by: Grouping = "policy") -> pl.DataFrame:
        """Who ended sooner or later than under `baseline`: :func:`themis.results.paired.winners`.

        Parameters
        ----------
        baseline
            A policy of this comparison; None: that of :attr:`baseline`.
        by
            A row a policy, tenant, user or app.
        """
        return winners(self.apps, baseline or self.baseline, by)

    def differences(self, baseline: str | None = None, *, by: Grouping = "policy") -> pl.DataFrame:
        """How much sooner apps finish than under `baseline`, and how rho changes, with intervals.

        The columns are those of :func:`themis.results.differences.differences`.

        Parameters
        ----------
        baseline
            A policy of this comparison; None: that of :attr:`baseline`.
        by
            A row a policy, tenant, user or app.
        """
        return differences(self.apps, baseline or self.baseline, by)

    def summary(self) -> dict[str, object]:
        """All metrics of all runs and the pairs against the default baseline; JSON-able."""
        return {
            "policies": self.policies,
            "seeds": self.seeds,
            "complete": self.complete,
            "baseline": self.baseline,
            "runs": [{"policy": run.label, "seed": run.seed, **run.summary} for run in self.runs],
            "winners": self.winners().to_dicts(),
            "differences": self.differences().to_dicts(),
        }

    def __repr__(self) -> str:
        apps = self.apps.get_column("app_id").n_unique()
        return f"{type(self).__name__}(policies={self.policies}, seeds={self.seeds}, apps={apps})"

    def _repr_html_(self) -> str:
        table = self.table()
        rows = [[CATALOGUE[name].title, *table.get_column(name)] for name in HEADLINES]
        seeds = f", median of {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
        return grid(f"Themis comparison{seeds}", ["", *self.policies], rows)


def _over_seeds(
    name: str, summaries: Sequence[Mapping[str, Number]], *, spread: bool
) -> dict[str, float | None]:
    values = [float(value) for run in summaries if (value := run[name]) is not None]
    row = {name: float(np.median(values)) if values else None}
    if spread:
        row[f"{name}_low"] = min(values, default=None)
        row[f"{name}_high"] = max(values, default=None)
    return row
