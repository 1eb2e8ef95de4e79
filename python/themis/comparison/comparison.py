"""Several policies on one workload: their results, and the directory that keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import polars as pl

from themis.errors import ThemisError
from themis.files.atomic_directory import json_text, new_directory, read_manifest
from themis.results.compared import Compared
from themis.results.digest import app_rows, digest
from themis.results.result import Result, load_result
from themis.schema.result import RESULT_SCHEMA_VERSION

__all__ = [
    "Comparison",
    "RunKey",
    "StoredResults",
    "load_comparison",
    "run_directory",
    "stored_comparison",
]

RunKey = tuple[str, int]
"""Policy and seed of a run."""

_METADATA = {"themis.schema_version": str(RESULT_SCHEMA_VERSION)}


class StoredResults(Mapping[RunKey, Result]):
    """Results that stay on disk; each is loaded anew whenever it is asked for.

    Parameters
    ----------
    root
        Where they are.
    directories
        The directory of each below `root`.
    keeper
        Holds on to a `root` that shall vanish with this object.
    """

    def __init__(
        self, root: Path, directories: Mapping[RunKey, str], *, keeper: object = None
    ) -> None:
        self.root = root
        self.keeper = keeper
        self.directories: dict[RunKey, str] = dict(directories)

    def __getitem__(self, key: RunKey) -> Result:
        return load_result(self.root / self.directories[key])

    def __iter__(self) -> Iterator[RunKey]:
        return iter(self.directories)

    def __len__(self) -> int:
        return len(self.directories)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Compared):
    """Runs of several policies (and seeds) on the same workload and cluster, with their results.

    Parameters
    ----------
    runs, apps, complete, baseline
        As of :class:`~themis.results.compared.Compared`.
    results
        The full results by (policy, seed).
    """

    results: Mapping[RunKey, Result]

    def write(
        self, directory: str | PathLike[str], *, report: bool = True, force: bool = False
    ) -> Path:
        """Write the comparison to `directory`, whole or not at all; the same bytes every time.

        The files are manifest.json, summary.json, comparison.parquet, apps.parquet, report.html,
        and a result directory a run (:func:`run_directory`).

        Parameters
        ----------
        directory
            Created with its parents. An earlier comparison or result there is replaced.
        report
            Write report.html too.
        force
            Replace a directory that holds other files as well. They are lost.

        Raises
        ------
        ThemisError
            The directory holds files that Themis did not write, or cannot be written.
        """
        target = Path(directory)
        with new_directory(target, force=force) as partial:
            for key, name in self.directories().items():
                self.results[key].write(partial / name)  # one in memory at a time
            self.write_overview(partial, report=report)
        return target

    def write_overview(self, directory: Path, *, report: bool) -> None:
        """Write all files but the results themselves into an existing directory."""
        self.table().write_parquet(
            directory / "comparison.parquet", compression="zstd", metadata=_METADATA
        )
        self.apps.write_parquet(directory / "apps.parquet", compression="zstd", metadata=_METADATA)
        if report:
            from themis.report import write_report  # noqa: PLC0415 - charts load slowly

            write_report(self, directory / "report.html")
        summary = {"schema_version": RESULT_SCHEMA_VERSION, **self.summary()}
        (directory / "summary.json").write_text(json_text(summary), encoding="utf-8")
        (directory / "manifest.json").write_text(json_text(self._manifest()), encoding="utf-8")

    def directories(self) -> dict[RunKey, str]:
        """Sub-directory of each run by (policy, seed)."""
        if isinstance(self.results, StoredResults):
            return dict(self.results.directories)
        several = len(self.seeds) > 1
        return {
            (run.label, run.seed): run_directory(run.label, run.seed, several=several)
            for run in self.runs
        }

    def _manifest(self) -> dict[str, object]:
        directories = self.directories()
        files = ["manifest.json", "summary.json", "comparison.parquet", "apps.parquet"]
        return {
            "kind": "comparison",
            "schema_version": RESULT_SCHEMA_VERSION,
            "complete": self.complete,
            "baseline": self.baseline,
            "files": [*files, *directories.values()],
            "runs": [
                {"policy": policy, "seed": seed, "directory": name}
                for (policy, seed), name in directories.items()
            ],
        }


def run_directory(policy: str, seed: int, *, several: bool) -> str:
    """Return the name of a run's directory: the policy, and its seed where there are several."""
    return f"{policy}-seed{seed}" if several else policy


def load_comparison(directory: str | PathLike[str]) -> Comparison:
    """Return the comparison that :meth:`Comparison.write` left in `directory`.

    Its results stay on disk (:class:`StoredResults`).

    Raises
    ------
    ThemisError
        A file is missing or damaged, or has another schema version; the message names it.
    """
    root = Path(directory)
    manifest = read_manifest(root, "comparison", RESULT_SCHEMA_VERSION)
    results = StoredResults(root, _listed_runs(manifest.get("runs"), root / "manifest.json"))
    complete, baseline = manifest.get("complete") is True, str(manifest.get("baseline") or "")
    return stored_comparison(results, complete=complete, baseline=baseline)


def stored_comparison(results: StoredResults, *, complete: bool, baseline: str = "") -> Comparison:
    """Return the comparison of stored results; one is in memory at a time."""
    runs, tables = [], []
    for key in results:
        result = results[key]
        runs.append(digest(result, key[0]))
        tables.append(app_rows(result, key[0]))
        del result  # the next one needs the memory
    return Comparison(runs, pl.concat(tables), results, complete=complete, baseline=baseline)


def _listed_runs(listed: object, path: Path) -> dict[RunKey, str]:
    try:
        entries = listed if isinstance(listed, list) else []
        runs = {(str(run["policy"]), int(run["seed"])): str(run["directory"]) for run in entries}
    except (KeyError, TypeError, ValueError):
        runs = {}
    if not runs:
        raise ThemisError(
            f"{path}: field 'runs' is {listed!r}: expected policy, seed and directory of each run"
        )
    return runs
