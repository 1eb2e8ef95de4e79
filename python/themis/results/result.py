"""The outcome of one simulation: five tables, a manifest, and a summary of metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from themis.arguments import path as path_argument
from themis.errors import ThemisError
from themis.files.atomic_directory import check_version, json_text, new_directory, read_manifest
from themis.files.expansion import PARQUET_ERRORS, check_parquet
from themis.metrics import Number, summarise
from themis.metrics.by_tenant import tenant_table
from themis.metrics.completion import COMPLETION_S
from themis.notebook import fact_table
from themis.schema.result import RESULT_SCHEMA_VERSION, TABLES, checked_frames, conform

if TYPE_CHECKING:
    from themis.cluster.cluster import Cluster
    from themis.policies.policy import Policy
    from themis.profiles import ProfileInput
    from themis.scenario.scenario import Scenario
    from themis.workload.tenants import Tenant
    from themis.workload.workload import Workload

__all__ = ["Inputs", "Result", "load_result"]

_VERSION_KEY = "themis.schema_version"


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a result was made of, while it is in memory.

    Parameters
    ----------
    workload, cluster
        What was played, and on what.
    profiles
        Placement scores by name, beside the built-in ones.
    policy
        A policy of one's own; None: a built-in one.
    agents
        Whether some apps were scheduled by agents in Python.
    tenants
        What tenants were given, by name.
    """

    workload: Workload
    cluster: Cluster
    profiles: Mapping[str, ProfileInput] = field(default_factory=dict)
    policy: Policy | None = None
    agents: bool = False
    tenants: Mapping[str, Tenant] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What one policy did with one workload on one cluster.

    Parameters
    ----------
    frames
        The tables apps, jobs, leases, auctions and usage with the columns of
        :data:`themis.schema.result.TABLES`. Times are seconds on the workload's clock.
    manifest
        Where the result came from: policy, seed, settings, cluster, workload, versions, notes.
        `policy` (a string) and `seed` (an integer) are required. `scenario`, where there is one,
        says how to build workload and cluster again.
    inputs
        Workload and cluster, where the result has not come from disk.

    Raises
    ------
    ThemisError
        A table or column is missing, unknown or of another type, or the manifest is incomplete
        or of another schema version.
    """

    frames: Mapping[str, pl.DataFrame]
    manifest: Mapping[str, object]
    inputs: Inputs | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", checked_frames(self.frames))
        object.__setattr__(self, "manifest", _checked_manifest(self.manifest))

    @property
    def apps(self) -> pl.DataFrame:
        """One row an app: times, rho, GPU time, interruptions."""
        return self.frames["apps"]

    @property
    def jobs(self) -> pl.DataFrame:
        """One row a job: times, final state, GPU time."""
        return self.frames["jobs"]

    @property
    def leases(self) -> pl.DataFrame:
        """One row a contiguous run of GPUs of a machine leased to an app."""
        return self.frames["leases"]

    @property
    def auctions(self) -> pl.DataFrame:
        """One row an auction; empty for policies that hold none."""
        return self.frames["auctions"]

    @property
    def usage(self) -> pl.DataFrame:
        """GPUs and apps in use: one row a change, valid until the next row."""
        return self.frames["usage"]

    @property
    def capacity(self) -> pl.DataFrame:
        """Changes of what machines have, one row each; a machine has all before its first."""
        return self.frames["capacity"]

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return str(self.manifest["policy"])

    @property
    def seed(self) -> int:
        """Seed of the run."""
        seed = self.manifest["seed"]
        return seed if isinstance(seed, int) else 0

    def summary(self) -> dict[str, Number]:
        """Metrics by name (docs/metrics.md); JSON-able, None where undefined, never NaN."""
        return dict(self._summary)

    def tenants(self) -> pl.DataFrame:
        """Return a row a tenant: its apps, GPU time, rho and completion times.

        Columns of :data:`themis.metrics.by_tenant.TENANTS`, by name; apps without a tenant come
        last, as one.
        """
        return tenant_table(self.apps.with_columns(COMPLETION_S))

    def with_scenario(self, scenario: Scenario) -> Result:
        """Return the same result with a manifest that says by which scenario it was made."""
        of_run = scenario.of_run(self.policy, self.seed)
        return replace(self, manifest={**self.manifest, "scenario": of_run.document()})

    def write(
        self,
        directory: str | PathLike[str],
        *,
        force: bool = False,
        tables: bool = True,
    ) -> Path:
        """Write the result to `directory`, whole or not at all; the same bytes every time.

        The files are manifest.json, summary.json and one Parquet file (zstd) a table.

        Parameters
        ----------
        directory
            Created with its parents. An earlier result there is replaced.
        force
            Replace a directory that holds other files as well. They are lost.
        tables
            Write the tables. Without them the directory is a summary of kind "summary", which
            cannot be loaded as a result.

        Returns
        -------
        pathlib.Path
            The directory.

        Raises
        ------
        ThemisError
            The directory holds files that Themis did not write, or cannot be written.
        """
        target = path_argument("result: directory", directory, ThemisError)
        with new_directory(target, force=force) as partial:
            self._fill(partial, self.frames if tables else {})
        return target

    def __repr__(self) -> str:
        horizon = self.summary()["apps_unfinished"]
        unfinished = f", {horizon} unfinished" if horizon else ""
        return (
            f"Result(policy={self.policy!r}, seed={self.seed}, apps={self.apps.height}{unfinished},"
            f" jobs={self.jobs.height}, rho_max={_short(self.summary()['rho_max'])},"
            f" makespan_s={_short(self.summary()['makespan_s'])})"
        )

    def _repr_html_(self) -> str:
        known = ((name, value) for name, value in self.summary().items() if value is not None)
        return fact_table(f"Themis result: {self.policy}, seed {self.seed}", known)

    @cached_property
    def _summary(self) -> dict[str, Number]:
        return summarise(self.frames)

    def _fill(self, directory: Path, frames: Mapping[str, pl.DataFrame]) -> None:
        for name, frame in frames.items():
            frame.write_parquet(
                directory / f"{name}.parquet",
                compression="zstd",
                metadata={_VERSION_KEY: str(RESULT_SCHEMA_VERSION)},
            )
        summary = {"schema_version": RESULT_SCHEMA_VERSION, **self.summary()}
        (directory / "summary.json").write_text(json_text(summary), encoding="utf-8")
        manifest = {
            **self.manifest,
            "kind": "result" if frames else "summary",
            "rows": {name: frame.height for name, frame in self.frames.items()},
            "files": [
                "manifest.json",
                "summary.json",
                *(f"{name}.parquet" for name in frames),
            ],
        }
        (directory / "manifest.json").write_text(json_text(manifest), encoding="utf-8")


def load_result(directory: str | PathLike[str]) -> Result:
    """Return the result that :meth:`Result.write` left in `directory`.

    Raises
    ------
    ThemisError
        A file is missing or damaged, has another schema version or other columns, or a table
        has another number of rows than the manifest says; the message names the file.
    """
    root = path_argument("result: directory", directory, ThemisError)
    manifest = read_manifest(root, "result", RESULT_SCHEMA_VERSION)
    rows = manifest.pop("rows", None)
    if not isinstance(rows, dict):
        path = root / "manifest.json"
        raise ThemisError(f"{path}: field 'rows' is {rows!r}: expected the rows of each table")
    frames = {name: _read_table(root / f"{name}.parquet", name, rows.get(name)) for name in TABLES}
    for added in ("files", "kind"):
        manifest.pop(added, None)
    return Result(frames=frames, manifest=manifest)


def _read_table(path: Path, name: str, rows: object) -> pl.DataFrame:
    if not path.is_file():
        raise ThemisError(f"{path}: file is missing")
    try:
        version = pl.read_parquet_metadata(path).get(_VERSION_KEY)
        check_parquet(path, ThemisError)
        frame = pl.read_parquet(path)
    except PARQUET_ERRORS as error:
        raise ThemisError(f"{path}: not a readable Parquet file: {error}") from error
    check_version(version, RESULT_SCHEMA_VERSION, path)
    if frame.height != rows:
        raise ThemisError(f"{path}: {frame.height} rows: the manifest says {rows}")
    return conform(name, frame, where=str(path))


def _checked_manifest(manifest: Mapping[str, object]) -> dict[str, object]:
    found = manifest.get("schema_version", RESULT_SCHEMA_VERSION)
    if found != RESULT_SCHEMA_VERSION:
        raise ThemisError(f"manifest: schema version {found!r}: expected {RESULT_SCHEMA_VERSION}")
    for name, wanted in (("policy", str), ("seed", int)):
        if not isinstance(manifest.get(name), wanted) or isinstance(manifest.get(name), bool):
            value = manifest.get(name)
            raise ThemisError(f"manifest: field {name!r} is {value!r}: expected {wanted.__name__}")
    versioned = {**manifest, "schema_version": RESULT_SCHEMA_VERSION}
    checked: dict[str, object] = json.loads(json_text(versioned))
    return checked


def _short(value: Number) -> str:
    if value is None:
        return "n/a"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
