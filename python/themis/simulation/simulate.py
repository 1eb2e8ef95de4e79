"""Play a workload on a cluster under a policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import NamedTuple

import polars as pl

from themis import _core
from themis.agents.agent import Agent, Agents
from themis.agents.driver import anew, choose_agents, drivers
from themis.auditing import audit as audit_result
from themis.boundary.claims import Claims, claims, notes_of_lies, with_lies
from themis.boundary.columns import workload_columns
from themis.boundary.event_log import gpu_time_by_type, result_frames
from themis.cluster.cluster import Cluster
from themis.errors import AuditError, PolicyError, ScenarioError
from themis.metrics.completion import APP_STATES, JOB_STATES
from themis.policies.catalogue import choose_policy
from themis.policies.driver import PolicyDriver
from themis.policies.policy import Policy
from themis.profiles import ProfileInput
from themis.results.result import Inputs, Result
from themis.schema.result import RESULT_SCHEMA_VERSION
from themis.settings.settings import Settings
from themis.simulation.notes import notes_of_run
from themis.workload.tenants import TenantInput, notes_of_tenants, read_tenants
from themis.workload.workload import Workload

__all__ = ["Progress", "core_inputs", "core_settings", "simulate"]

Progress = Callable[[int, int, float], None]
"""Called now and then with (jobs ended, jobs, simulated seconds)."""

_US = 1_000_000


def simulate(  # noqa: PLR0913 - the contract's signature
    workload: Workload,
    cluster: Cluster,
    *,
    policy: str | Policy = "themis",
    seed: int = 0,
    progress: Progress | None = None,
    profiles: Mapping[str, ProfileInput] | None = None,
    agents: Agents | None = None,
    tenants: Mapping[str, TenantInput] | None = None,
    audit: bool = False,
    **settings: object,
) -> Result:
    """Return what `policy` does with `workload` on `cluster`.

    The same arguments give the same result to the last bit.

    Parameters
    ----------
    workload
        Apps and jobs.
    cluster
        Machines; their GPU types are those of `gpu_types` and of profiles.
    policy
        A name or alias of :data:`themis.POLICIES`, the name of another package's policy,
        or a :class:`themis.Policy`, of which a copy is played.
    seed
        Seeds every random choice (lotteries, leftovers); from 0 to 2^64 - 1.
    progress
        Called at the start, now and then, and at the end; what it raises ends the run.
    profiles
        Placement scores 1/S at slot, machine, rack and cluster by profile name, beside the
        built-in ones of :data:`themis.PROFILES`; or ``{"scores": scores, "speeds": speeds
        by GPU type, "scaling": efficiencies by GPUs}`` (see
        :func:`themis.profiles.read_profiles`).
    agents
        App schedulers of one's own (docs/agents.md): a new :class:`themis.Agent` by app id,
        or a function that makes one from an app's row of `workload.apps` (None: the built-in one).
    tenants
        What tenants of the workload are given, by name, such as ``{"vc1": {"weight": 2}}``
        (:class:`themis.workload.tenants.Tenant`; docs/simulation.md). Others have the
        defaults; None: apps share as if they were all of one tenant.
    audit
        Check the result by :func:`themis.audit` before it is returned.
    **settings
        Fields of :class:`themis.Settings`, such as ``lease_s=1200``;
        ``preset="nsdi20"`` for the paper's, with others laid over them.

    Raises
    ------
    ScenarioError
        `workload` or `cluster` is of another type, or a setting is unknown or out of range; a
        profile or tenant is invalid; `agents` names no app, or has something else than a new agent.
    PolicyError
        The policy is unknown or unfit.
    PolicyAnswerError
        A policy of one's own raised, or gave an answer that can't be carried out.
    AgentError
        An agent gave an answer that can't be carried out.
    AuditError
        `audit` is true, and the result breaks an invariant.
    """
    if not isinstance(workload, Workload):
        raise ScenarioError(f"workload is {workload!r}: expected a Workload, as of read_trace")
    if not isinstance(cluster, Cluster):
        raise ScenarioError(f"cluster is {cluster!r}: expected a Cluster, as of Cluster.parse")
    name, own = choose_policy(policy)
    checked = Settings.parse(settings)
    rules = _Rules(name, checked, core_settings(checked, _checked_seed(seed)))
    ids = workload.apps.get_column("app_id")
    claimed = claims(ids, checked, seed)
    owners = read_tenants(tenants)
    chosen = choose_agents(agents, workload)
    others = {} if checked.liars is None else anew(agents, chosen, workload)
    inputs = Inputs(
        workload, cluster, dict(profiles or {}), own, agents=bool(chosen), tenants=owners
    )
    played = _play(inputs, rules, claimed, chosen, progress)
    frames, honest = played.frames, None
    if checked.liars is not None:
        truth = claims(ids, checked, seed, honest=True)
        honest = _play(inputs, rules, truth, others, None).frames["apps"]
    frames["apps"] = with_lies(frames["apps"], claimed, honest)
    manifest = {
        "schema_version": RESULT_SCHEMA_VERSION,
        "themis_version": _core.__version__,
        "policy": name,
        "seed": seed,
        "end_s": played.end_s,
        "agents": len(chosen),
        "settings": checked.model_dump(),
        "cluster": cluster.describe(),
        "tenants": {name: tenant.model_dump() for name, tenant in owners.items()},
        "workload": {
            "paths": list(workload.source.paths),
            "format": workload.source.format,
            "sha256": workload.source.sha256,
            "origin": workload.source.origin,
            "apps": workload.apps.height,
            "jobs": workload.jobs.height,
            "weighted_apps": int((workload.apps.get_column("weight") != 1.0).sum()),
            "notes": list(workload.notes),
        },
        "app_states": _states(frames["apps"]["state"], APP_STATES),
        "job_states": _states(frames["jobs"]["state"], JOB_STATES),
        "gpu_types": gpu_time_by_type(frames["leases"], cluster, played.end_s),
        "notes": [
            *played.notes,
            *notes_of_tenants(owners, workload),
            *_notes_of_agents(chosen),
            *_notes_of_policy(name, own, workload, checked),
            *_notes_of_order(name, workload, cluster),
            *notes_of_lies(frames["apps"], checked),
            *notes_of_run(frames),
        ],
    }
    result = Result(frames=frames, manifest=manifest, inputs=inputs)
    if audit:
        report = audit_result(result)
        if not report.passed:
            raise AuditError(report.to_text())
    return result


class _Rules(NamedTuple):
    """The name of a policy, the settings, and these as the core takes them."""

    policy: str
    settings: Settings
    core: Mapping[str, object]


class _Played(NamedTuple):
    """The tables of one run, when it ended, and what a reader should know of its inputs."""

    frames: dict[str, pl.DataFrame]
    end_s: float
    notes: tuple[str, ...]


def _play(
    inputs: Inputs,
    rules: _Rules,
    claimed: Claims,
    agents: Mapping[str, Agent],
    progress: Progress | None,
) -> _Played:
    """Columns in, frames out; what has been turned into something else is not kept beside it."""
    workload, cluster = inputs.workload, inputs.cluster
    columns = workload_columns(workload, cluster, inputs.profiles, claimed, inputs.tenants)
    core, asked = columns.core(), drivers(agents, workload, columns)
    speeds, notes = columns.speeds, columns.notes
    del columns  # 150 bytes a job, as what follows
    if progress is not None:
        progress(0, core.jobs, 0.0)
    player = _player(rules.policy, inputs.policy, workload, cluster, rules.settings)
    log = _core.simulate(cluster.core, core, player, rules.core, _in_seconds(progress), asked)
    del core
    end_s = log["end_us"] / _US
    if progress is not None:
        progress(workload.jobs.height, workload.jobs.height, end_s)
    has_horizon = rules.settings.horizon_s is not None
    frames = result_frames(log, workload, cluster, speeds, has_horizon=has_horizon)
    return _Played(frames, end_s, notes)


def core_inputs(inputs: Inputs, settings: Settings, seed: int) -> _core.Workload:
    """Return a workload as the core takes it, with what its agents claim."""
    claimed = claims(inputs.workload.apps.get_column("app_id"), settings, seed)
    columns = workload_columns(
        inputs.workload, inputs.cluster, inputs.profiles, claimed, inputs.tenants
    )
    return columns.core()


def _notes_of_agents(agents: Mapping[str, Agent]) -> list[str]:
    """Say whose decisions these settings do not tell."""
    kinds = _counts(pl.Series([type(agent).__name__ for agent in agents.values()], dtype=pl.String))
    who = ", ".join(f"{count} by {kind}" for kind, count in kinds.items())
    return [f"{len(agents)} apps are scheduled by agents: {who}"] if agents else []


def _player(
    name: str, own: Policy | None, workload: Workload, cluster: Cluster, settings: Settings
) -> str | PolicyDriver:
    """Return what the engine asks: a built-in policy by name, or a copy of one's own."""
    if own is None:
        return name
    try:
        copied = copy.deepcopy(own)
    except Exception as error:
        raise PolicyError(
            f"policy {name}: it cannot be copied for a run: {type(error).__name__}: {error}"
        ) from error
    return PolicyDriver(copied, name, workload, cluster, settings.lease_s)


