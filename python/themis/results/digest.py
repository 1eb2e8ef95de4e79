"""A run in brief: all that tables and charts need, without its large tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from themis.metrics import Number
from themis.metrics.completion import COMPLETION_S
from themis.metrics.curves import Curves, curves_of
from themis.results.result import Result

__all__ = ["RunDigest", "app_rows", "digest"]


@dataclass(frozen=True, eq=False)
class RunDigest:
    """Summary, curves and manifest of one run, under the name that charts give it.

    `point` has the values, as text, of what varied in a sweep beside the seed.
    """

    label: str
    seed: int
    summary: Mapping[str, Number]
    curves: Curves
    manifest: Mapping[str, object]
    point: Mapping[str, str] = field(default_factory=dict)


def digest(result: Result, label: str | None = None) -> RunDigest:
    """Condense `result`; `label` defaults to its policy."""
    return RunDigest(
        label=label or result.policy,
        seed=result.seed,
        summary=result.summary(),
        curves=curves_of(dict(result.frames)),
        manifest=result.manifest,
    )


def app_rows(result: Result, policy: str) -> pl.DataFrame:
    """One row an app for pairing with other runs: who, which run, and how it fared.

    Columns: app_id, user, tenant, policy, seed, arrival_s, state, completion_s (null unless
    done), rho, rho_is_bound, queue_s, gpu_s, useful_gpu_s, preemptions, migrations,
    placement_score.
    """
    return result.apps.select(
        "app_id",
        "user",
        "tenant",
        pl.lit(policy).alias("policy"),
        pl.lit(result.seed, dtype=pl.UInt64).alias("seed"),
        "arrival_s",
        "state",
        COMPLETION_S,
        "rho",
        "rho_is_bound",
        "queue_s",
        "gpu_s",
        "useful_gpu_s",
        "preemptions",
        "migrations",
        "placement_score",
    )
