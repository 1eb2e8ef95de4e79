"""Hand-made results: small ones with known figures, and large random ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
import pytest

from themis.results.result import Result
from themis.schema.result import TABLES

MakeResult = Callable[..., Result]
MakeTable = Callable[[str, Sequence[Mapping[str, object]]], pl.DataFrame]


def table(name: str, rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    return pl.DataFrame(
        [{column: row.get(column) for column in TABLES[name]} for row in rows],
        schema=dict(TABLES[name]),
    )


def manifest(policy: str = "themis", seed: int = 0, **more: object) -> dict[str, object]:
    return {
        "themis_version": "0.1.0",
        "policy": policy,
        "seed": seed,
        "settings": {"t_id": "paper", "lease_s": 600.0, "horizon_s": None},
        "cluster": {"spec": "2x4", "gpus": 8, "machines": 2, "racks": 1},
        "workload": {
            "paths": ["data/tiny.csv"],
            "format": "native",
            "sha256": "0" * 64,
            "apps": 3,
            "jobs": 3,
            "notes": [],
        },
        "app_states": {"done": 2, "unfinished": 1},
        "job_states": {"done": 2, "unfinished": 1},
        "notes": [],
        **more,
    }


def tiny_frames() -> dict[str, pl.DataFrame]:
    """Two finished apps (rho 0.5 and 2.0) and one unfinished (bound 4.0) on eight GPUs."""
    apps: list[dict[str, object]] = [
        {
            "app_id": "a", "user": "ann", "tenant": "x", "arrival_s": 10.0, "first_gpu_s": 10.0,
            "end_s": 110.0, "state": "done", "jobs": 1, "gpu_s": 400.0, "useful_gpu_s": 300.0,
            "slowed_gpu_s": 100.0, "switching_gpu_s": 0.0, "lost_gpu_s": 0.0,
            "idle_gpu_s": 0.0, "n_avg": 2.0, "gpus_avg": 8.0,
            "t_id_s": 200.0, "t_sh_s": 100.0, "rho": 0.5, "rho_is_bound": False,
            "rho_floor": 0.25, "queue_s": 0.0, "preemptions": 0, "migrations": 0,
            "placement_score": 0.75, "lied": False,
        },
        {
            "app_id": "b", "user": "bob", "tenant": "x", "arrival_s": 20.0, "first_gpu_s": 60.0,
            "end_s": 220.0, "state": "done", "jobs": 1, "gpu_s": 200.0, "useful_gpu_s": 120.0,
            "slowed_gpu_s": 0.0, "switching_gpu_s": 60.0, "idle_gpu_s": 20.0, "n_avg": 2.0,
            "t_id_s": 100.0, "t_sh_s": 200.0, "rho": 2.0, "rho_is_bound": False,
            "rho_floor": 0.5, "queue_s": 40.0, "preemptions": 2, "migrations": 1,
            "placement_score": 1.0, "lied": False,
        },
        {
            "app_id": "c", "user": "bob", "tenant": None, "arrival_s": 30.0,
            "state": "unfinished", "reason": "horizon", "jobs": 1, "gpu_s": 0.0,
            "useful_gpu_s": 0.0, "slowed_gpu_s": 0.0, "switching_gpu_s": 0.0, "lost_gpu_s": 0.0,
            "idle_gpu_s": 0.0,
            "n_avg": 2.0, "t_id_s": 50.0, "t_sh_s": 200.0, "rho": 4.0, "rho_is_bound": True,
            "lied": False,
            "rho_floor": 1.0, "preemptions": 0, "migrations": 0,
        },
    ]  # fmt: skip
    jobs = [
        {
            "job_id": f"{app['app_id']}0", "app_id": app["app_id"], "submit_s": app["arrival_s"],
            "start_s": app.get("first_gpu_s"), "end_s": app.get("end_s"), "state": app["state"],
            "gang_size": 4, "gpus_max": 4, "gpu_milli": 1000, "gpu_s": app["gpu_s"],
            "work_gpu_s": app["useful_gpu_s"], "preemptions": app["preemptions"],
            "migrations": app["migrations"],
        }
        for app in apps
    ]  # fmt: skip
    leases = [
        {
            "lease_id": "0", "app_id": "a", "machine": "m0", "slot": 0, "gpu_first": 0, "gpus": 4,
            "start_s": 10.0, "end_s": 110.0, "cause": "auction", "renewals": 0,
            "ended_by": "app_end", "gpu_milli": 1000,
        },
        {
            "lease_id": "1", "app_id": "b", "machine": "m1", "slot": 0, "gpu_first": 0, "gpus": 2,
            "start_s": 60.0, "end_s": 100.0, "cause": "auction", "renewals": 0,
            "ended_by": "expired", "gpu_milli": 1000,
        },
        {
            "lease_id": "2", "app_id": "b", "machine": "m1", "slot": 0, "gpu_first": 2, "gpus": 2,
            "start_s": 80.0, "end_s": 90.0, "cause": "leftover", "renewals": 0,
            "ended_by": "expired", "gpu_milli": 1000,
        },
        {
            "lease_id": "3", "app_id": "b", "machine": "m0", "slot": 0, "gpu_first": 0, "gpus": 2,
            "start_s": 120.0, "end_s": 220.0, "cause": "auction", "renewals": 1,
            "ended_by": "app_end", "gpu_milli": 1000,
        },
    ]  # fmt: skip
    auctions = [
        {
            "auction_id": "0", "at_s": 10.0, "offered_gpus": 8, "active_apps": 1, "bidders": 1,
            "winners": 1, "leftover_gpus": 4, "min_c": 1.0, "mean_c": 1.0, "objective": 0.0,
            "upper_bound": 0.0, "gap": 0.0,
        },
        {
            "auction_id": "1", "at_s": 60.0, "offered_gpus": 4, "active_apps": 3, "bidders": 2,
            "winners": 1, "leftover_gpus": 0, "min_c": 0.5, "mean_c": 0.75, "objective": 1.0,
            "upper_bound": 1.1, "gap": 0.02,
        },
    ]  # fmt: skip
    usage = [
        (10.0, 8, 4, 4, 1, 0), (20.0, 8, 4, 4, 2, 1), (30.0, 8, 4, 4, 3, 2),
        (60.0, 8, 8, 6, 3, 1), (110.0, 8, 4, 4, 2, 1), (220.0, 8, 0, 0, 1, 1),
        (310.0, 8, 0, 0, 1, 1),
    ]  # fmt: skip
    return {
        "apps": table("apps", apps),
        "jobs": table("jobs", jobs),
        "leases": table("leases", leases),
        "auctions": table("auctions", auctions),
        "usage": table("usage", [dict(zip(TABLES["usage"], row, strict=True)) for row in usage]),
        "capacity": table("capacity", []),
    }


def random_result(
    apps: int = 1000, policy: str = "themis", seed: int = 0, *, auctions: bool = True
) -> Result:
    """A result of made-up but consistent figures; `policy` and `seed` shift them."""
    draw = np.random.default_rng([len(policy), seed, apps])
    arrival = np.sort(draw.uniform(0, 86_400 * 10, apps).round(6))
    length = draw.lognormal(7.5, 1.6, apps).round(6)
    wait = draw.exponential(900 * len(policy), apps).round(6)
    end = arrival + wait + length
    t_id = length * draw.uniform(0.8, 2.5, apps)
    gpus = draw.choice([1, 1, 2, 4, 8], apps)
    score = draw.choice([1.0, 1.0, 0.9, 0.7], apps)
    held = gpus * length
    frame = pl.DataFrame(
        {
            "app_id": [f"app-{k:06d}" for k in range(apps)],
            "user": [f"user-{k % 37:02d}" for k in range(apps)],
            "tenant": [f"vc-{k % 5}" for k in range(apps)],
            "arrival_s": arrival,
            "first_gpu_s": arrival + wait,
            "end_s": end,
            "state": ["done"] * apps,
            "reason": pl.Series([None] * apps, dtype=pl.String),
            "jobs": np.ones(apps, dtype=np.int64),
            "gpu_s": held,
            "useful_gpu_s": held * score * 0.95,
            "slowed_gpu_s": held * (1 - score) * 0.95,
            "switching_gpu_s": held * 0.03,
            "lost_gpu_s": held * 0.0,
            "idle_gpu_s": held * 0.02,
            "n_avg": draw.uniform(5, 50, apps),
            "gpus_avg": np.full(apps, 8.0),
            "t_id_s": t_id,
            "t_sh_s": end - arrival,
            "rho": (end - arrival) / t_id,
            "rho_is_bound": [False] * apps,
            "rho_floor": length / t_id,
            "queue_s": wait,
            "preemptions": draw.poisson(0.5, apps),
            "migrations": draw.poisson(0.3, apps),
            "failures": np.zeros(apps, dtype=np.int64),
            "placement_score": score,
            "lied": [False] * apps,
            "lie_gain_s": pl.Series([None] * apps, dtype=pl.Float64),
        }
    )
    jobs = frame.select(
        job_id=pl.col("app_id") + "-0",
        app_id="app_id",
        submit_s="arrival_s",
        start_s="first_gpu_s",
        end_s="end_s",
        state="state",
        reason="reason",
        gang_size=pl.Series(gpus),
        gpus_max=pl.Series(gpus),
        gpu_milli=pl.lit(1000, dtype=pl.Int64),
        gpu_s="gpu_s",
        work_gpu_s="useful_gpu_s",
        preemptions="preemptions",
        migrations="migrations",
        promised_s=pl.lit(None, dtype=pl.Float64),
        failures="failures",
        lost_gpu_s="lost_gpu_s",
    )
    usage = _usage(frame.get_column("first_gpu_s").to_numpy(), end, arrival, gpus)
    rounds = apps if auctions else 0
    offers = draw.integers(1, 64, rounds)
    auction = pl.DataFrame(
        {
            "auction_id": [str(k) for k in range(rounds)],
            "at_s": arrival[:rounds],
            "offered_gpus": offers,
            "active_apps": draw.integers(1, 50, rounds),
            "bidders": draw.integers(1, 20, rounds),
            "winners": draw.integers(1, 5, rounds),
            "leftover_gpus": offers // 4,
            "min_c": draw.uniform(0.3, 1, rounds),
            "mean_c": draw.uniform(0.6, 1, rounds),
            "objective": draw.normal(0, 1, rounds),
            "upper_bound": draw.normal(3, 1, rounds),
            "gap": draw.exponential(0.002, rounds),
        },
        schema_overrides={"auction_id": pl.String},
    )
    frames = {
        "apps": frame,
        "jobs": jobs,
        "leases": table("leases", []),
        "auctions": auction,
        "usage": usage,
        "capacity": table("capacity", []),
    }
    return Result(frames=frames, manifest=manifest(policy, seed))


def _usage(
    start: np.ndarray, end: np.ndarray, arrival: np.ndarray, gpus: np.ndarray
) -> pl.DataFrame:
    zero = np.zeros(len(gpus), dtype=np.int64)
    one = zero + 1
    at = np.concatenate([arrival, start, end])
    order = np.argsort(at, kind="stable")
    used = np.cumsum(np.concatenate([zero, gpus, -gpus])[order])
    return pl.DataFrame(
        {
            "at_s": at[order],
            "gpus_total": np.full(len(at), int(used.max())),
            "gpus_used": used,
            "gpus_productive": used - used // 20,
            "active_apps": np.cumsum(np.concatenate([one, zero, -one])[order]),
            "waiting_apps": np.cumsum(np.concatenate([one, -one, zero])[order]),
        }
    )


@pytest.fixture
def tiny_result() -> Result:
    return Result(frames=tiny_frames(), manifest=manifest())


@pytest.fixture
def make_result() -> MakeResult:
    return random_result


@pytest.fixture
def make_table() -> MakeTable:
    return table