def _notes_of_policy(
    name: str, own: Policy | None, workload: Workload, settings: Settings
) -> tuple[str, ...]:
    """Say what a policy assumed that the workload does not tell, and whose it is."""
    if own is not None:
        kind = type(own)
        return (f"policy {name} is {kind.__module__}:{kind.__qualname__}, which is not built in",)
    if name == "fifo_backfill":
        times = f"{settings.request_factor:g} times what the job needs on gang_size GPUs"
        return (f"requested times are unknown: {times} are assumed (request_factor)",)
    unknown = workload.jobs.get_column("loss_a").null_count() if name == "slaq" else 0
    if unknown:
        jobs = f"{unknown} of {workload.jobs.height} jobs"
        return (f"{jobs} have no loss curve: slaq serves them last, in order of arrival",)
    return ()


def _notes_of_order(name: str, workload: Workload, cluster: Cluster) -> tuple[str, ...]:
    """Say where a strict order lets one GPU type's shortage hold up jobs of other types."""
    bound = workload.apps.height - workload.apps.get_column("gpu_types").null_count()
    if name != "fifo" or not bound or len(cluster.gpu_types) == 1:
        return ()
    bound_apps = f"{bound} of {workload.apps.height} apps are bound to types"
    rule = "a job that waits for its GPU types holds up all behind it, also those that want others"
    return (f"fifo is a strict order: {rule} ({bound_apps})",)


