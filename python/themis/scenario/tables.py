"""The tables of a scenario's file: what each may hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from themis.arguments import MOST_SEEDS
from themis.settings.settings import PolicySettings
from themis.workload.transforms import AnyTransform, GroupIntoApps, Sample, Scale, Transform, Window

__all__ = [
    "TABLE",
    "CapacityRow",
    "ClusterTable",
    "MachineRow",
    "PolicyTable",
    "ProfileTable",
    "SweepTable",
    "WorkloadTable",
]

TABLE = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)
"""How every table is checked."""


class MachineRow(BaseModel):
    """One machine of a cluster that is listed in the scenario itself."""

    model_config: ClassVar[ConfigDict] = TABLE

    machine: str = Field(description="unique name")
    rack: str = Field(description="name of its rack")
    gpus: int = Field(ge=1, description="number of GPUs")
    gpu_type: str = Field(default="gpu", description="type of its GPUs")
    slot_gpus: int | None = Field(
        default=None, ge=1, description="GPUs of one fast link island; unset: all of the machine"
    )
    cpu_cores: float | None = Field(
        default=None, ge=0, description="CPU cores that its GPUs may take; unset: any number"
    )
    memory_gib: float | None = Field(
        default=None, ge=0, description="GiB of memory that its GPUs may take; unset: any number"
    )


class CapacityRow(BaseModel):
    """From an instant on a machine has so many GPUs."""

    model_config: ClassVar[ConfigDict] = TABLE

    machine: str = Field(description="name of the machine")
    at_s: float = Field(description="from when on, in seconds on the workload's clock")
    gpus: int = Field(ge=0, description="GPUs that it has then")
    cause: Literal["planned", "evicted", "failure", "repair"] = Field(
        default="planned", description="why, and so what becomes of the GPUs in use"
    )


class ClusterTable(BaseModel):
    """Where the cluster is described: exactly one of spec, file and machines."""

    model_config: ClassVar[ConfigDict] = TABLE

    spec: str | None = Field(default=None, description="short form, for example 8x(8x8)")
    file: str | None = Field(
        default=None, description="path of a cluster file (TOML) or of the machine list of a trace"
    )
    host: Literal["leave_out", "keep"] = Field(
        default="leave_out",
        description="whether the CPU cores and memory of a trace's machine list count",
    )
    machines: Annotated[tuple[MachineRow, ...], Field(strict=False)] | None = Field(
        default=None, description="the machines themselves"
    )
    capacity: Annotated[tuple[CapacityRow, ...], Field(strict=False)] | None = Field(
        default=None, description="changes of what machines have; unset: none"
    )
    capacity_file: str | None = Field(
        default=None, description="path of a table of such changes, instead of them"
    )

    @model_validator(mode="after")
    def _one_description(self) -> Self:
        given = [key for key in ("spec", "file", "machines") if getattr(self, key) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "none of them"
            raise ValueError(f"expected exactly one of spec, file or machines, found {found}")
        if self.host == "keep" and self.file is None:
            raise ValueError("host is 'keep': expected the file of a machine list")
        if self.machines == ():
            raise ValueError("machines is empty: expected one machine or more")
        if self.capacity is not None and self.capacity_file is not None:
            raise ValueError("expected either capacity or capacity_file, found both")
        return self


class WorkloadTable(BaseModel):
    """Where the jobs come from: a trace file or a generator, and what is done to them."""

    model_config: ClassVar[ConfigDict] = TABLE

    trace: str | None = Field(default=None, description="path of a trace file")
    format: str | None = Field(default=None, description="its format; unset: recognised")
    options: dict[str, object] = Field(default={}, description="options of the format")
    generate: str | None = Field(default=None, description="name of a generator")
    params: dict[str, object] = Field(default={}, description="parameters of the generator")
    window: Window | None = Field(default=None, description="keep these arrivals only")
    sample: float | None = Field(
        default=None, gt=0, le=1, description="keep each app with this probability; no unit"
    )
    group_into_apps: GroupIntoApps | None = Field(
        default=None, description="group jobs into apps; unset: as the trace says"
    )
    load: float | None = Field(
        default=None, gt=0, description="factor on the rate of arrivals; no unit"
    )
    transform: Annotated[tuple[AnyTransform, ...], Field(strict=False)] = Field(
        default=(), description="further transformations, in order"
    )

    def transforms(self) -> Iterator[Transform]:
        """Return all transformations in the order in which they happen."""
        if self.window is not None:
            yield self.window
        if self.sample is not None:
            yield Sample(fraction=self.sample)
        if self.group_into_apps is not None:
            yield self.group_into_apps
        if self.load is not None:
            yield Scale(load=self.load)
        yield from self.transform

    @property
    def draws(self) -> bool:
        """Whether the workload depends on the scenario's seed."""
        generated = self.generate is not None and "seed" not in self.params
        return generated or any(
            "seed" in type(step).model_fields and getattr(step, "seed", None) is None
            for step in self.transforms()
        )

    def pinned(self, seed: int) -> Self:
        """Return the same table with this seed wherever the scenario's would be taken."""
        params = {"seed": seed, **self.params} if self.generate is not None else self.params
        steps = tuple(
            step.model_copy(update={"seed": seed})
            if "seed" in type(step).model_fields and getattr(step, "seed", None) is None
            else step
            for step in self.transforms()
        )
        listed = dict.fromkeys(("window", "sample", "group_into_apps", "load"))
        return self.model_copy(update={**listed, "params": params, "transform": steps})

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.trace is None) == (self.generate is None):
            found = "none" if self.trace is None else "both"
            raise ValueError(f"expected exactly one of trace or generate, found {found}")
        idle = {"trace": ("generate", "params"), "generate": ("trace", "format", "options")}
        source = "trace" if self.trace is not None else "generate"
        for key in idle[source]:
            if getattr(self, key):
                raise ValueError(f"{key} has no meaning with {source}: leave it out")
        for key, taken in (("options", {"path", "format"}), ("params", {"spec"})):
            for name in sorted(taken & set(getattr(self, key))):
                raise ValueError(f"{key}.{name} is unknown: it is a key of its own")
        return self


class PolicyTable(PolicySettings):
    """The policy's name and the rules of Themis."""

    name: str = Field(default="themis", description="name of the policy")


class ProfileTable(BaseModel):
    """A placement profile of one's own."""

    model_config: ClassVar[ConfigDict] = TABLE

    scores: list[float] | None = Field(
        default=None, description="1/S at slot, machine, rack and cluster; unset: cold_start's"
    )
    speeds: dict[str, float] | None = Field(
        default=None, description="work a GPU does by its type, while one of speed 1 does 1"
    )
    scaling: dict[str, float] | None = Field(
        default=None, description="efficiency by GPUs, such as {2 = 0.95, 8 = 0.7}; unset: 1"
    )


class SweepTable(BaseModel):
    """What varies from run to run in a sweep; a single run has no use for it."""

    model_config: ClassVar[ConfigDict] = TABLE

    seeds: int | None = Field(
        default=None,
        ge=1,
        le=MOST_SEEDS,
        description="so many seeds, the scenario's and those after it",
    )
    axes: dict[str, object] = Field(
        default={}, description="values by key, such as lease_s = [300, 600]"
    )
