"""How fast each job runs on each GPU type of a cluster, and which types it may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.cluster.spec import UNTYPED

if TYPE_CHECKING:
    from themis.cluster.cluster import Cluster

__all__ = ["JobSpeeds", "allowed_types", "job_speeds"]


@dataclass(frozen=True)
class JobSpeeds:
    """Speeds of the jobs of a workload.

    Parameters
    ----------
    table
        Speed on each type of `Cluster.gpu_types`, 0 where it may not be used: float64, shape
        (different rows, types).
    mixes
        Whether jobs of each row of `table` run on several types at once: bool.
    row
        Row of `table` of each job: uint32.
    fastest
        Largest speed of each job, 1 where it may use no type: float64.
    notes
        What was assumed.
    """

    table: npt.NDArray[np.float64]
    mixes: npt.NDArray[np.bool_]
    row: npt.NDArray[np.uint32]
    fastest: npt.NDArray[np.float64]
    notes: tuple[str, ...]


def allowed_types(gpu_types: str | None, here: Sequence[str]) -> frozenset[str]:
    """Return those of the types of a cluster that ``"A|B"`` allows: all for None.

    A cluster that names no types says nothing about what may run on it: all are allowed.
    """
    if gpu_types is None or set(here) == {UNTYPED}:
        return frozenset(here)
    return frozenset(here) & {word.strip() for word in gpu_types.split("|")}


def job_speeds(
    jobs: pl.DataFrame, cluster: Cluster, speeds: Mapping[str, Mapping[str, float]]
) -> JobSpeeds:
    """Return the speeds of `jobs`, which have profile and gpu_types (String), and mixes_types.

    `speeds` are those of each profile by GPU type, where it says some; on a type that it does not
    name a job runs at speed 1.
    """
    types = cluster.gpu_types
    kinds = jobs.select(
        pl.when(pl.col("profile").is_in(list(speeds))).then("profile").alias("profile"),
        "gpu_types",
        pl.col("mixes_types").fill_null(value=True),
    )
    different = kinds.unique(maintain_order=True)
    table = np.zeros((different.height, len(types)))
    for at, (profile, wanted, _) in enumerate(different.iter_rows()):
        allowed = allowed_types(wanted, types)
        own = speeds.get(profile, {})
        table[at] = [own.get(name, 1.0) if name in allowed else 0.0 for name in types]
    numbered = different.with_row_index("row")
    row = kinds.join(
        numbered, on=different.columns, nulls_equal=True, maintain_order="left"
    ).get_column("row")
    fastest = table.max(axis=1)
    fastest[fastest == 0] = 1.0
    return JobSpeeds(
        table=table,
        mixes=different.get_column("mixes_types").to_numpy(),
        row=row.to_numpy(),
        fastest=fastest[row.to_numpy()],
        notes=_notes(kinds, types, speeds),
    )


def _notes(
    kinds: pl.DataFrame, types: tuple[str, ...], speeds: Mapping[str, Mapping[str, float]]
) -> tuple[str, ...]:
    """Say where a profile names speeds, but not for all types of a cluster of several."""
    notes = []
    for profile in kinds.get_column("profile").drop_nulls().unique().sort():
        missing = [name for name in types if name not in speeds[profile]]
        if missing and len(types) > 1:
            names = ", ".join(missing)
            notes.append(f"profile {profile!r} says no speed on {names}: 1 is assumed")
    return tuple(notes)
