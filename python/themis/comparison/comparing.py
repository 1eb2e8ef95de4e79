"""Play several policies on the same workload and cluster."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from themis.arguments import MOST_SEEDS
from themis.comparison.comparison import (
    Comparison,
    RunKey,
    StoredResults,
    load_comparison,
    run_directory,
)
from themis.errors import PolicyError, ScenarioError
from themis.files.atomic_directory import new_directory
from themis.results.digest import RunDigest, app_rows, digest
from themis.results.result import Result

if TYPE_CHECKING:
    from themis.cluster.cluster import Cluster
    from themis.policies.policy import Policy
    from themis.scenario.scenario import Scenario
    from themis.workload.workload import Workload

__all__ = ["Comparison", "RunProgress", "compare", "load_comparison"]

RunProgress = Callable[[str, int, int, int, float], None]
"""Called now and then with policy, seed, jobs done, jobs in all, and simulated seconds."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class _Plan:
    """What to run: the inputs that all runs share, and the runs."""

    workload: Workload
    cluster: Cluster
    runs: Sequence[RunKey]
    policies: Mapping[str, str | Policy]
    options: Mapping[str, Any]
    progress: RunProgress | None
    scenario: Scenario | None
    baseline: str

    def play(self, policy: str, seed: int) -> Result:
        from themis.simulation.simulate import simulate  # noqa: PLC0415 - loads the compiled engine

        def report(done_jobs: int, total_jobs: int, sim_time_s: float) -> None:
            if self.progress is not None:
                self.progress(policy, seed, done_jobs, total_jobs, sim_time_s)

        result = simulate(
            self.workload,
            self.cluster,
            policy=self.policies[policy],
            seed=seed,
            progress=None if self.progress is None else report,
            **self.options,
        )
        return result if self.scenario is None else result.with_scenario(self.scenario)


@dataclass
class _Finished:
    """What is kept of the runs that have finished."""

    baseline: str
    digests: list[RunDigest] = field(default_factory=list)
    apps: list[pl.DataFrame] = field(default_factory=list)

    def add(self, policy: str, result: Result) -> None:
        self.digests.append(digest(result, policy))
        self.apps.append(app_rows(result, policy))

    def comparison(self, results: Mapping[RunKey, Result], *, complete: bool = True) -> Comparison:
        apps = pl.concat(self.apps)
        return Comparison(self.digests, apps, results, complete=complete, baseline=self.baseline)


def compare(  # noqa: PLR0913 - four inputs and three choices, all by keyword
    workload: Workload,
    cluster: Cluster,
    *,
    policies: Iterable[str | Policy],
    seeds: Iterable[int] = (0,),
    progress: RunProgress | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    scenario: Scenario | None = None,
    baseline: str | None = None,
    **settings: object,
) -> Comparison:
    """Simulate every policy with every seed and set the runs side by side.

    Parameters
    ----------
    workload, cluster
        What to play, and on what; the same for all runs.
    policies
        Names of policies, or policies of one's own (:class:`themis.Policy`), each once.
    seeds
        Seeds, each once.
    progress
        Called now and then (:data:`RunProgress`).
    out
        Directory to write to, in the layout of :meth:`Comparison.write`. Each result is written
        when its run ends and dropped from memory; `.results` then reads from there. If a later
        run is interrupted or fails and `out` did not exist before, the finished runs stay there,
        marked incomplete.
    force
        Let `out` replace a directory that holds other files. They are lost.
    scenario
        What built workload and cluster, for the manifests: with it, stored results can be
        explained.
    baseline
        The policy that the others are compared with, one of `policies`; None: fifo if it is among
        them, else the first but themis.
    **settings
        Settings, `profiles`, `tenants` and `agents`, as for `themis.simulate`. Agents must then be
        given as a function, so that every run has new ones.

    Raises
    ------
    PolicyError
        No policy, an unknown one, or one twice; or `baseline` is none of them.
    ScenarioError
        No seed, one twice, or an invalid setting.
    ThemisError
        `out` holds files that Themis did not write, or cannot be written.
    """
    chosen, numbers = _checked_policies(policies), _checked_seeds(seeds)
    runs = [(policy, seed) for policy in chosen for seed in numbers]
    if baseline is not None and baseline not in chosen:
        raise PolicyError(f"baseline {baseline!r} is not compared: expected {', '.join(chosen)}")
    plan = _Plan(workload, cluster, runs, chosen, settings, progress, scenario, baseline or "")
    if out is None:
        return _in_memory(plan)
    return _streamed(plan, Path(out), force=force)


