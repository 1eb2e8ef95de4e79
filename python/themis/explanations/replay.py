"""A run once more: to see its auctions from within, or with something changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from themis.auction.fates import Entrant
from themis.auction.outcome import AuctionOutcome
from themis.cluster.cluster import Cluster
from themis.errors import ThemisError
from themis.policies.catalogue import resolve_policy
from themis.results.result import Inputs, Result
from themis.settings.settings import Settings
from themis.workload.tenants import Tenant
from themis.workload.workload import Workload

__all__ = ["AUCTION_POLICY", "Replay", "Watched", "replay_of"]

AUCTION_POLICY = "themis"
"""The policy that holds auctions."""

_US = 1_000_000


class Watched(NamedTuple):
    """What a run shows from within.

    Parameters
    ----------
    bids
        One row an auction that the app took part in: at_s, visible (it saw the offer), rho_empty,
        best_rho and best_gpus (its best bid), won_gpus, c, kept_gpus, lease_fraction,
        leftover_gpus, reason.
    auction
        The auction at the instant that was asked for.
    """

    bids: pl.DataFrame
    auction: AuctionOutcome | None


@dataclass(frozen=True, eq=False)
class Replay:
    """What a run was made of, to be played again."""

    inputs: Inputs
    policy: str
    seed: int
    settings: Settings

    def play(
        self,
        *,
        workload: Workload | None = None,
        cluster: Cluster | None = None,
        policy: str | None = None,
        tenants: Mapping[str, Tenant] | None = None,
        until_s: float | None = None,
    ) -> Result:
        """Play the run with something changed, up to an instant.

        Raises
        ------
        ThemisError
            What was changed can't be played.
        """
        from themis.simulation.simulate import simulate  # noqa: PLC0415 - loads the compiled engine

        settings = self.settings.model_dump()
        if until_s is not None:
            settings["horizon_s"] = until_s
        return simulate(
            workload or self.inputs.workload,
            cluster or self.inputs.cluster,
            policy=policy or self.inputs.policy or self.policy,
            seed=self.seed,
            profiles=self.inputs.profiles,
            tenants=self.inputs.tenants if tenants is None else tenants,
            **settings,
        )

    def watch(self, app_id: str, at_s: float | None) -> Watched:
        """Play the run once more and note how an app fares in auctions, and one of them whole."""
        from themis import _core  # noqa: PLC0415 - loads the compiled engine
        from themis.simulation.simulate import core_inputs, core_settings  # noqa: PLC0415 - the same

        workload, cluster = self.inputs.workload, self.inputs.cluster
        ids = workload.apps.get_column("app_id").to_list()
        seen = _core.watch_auctions(
            cluster.core,
            core_inputs(self.inputs, self.settings, self.seed),
            core_settings(self.settings, self.seed),
            ids.index(app_id),
            None if at_s is None else round(at_s * _US),
        )
        auction = seen["auction"]
        return Watched(
            _bids(seen["bids"]), None if auction is None else self._outcome(auction, ids)
        )

    def _outcome(self, auction: Mapping[str, Any], ids: list[str]) -> AuctionOutcome:
        apps = pl.DataFrame(
            {"app_id": [ids[app] for app in auction["apps"]], "held": auction["held"]}
        )
        sizes = self.inputs.workload.jobs.group_by("app_id").agg(pl.col("gang_size").min())
        entrants = [
            Entrant(app_id, held=held, gang_size=gang)
            for app_id, held, gang in apps.join(
                sizes, on="app_id", how="left", maintain_order="left"
            ).iter_rows()
        ]
        return AuctionOutcome.from_core(
            auction,
            entrants,
            _slots(self.inputs.cluster),
            self.settings.payment,
            self.settings.solver,
        )


def replay_of(
    result: Result, *, workload: Workload | None = None, cluster: Cluster | None = None
) -> Replay:
    """Return what it takes to play a result again.

    Parameters
    ----------
    result
        From memory, or from disk with a scenario in its manifest.
    workload, cluster
        What was played, where the result does not know it.

    Raises
    ------
    ThemisError
        The inputs are unknown, gone, or no longer those of the result; or agents in Python had a
        part in it; or its policy is not known here.
    """
    inputs = result.inputs
    if workload is not None and cluster is not None:
        inputs = Inputs(workload, cluster, agents=_has_agents(result))
    elif inputs is None:
        inputs = _rebuilt(result)
    if inputs.agents:
        raise ThemisError("agents in Python scheduled some of its apps")
    _check_same(result, inputs)
    if inputs.policy is None:
        resolve_policy(result.policy)
    stored = result.manifest.get("settings")
    settings = Settings.parse(stored if isinstance(stored, dict) else {})
    return Replay(inputs, result.policy, result.seed, settings)


def _has_agents(result: Result) -> bool:
    notes = result.manifest.get("notes")
    return isinstance(notes, list) and any("scheduled by agents" in str(note) for note in notes)


def _rebuilt(result: Result) -> Inputs:
    from themis.scenario.scenario import Scenario  # noqa: PLC0415 - pydantic loads slowly

    document = result.manifest.get("scenario")
    if not isinstance(document, dict):
        raise ThemisError("its manifest has no scenario, so that workload and cluster are unknown")
    scenario = Scenario.parse(document, directory=Path("/"))
    inputs = Inputs(
        *scenario.build_inputs(), profiles=scenario.own_profiles(), tenants=scenario.tenants
    )
    return replace(inputs, agents=_has_agents(result))


def _check_same(result: Result, inputs: Inputs) -> None:
    """Refuse inputs that are no longer those of the result."""
    recorded = result.manifest.get("workload")
    facts = recorded if isinstance(recorded, dict) else {}
    source = inputs.workload.source
    where = ", ".join(source.paths) or "the workload"
    if "sha256" in facts and facts["sha256"] != source.sha256:
        raise ThemisError(f"{where}: has changed since: its SHA-256 is another one")
    ids = pl.Series(result.apps.get_column("app_id")).sort()
    jobs = result.jobs.get_column("job_id").sort()
    now = inputs.workload
    if not (
        now.apps.get_column("app_id").sort().equals(ids)
        and now.jobs.get_column("job_id").sort().equals(jobs)
    ):
        raise ThemisError(f"{where}: has other apps or jobs than the result")
    if "cluster" in result.manifest and result.manifest["cluster"] != inputs.cluster.describe():
        raise ThemisError(f"the cluster is {inputs.cluster}: the result has another one")


def _slots(cluster: Cluster) -> list[tuple[str, str, int]]:
    """Return rack, machine and slot in the core's order."""
    machines = cluster.machines.select("rack", "machine", "gpus", "slot_gpus").iter_rows()
    return [
        (rack, machine, slot)
        for rack, machine, gpus, slot_gpus in machines
        for slot in range(-(-gpus // slot_gpus))
    ]


def _bids(columns: Mapping[str, Any]) -> pl.DataFrame:
    frame = pl.DataFrame(dict(columns), schema_overrides={"reason": pl.String})
    return frame.select(
        pl.Series("at_s", columns["at_us"] / _US),  # polars rounds a division otherwise than numpy
        "visible",
        *(pl.col(name).fill_nan(None) for name in ("rho_empty", "best_rho")),
        *(
            pl.col(name).cast(pl.Int64)
            for name in ("best_gpus", "won_gpus", "kept_gpus", "leftover_gpus")
        ),
        "c",
        "lease_fraction",
        "reason",
    )