def _in_seconds(progress: Progress | None) -> Callable[[int, int, int], None] | None:
    if progress is None:
        return None

    def tell(done: int, jobs: int, at_us: int) -> None:
        progress(done, jobs, at_us / _US)

    return tell


def core_settings(settings: Settings, seed: int) -> dict[str, object]:
    """Return the settings as the core takes them: times in whole microseconds."""
    values = settings.model_dump(exclude={"preset", "bid_error", "liars"})
    times = {name for name in values if name.endswith("_s")}
    core = {name: value for name, value in values.items() if name not in times}
    for name in times:
        seconds = values[name]
        core[name.removesuffix("_s") + "_us"] = None if seconds is None else round(seconds * _US)
    return {**core, "seed": seed}


def _checked_seed(seed: object) -> int:
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise ScenarioError(f"seed is {seed!r}: expected a whole number from 0 to 2^64 - 1")
    return seed


def _states(of_rows: pl.Series, states: tuple[str, ...]) -> dict[str, int]:
    """Count the states that there are, by name."""
    counts = {state: int((of_rows == state).sum()) for state in sorted(states)}
    return {state: count for state, count in counts.items() if count}


def _counts(values: pl.Series) -> dict[str, int]:
    return dict(values.alias("value").value_counts().sort("value").iter_rows())
