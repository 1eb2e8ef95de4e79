"""The outcome of a sweep: a table with a row a run, and the runs themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import polars as pl

from themis.comparison.comparison import Comparison, StoredResults, stored_comparison
from themis.errors import ThemisError
from themis.files.atomic_directory import json_text, read_manifest
from themis.files.atomic_file import new_file
from themis.metrics.catalogue import CATALOGUE, HEADLINES, Unit
from themis.notebook import grid
from themis.results.result import Result, load_result
from themis.schema.result import RESULT_SCHEMA_VERSION
from themis.sweeps.store import FILES, Store

__all__ = ["SWEEP_SCHEMA_VERSION", "Sweep", "SweepRun", "load_sweep", "shown"]

SWEEP_SCHEMA_VERSION = 1
"""Version of a sweep's manifest and table."""

_POLICY = ("policy", "policy.name")
_TYPES = {Unit.COUNT: pl.Int64, Unit.FLAG: pl.Boolean}


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep: its point, its address, and what went wrong, if anything did."""

    values: Mapping[str, object]
    address: str
    error: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """The runs of a sweep, in the order of the grid: the first axis changes last.

    Parameters
    ----------
    axes
        Values by key, typed as the scenario has them.
    plan
        Every run, in order.
    store
        Where the results are.
    scenario
        The scenario that all runs share, as nested tables.
    keeper
        Holds on to a directory that shall vanish with this object.
    """

    axes: Mapping[str, Sequence[object]]
    plan: Sequence[SweepRun]
    store: Store
    scenario: Mapping[str, object]
    keeper: object = field(default=None, repr=False)

    @property
    def directory(self) -> Path:
        """Where the results are."""
        return self.store.root

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row a run, as things stood at the first look.

        Columns: one an axis under its key; run (the address), state (done, failed, pending),
        error (null unless failed), then every metric of :meth:`themis.Result.summary`,
        null unless done.
        """
        columns: dict[str, pl.Series] = {
            key: _axis_column(key, [run.values[key] for run in self.plan]) for key in self.axes
        }
        summaries = [self.store.summary(run.address) for run in self.plan]
        states = [_state(run, summary) for run, summary in zip(self.plan, summaries, strict=True)]
        columns["run"] = pl.Series([run.address for run in self.plan], dtype=pl.String)
        columns["state"] = pl.Series(states, dtype=pl.String)
        columns["error"] = pl.Series([run.error for run in self.plan], dtype=pl.String)
        for name, metric in CATALOGUE.items():
            dtype = _TYPES.get(metric.unit, pl.Float64)
            values = [None if summary is None else summary.get(name) for summary in summaries]
            columns[name] = pl.Series(values, dtype=dtype, strict=False)
        return pl.DataFrame(columns)

    def medians(self) -> pl.DataFrame:
        """Return one row a point of the axes but the seed: medians over the seeds that are done.

        Columns: one an axis under its key; runs (how many are done), then every metric of
        :meth:`themis.Result.summary` that is a number, as Float64; null where no run is done.
        """
        keys = [key for key in self.axes if key != "seed"]
        numbers = [name for name, metric in CATALOGUE.items() if metric.unit is not Unit.FLAG]
        done = (pl.col("state") == "done").sum().alias("runs")
        figures = done, *(pl.col(name).cast(pl.Float64).median() for name in numbers)
        if not keys:
            return self.runs.select(*figures)
        return self.runs.group_by(keys, maintain_order=True).agg(*figures)

    @property
    def failures(self) -> list[SweepRun]:
        """The runs that failed."""
        return [run for run in self.plan if run.error is not None]

    @property
    def complete(self) -> bool:
        """Whether every run was played, with success or without."""
        return "pending" not in self.runs["state"]

    def result(self, row: int) -> Result:
        """Return the full result of the run in a row of :attr:`runs`.

        Raises
        ------
        ThemisError
            The run failed, has not been played, or its tables were not kept.
        """
        run = self.plan[row]
        if run.error is not None:
            raise ThemisError(f"run {row} failed: {run.error}")
        return load_result(self.store.place(run.address))

    def comparison(self) -> Comparison:
        """Return the runs that are done as a comparison: what differs beside the seed is a label.

        The label stands where a comparison has the policy: the values on the axes, a policy by
        its name alone. Apps are paired by id, which says little where an axis changes the
        workload.

        Raises
        ------
        ThemisError
            No run is done, or tables were not kept.
        """
        done = {
            (_label(run.values), self._seed(run)): f"runs/{run.address}"
            for run, state in zip(self.plan, self.runs["state"], strict=True)
            if state == "done"
        }
        if not done:
            raise ThemisError(f"{self.directory}: no run is done")
        stored = StoredResults(self.directory, done, keeper=self.keeper)
        compared = stored_comparison(stored, complete=self.complete)
        points = {_label(run.values): _point(run.values) for run in self.plan}
        runs = [replace(run, point=points[run.label]) for run in compared.runs]
        return replace(compared, runs=runs)

    def summary(self) -> dict[str, object]:
        """Return axes, and every row of :attr:`runs`; JSON-able."""
        return {
            "axes": {key: list(values) for key, values in self.axes.items()},
            "complete": self.complete,
            "failed": len(self.failures),
            "runs": self.runs.to_dicts(),
        }

    def write_overview(self) -> None:
        """Write sweep.parquet and manifest.json beside the runs, each whole or not at all."""
        version = {"themis.schema_version": str(SWEEP_SCHEMA_VERSION)}
        with new_file(self.directory / "sweep.parquet") as partial:
            self.runs.write_parquet(partial, compression="zstd", metadata=version)
        with new_file(self.directory / "manifest.json") as partial:
            partial.write_text(json_text(self._manifest()), encoding="utf-8")

    def __repr__(self) -> str:
        axes = ", ".join(f"{key} x {len(values)}" for key, values in self.axes.items())
        return f"Sweep({axes}: {len(self.plan)} runs, {len(self.failures)} failed)"

    def _repr_html_(self) -> str:
        columns = ["run", *self.axes, "state", *HEADLINES]
        table = self.runs.with_columns(run=pl.int_range(pl.len())).select(columns)
        return grid(repr(self), columns, table.rows())

    def _seed(self, run: SweepRun) -> int:
        seed = run.values.get("seed", self.scenario.get("seed"))
        return seed if isinstance(seed, int) else 0

    def _manifest(self) -> dict[str, object]:
        return {
            "kind": "sweep",
            "schema_version": SWEEP_SCHEMA_VERSION,
            "result_schema_version": RESULT_SCHEMA_VERSION,
            "complete": self.complete,
            "axes": [{"key": key, "values": list(values)} for key, values in self.axes.items()],
            "scenario": self.scenario,
            "files": FILES,
            "runs": [
                {"axes": dict(run.values), "run": run.address, "error": run.error}
                for run in self.plan
            ],
        }


