"""The settings of a simulation: every rule that a user can change, with its default.

The defaults are those that behaved best in measurements or those of the paper's testbed; each
description says what the value means and in which unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from themis.settings.presets import checked_preset, preset_values
from themis.settings.validation import scenario_error

__all__ = ["Liars", "PolicySettings", "Preset", "RunSettings", "Settings"]

_LONGEST_S = 1e12  # 30,000 years: keeps sums of times, in microseconds, inside 64-bit integers

Payment = Literal["lottery", "lease", "gpus", "gpus_random", "none"]
Solver = Literal["prices", "greedy"]
OutsideOption = Literal["min_bundle", "fair_share", "cached", "unbounded"]
FilterKey = Literal["best_case", "holdings", "cached"]
Preset = Annotated[str | None, AfterValidator(checked_preset)]


class PolicySettings(BaseModel):
    """Rules of the Themis policy and of the ideal time that every policy is measured against."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    fairness_knob: float = Field(
        default=0.8,
        ge=0,
        le=1,
        description="f: offers go to the fraction 1 - f of the apps that are worst off; no unit",
    )
    solver: Solver = Field(
        default="prices", description="how an auction's allocation and payments are found"
    )
    payment: Payment = Field(
        default="lottery",
        description="how a winner's hidden payment c, a fraction of its bundle, is made whole",
    )
    outside_option: OutsideOption = Field(
        default="min_bundle", description="what an app without GPUs is worth in the auction"
    )
    filter_key: FilterKey = Field(
        default="best_case", description="the rho by which apps are ordered before an offer"
    )
    leftover: Literal["random", "holders_first", "worst_first"] = Field(
        default="holders_first", description="who gets the GPUs that nobody won"
    )
    t_id: Literal["paper", "critical_path", "demand_capped"] = Field(
        default="paper", description="the reading of the ideal time of an app alone in 1/N share"
    )
    min_lease_s: float = Field(
        default=60.0,
        ge=1,
        le=_LONGEST_S,
        description="shortest lease that a payment leaves, unless the round ends first; in seconds",
    )

    @field_validator("solver", mode="before")
    @classmethod
    def _no_milp(cls, value: object) -> object:
        if value == "milp":
            raise ValueError("clears single auctions only: expected one of prices or greedy")
        return value


class Liars(BaseModel):
    """Who misreports in bids, which term, and by how much."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    share: float | None = Field(
        default=None, ge=0, le=1, description="share of the apps, drawn from the seed"
    )
    apps: Annotated[tuple[str, ...], Field(strict=False)] | None = Field(
        default=None, description="the apps by id, instead of a share"
    )
    term: Literal["slowdown", "speed", "work"] = Field(
        default="slowdown",
        description="what is overstated: the part of S above 1, the speed, or the work left",
    )
    by: float = Field(
        default=0.3, gt=-1, le=100, description="by what share of it; below 0: understated"
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.share is None) == (self.apps is None):
            raise ValueError("expected either share or apps")
        return self


class RunSettings(BaseModel):
    """Rules of the simulated cluster: leases, switches, app schedulers, the end of the run."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    lease_s: float = Field(
        default=600.0, ge=0.001, le=_LONGEST_S, description="length of a lease, in seconds"
    )
    lease_mode: Literal["aligned", "rolling"] = Field(
        default="aligned",
        description="aligned: leases end on multiples of lease_s; rolling: each has its own clock",
    )
    restart_s: float = Field(
        default=35.0,
        ge=0,
        le=_LONGEST_S,
        description="time that a job needs on new GPUs before it works, in seconds",
    )
    checkpoint_s: float = Field(
        default=8.0,
        ge=0,
        le=_LONGEST_S,
        description="time that a job needs to save its state before it leaves GPUs, in seconds",
    )
    checkpoint_every_s: float | None = Field(
        default=1800.0,
        ge=0.001,
        le=_LONGEST_S,
        description="working time between two checkpoints of a job, in seconds; unset: none",
    )
    reserve_after_s: float | None = Field(
        default=None,
        ge=0,
        le=_LONGEST_S,
        description="wait after which GPUs are set aside for a gang, in seconds; unset: never",
    )
    mtbf_s: float | None = Field(
        default=None,
        ge=0.001,
        le=_LONGEST_S,
        description="mean time to failure of a machine, exponential, in seconds; unset: none fails",
    )
    mttr_s: float = Field(
        default=3600.0,
        ge=0.001,
        le=_LONGEST_S,
        description="mean time to its repair, exponential, in seconds",
    )
    quarantine_after: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="failures after which a repaired machine is left alone; unset: never; no unit",
    )
    quarantine_s: float = Field(
        default=86400.0,
        ge=0.001,
        le=_LONGEST_S,
        description="for so long, if the failures were no further apart, in seconds",
    )
    phase_cap: Literal["doubling", "fixed"] = Field(
        default="doubling",
        description="GPUs a job can use in each phase of successive halving: twice those before",
    )
    curve_step: float = Field(
        default=0.05,
        ge=0.001,
        le=1,
        description="share of a job's work between two looks at its loss curve; no unit",
    )
    curve_error: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="standard error of a loss, as a share of the range of losses seen; no unit",
    )
    request_factor: float = Field(
        default=2.0,
        ge=1,
        le=1000,
        description="times of its own length that a job's user asks for (fifo_backfill); no unit",
    )
    horizon_s: float | None = Field(
        default=None,
        gt=0,
        le=_LONGEST_S,
        description="end of the run on the workload's clock, in seconds; unset: none",
    )
    bid_error: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="bids are off by a factor an app, uniform in 1 +- this, on work and S; no unit",
    )
    liars: Liars | None = Field(default=None, description="agents that misreport; unset: none")


class Settings(PolicySettings, RunSettings):
    """All settings of a simulation, checked and frozen.

    Numbers may be given as whole numbers where a fraction is meant; nothing else is converted.
    """

    preset: Preset = Field(
        default=None,
        description="settings by name, such as nsdi20; those given beside it win; unset: none",
    )

    @model_validator(mode="before")
    @classmethod
    def _over_preset(cls, values: Any) -> Any:  # noqa: ANN401 - whatever was given
        if isinstance(values, Mapping):
            return {**preset_values(values.get("preset")), **values}
        return values

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Self:
        """Return the settings that ``values`` names, the others at their defaults.

        Parameters
        ----------
        values
            Setting name to value, for example ``{"fairness_knob": 0.5, "payment": "none"}``.
            Those of a ``preset`` (:data:`themis.settings.presets.PRESETS`) stand under them.

        Raises
        ------
        ScenarioError
            A name is unknown or a value is not allowed; the message lists every such entry with
            its value, what was expected, and the nearest known name.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise scenario_error(error, cls) from None
