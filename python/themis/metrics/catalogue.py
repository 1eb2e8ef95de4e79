"""What each metric is called on a page, its unit, and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CATALOGUE", "HEADLINES", "Better", "Metric", "Unit"]


class Unit(StrEnum):
    """How a metric is counted."""

    COUNT = "count"
    RATIO = "ratio"
    SHARE = "share"
    SECONDS = "s"
    GPU_SECONDS = "GPU-s"
    FLAG = "flag"


class Better(StrEnum):
    """Which direction of a metric is better for the users of the cluster."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@dataclass(frozen=True)
class Metric:
    """One metric of a run.

    `finished_only` says that apps unfinished at the horizon are not in it, so that runs with
    unfinished apps cannot be ranked by it.
    """

    name: str
    title: str
    unit: Unit
    better: Better = Better.NEITHER
    finished_only: bool = False


def _lower(name: str, title: str, unit: Unit, *, finished_only: bool = True) -> Metric:
    return Metric(name, title, unit, Better.LOWER, finished_only=finished_only)


def _higher(name: str, title: str, unit: Unit, *, finished_only: bool = False) -> Metric:
    return Metric(name, title, unit, Better.HIGHER, finished_only=finished_only)


def _counts(noun: str, states: str) -> list[Metric]:
    return [
        Metric(noun, noun.capitalize(), Unit.COUNT),
        *(
            Metric(f"{noun}_{state}", f"{noun.capitalize()} {state}", Unit.COUNT)
            for state in states.split()
        ),
    ]


def _times(name: str, title: str) -> list[Metric]:
    return [
        _lower(f"{name}_mean_s", f"{title}, mean", Unit.SECONDS),
        _lower(f"{name}_p50_s", f"{title}, median", Unit.SECONDS),
        _lower(f"{name}_p95_s", f"{title}, 95th percentile", Unit.SECONDS),
        _lower(f"{name}_p99_s", f"{title}, 99th percentile", Unit.SECONDS),
    ]


_METRICS = [
    *_counts("apps", "done failed infeasible rejected unfinished"),
    *_counts("jobs", "done killed failed infeasible rejected unfinished"),
    Metric("rho_apps", "Apps with a final rho", Unit.COUNT),
    _lower("rho_max", "Worst rho", Unit.RATIO),
    _lower("rho_p99", "rho, 99th percentile", Unit.RATIO),
    _lower("rho_p90", "rho, 90th percentile", Unit.RATIO),
    _lower("rho_median", "rho, median", Unit.RATIO),
    _lower("rho_mean", "rho, mean", Unit.RATIO),
    Metric("rho_bounds", "Apps with only a bound on rho", Unit.COUNT),
    _lower("rho_bound_max", "Worst bound on rho", Unit.RATIO, finished_only=False),
    Metric("rho_floor_max", "Worst rho floor", Unit.RATIO),
    _higher("share_rho_le_1", "Apps with rho at most 1", Unit.SHARE, finished_only=True),
    _higher("share_rho_le_1_05", "Apps with rho at most 1.05", Unit.SHARE, finished_only=True),
    _higher("jain", "Jain's index of rho", Unit.RATIO, finished_only=True),
    _lower("makespan_s", "Makespan", Unit.SECONDS),
    Metric("makespan_is_bound", "Makespan is a lower bound", Unit.FLAG),
    *_times("app_completion", "App completion"),
    *_times("job_completion", "Job completion"),
    *_times("queue", "Wait for the first GPU"),
    _lower("queue_max_s", "Wait for the first GPU, longest", Unit.SECONDS),
    _lower("never_started_apps", "Apps never started", Unit.COUNT, finished_only=False),
    *_times("without_gpus", "Time without GPUs"),
    Metric("preemptions", "Preemptions", Unit.COUNT),
    _lower("preemptions_per_app", "Preemptions an app", Unit.RATIO),
    _lower("preempted_apps_share", "Apps preempted", Unit.SHARE),
    Metric("migrations", "Migrations", Unit.COUNT),
    _lower("migrations_per_app", "Migrations an app", Unit.RATIO),
    Metric("failures", "Failures of GPUs under jobs", Unit.COUNT),
    Metric("evictions", "Evictions", Unit.COUNT),
    _lower("evictions_per_app_hour", "Evictions an app and hour", Unit.RATIO),
    _lower("evictions_per_app_hour_max", "Evictions an hour, worst app", Unit.RATIO),
    _lower("repeated_allocations", "Allocations that came back", Unit.COUNT),
    _lower("starved_apps", "Apps starved", Unit.COUNT, finished_only=False),
    _lower("wait_longest_s", "Time without GPUs in one piece, longest", Unit.SECONDS),
    _lower("wait_longest_ratio", "The same over T_ID, largest", Unit.RATIO),
    _lower("gpu_s", "GPU time held", Unit.GPU_SECONDS),
    Metric("useful_gpu_s", "GPU time, useful", Unit.GPU_SECONDS),
    _lower("slowed_gpu_s", "GPU time lost to placement", Unit.GPU_SECONDS),
    _lower("switching_gpu_s", "GPU time lost to switching", Unit.GPU_SECONDS),
    _lower("lost_gpu_s", "GPU time lost to failures", Unit.GPU_SECONDS),
    _lower("idle_gpu_s", "GPU time idle in a gang", Unit.GPU_SECONDS),
    _higher("useful_share", "GPU time that is useful", Unit.SHARE),
    _higher("placement_score", "Placement score", Unit.RATIO),
    _higher("perfectly_placed_apps_share", "Apps always placed perfectly", Unit.SHARE),
    _higher("utilisation", "GPU utilisation", Unit.SHARE),
    _higher("productive_utilisation", "Productive GPU utilisation", Unit.SHARE),
    Metric("contention_mean", "Active apps, mean over time", Unit.RATIO),
    Metric("contention_max", "Active apps, most", Unit.COUNT),
    Metric("auctions", "Auctions", Unit.COUNT),
    Metric("auction_bidders_mean", "Bidders an auction", Unit.RATIO),
    Metric("auction_offered_gpus_mean", "GPUs offered an auction", Unit.RATIO),
    Metric("auction_leftover_gpus_mean", "GPUs left over an auction", Unit.RATIO),
    Metric("auction_leftover_share", "Offered GPUs left over", Unit.SHARE),
    Metric("auction_c_min", "Payment factor c, lowest", Unit.RATIO),
    Metric("auction_c_mean", "Payment factor c, mean", Unit.RATIO),
    _lower("auction_gap_mean", "Certified gap, mean", Unit.SHARE, finished_only=False),
    _lower("auction_gap_max", "Certified gap, largest", Unit.SHARE, finished_only=False),
]

CATALOGUE: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
"""Every metric of a summary by name, in the order of the summary."""

HEADLINES: tuple[str, ...] = (
    "rho_max",
    "rho_floor_max",
    "rho_p99",
    "rho_median",
    "share_rho_le_1_05",
    "jain",
    "app_completion_mean_s",
    "app_completion_p50_s",
    "app_completion_p95_s",
    "queue_mean_s",
    "makespan_s",
    "utilisation",
    "useful_share",
    "placement_score",
    "preemptions_per_app",
    "apps_unfinished",
    "rho_bound_max",
    "apps_infeasible",
)
"""Metrics of the headline table, in its order."""