def load_sweep(directory: str | PathLike[str]) -> Sweep:
    """Return the sweep in `directory`, finished or not; its results stay on disk.

    Raises
    ------
    ThemisError
        There is none, or its manifest is damaged or of another version.
    """
    root = Path(directory)
    path, manifest = root / "manifest.json", read_manifest(root, "sweep", SWEEP_SCHEMA_VERSION)
    axes, listed, scenario = (manifest.get(key) for key in ("axes", "runs", "scenario"))
    if not (isinstance(axes, list) and isinstance(listed, list) and isinstance(scenario, dict)):
        raise ThemisError(f"{path}: damaged: expected axes, runs and scenario")
    try:
        found = {axis["key"]: axis["values"] for axis in axes}
        plan = [
            SweepRun({key: run["axes"][key] for key in found}, run["run"], run["error"])
            for run in listed
        ]
    except (KeyError, TypeError):
        raise ThemisError(f"{path}: damaged: an axis or a run lacks a key") from None
    return Sweep(found, plan, Store(root, tables=False), scenario)


def _state(run: SweepRun, summary: Mapping[str, object] | None) -> str:
    if run.error is not None:
        return "failed"
    return "pending" if summary is None else "done"


def shown(value: object) -> str:
    """Return a value of an axis as a user would write it."""
    if value is None:
        return "none"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _point(values: Mapping[str, object]) -> dict[str, str]:
    return {key: shown(value) for key, value in values.items() if key != "seed"}


def _label(values: Mapping[str, object]) -> str:
    varied = _point(values)
    texts = (text if key in _POLICY else f"{key}={text}" for key, text in varied.items())
    return ", ".join(texts) or "all"


def _axis_column(key: str, values: Sequence[object]) -> pl.Series:
    """Return a column of whole numbers, numbers, booleans or text; anything else as JSON."""
    kinds = {type(value) for value in values if value is not None}
    if key == "seed":
        return pl.Series(values, dtype=pl.UInt64)
    if kinds and kinds <= {int, float}:
        return pl.Series(values, dtype=pl.Int64 if kinds == {int} else pl.Float64, strict=False)
    if len(kinds) == 1 and kinds <= {bool, str}:
        return pl.Series(values, dtype=pl.Boolean if bool in kinds else pl.String)
    texts = [None if value is None else json.dumps(value, sort_keys=True) for value in values]
    return pl.Series(texts, dtype=pl.String)