def _in_memory(plan: _Plan) -> Comparison:
    done, results = _Finished(plan.baseline), dict[RunKey, Result]()
    for policy, seed in plan.runs:
        results[policy, seed] = plan.play(policy, seed)
        done.add(policy, results[policy, seed])
    return done.comparison(results)


def _streamed(plan: _Plan, target: Path, *, force: bool) -> Comparison:
    several = len({seed for _, seed in plan.runs}) > 1
    names = {key: run_directory(*key, several=several) for key in plan.runs}
    keep_unfinished = not target.exists()
    done, failure = _Finished(plan.baseline), None
    with new_directory(target, force=force) as partial:
        try:
            for key, name in names.items():
                result = plan.play(*key)
                result.write(partial / name)
                done.add(key[0], result)
                del result  # the next run needs the memory
        except BaseException as error:
            if not (done.digests and keep_unfinished):
                raise
            failure = error
        finished = dict(list(names.items())[: len(done.digests)])
        for name in set(names.values()) - set(finished.values()):
            shutil.rmtree(partial / name, ignore_errors=True)
        results = StoredResults(target, finished)
        comparison = done.comparison(results, complete=failure is None)
        try:
            comparison.write_overview(partial, report=failure is None)
        except BaseException as error:
            if failure is not None or not keep_unfinished:
                raise
            failure = error
            comparison.write_overview(partial, report=False)
    if failure is not None:
        raise failure
    return comparison


def _checked_policies(policies: Iterable[str | Policy]) -> dict[str, str | Policy]:
    """Return the policies by what they are called in the comparison."""
    if isinstance(policies, str):
        raise PolicyError(f"policies is the text {policies!r}: expected a list of names")
    from themis.policies.catalogue import choose_policy  # noqa: PLC0415 - on use

    if not isinstance(policies, Iterable):
        raise PolicyError(f"policies is {policies!r}: expected a list of names")
    chosen = list(policies)
    if not chosen:
        raise PolicyError("no policy to compare: expected at least one name")
    for name in chosen:
        if isinstance(name, str) and not _NAME.fullmatch(name):
            raise PolicyError(f"policy {name!r}: expected a name of letters, digits, _, . and -")
    names = [choose_policy(policy)[0] for policy in chosen]
    _refuse_twice(names, "policy", PolicyError)
    called = [
        given if isinstance(given, str) else name for given, name in zip(chosen, names, strict=True)
    ]
    return dict(zip(called, chosen, strict=True))


def _checked_seeds(seeds: Iterable[int]) -> list[int]:
    if not isinstance(seeds, Iterable):
        raise ScenarioError(f"seeds is {seeds!r}: expected a list of whole numbers")
    numbers = list(islice(seeds, MOST_SEEDS + 1))
    if not numbers:
        raise ScenarioError("no seed to run: expected at least one")
    if len(numbers) > MOST_SEEDS:
        raise ScenarioError(f"more than {MOST_SEEDS} seeds: expected at most so many")
    _refuse_twice(numbers, "seed", ScenarioError)
    return numbers


def _refuse_twice(
    values: Sequence[object], what: str, error: type[PolicyError | ScenarioError]
) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise error(f"{what} {value!r} is given twice")
