"""A scenario: one TOML file that says which workload runs on which cluster under which rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from themis.arguments import MOST_SEEDS
from themis.documents import read_toml
from themis.errors import ScenarioError
from themis.overrides import SETTING_PLACES, apply_overrides, under
from themis.presets import preset_values
from themis.profiles import ProfileInput, read_profiles
from themis.settings import PolicySettings, Preset, RunSettings, Settings
from themis.tenants import Tenants
from themis.toml_text import toml_text
from themis.transforms import (
    AnyTransform,
    GroupIntoApps,
    Sample,
    Scale,
    Transform,
    Window,
    apply_transforms,
)
from themis.validation import scenario_error

if TYPE_CHECKING:
    from themis.cluster import Cluster
    from themis.workload import Workload

__all__ = ["Experiment", "Scenario", "SweepTable", "cluster_table"]

_TABLE = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)
_PATH_KEYS = (("cluster", "file"), ("cluster", "capacity_file"), ("workload", "trace"))


class Experiment(NamedTuple):
    """What a scenario builds: all that a simulation needs."""

    workload: Workload
    cluster: Cluster
    policy: str
    settings: Settings
    seed: int
    scenario: Scenario


class MachineRow(BaseModel):
    """One machine of a cluster that is listed in the scenario itself."""

    model_config = _TABLE

    machine: str = Field(description="unique name")
    rack: str = Field(description="name of its rack")
    gpus: int = Field(ge=1, description="number of GPUs")
    gpu_type: str = Field(default="gpu", description="type of its GPUs")
    slot_gpus: int | None = Field(
        default=None, ge=1, description="GPUs of one fast link island; unset: all of the machine"
    )


class CapacityRow(BaseModel):
    """From an instant on a machine has so many GPUs."""

    model_config = _TABLE

    machine: str = Field(description="name of the machine")
    at_s: float = Field(description="from when on, in seconds on the workload's clock")
    gpus: int = Field(ge=0, description="GPUs that it has then")
    cause: Literal["planned", "evicted", "failure", "repair"] = Field(
        default="planned", description="why, and so what becomes of the GPUs in use"
    )


class ClusterTable(BaseModel):
    """Where the cluster is described: exactly one of spec, file and machines."""

    model_config = _TABLE

    spec: str | None = Field(default=None, description="short form, for example 8x(8x8)")
    file: str | None = Field(
        default=None, description="path of a cluster file (TOML) or of the machine list of a trace"
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
        if self.machines == ():
            raise ValueError("machines is empty: expected one machine or more")
        if self.capacity is not None and self.capacity_file is not None:
            raise ValueError("expected either capacity or capacity_file, found both")
        return self


class WorkloadTable(BaseModel):
    """Where the jobs come from: a trace file or a generator, and what is done to them."""

    model_config = _TABLE

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

    model_config = _TABLE

    scores: list[float] | None = Field(
        default=None, description="1/S at slot, machine, rack and cluster; unset: cold_start's"
    )
    speeds: dict[str, float] | None = Field(
        default=None, description="work a GPU does by its type, while one of speed 1 does 1"
    )


class SweepTable(BaseModel):
    """What varies from run to run in a sweep; a single run has no use for it."""

    model_config = _TABLE

    seeds: int | None = Field(
        default=None,
        ge=1,
        le=MOST_SEEDS,
        description="so many seeds, the scenario's and those after it",
    )
    axes: dict[str, object] = Field(
        default={}, description="values by key, such as lease_s = [300, 600]"
    )


class Scenario(BaseModel):
    """Everything that a run depends on, checked and frozen.

    Paths are absolute once a scenario is loaded, so that it means the same from everywhere.
    """

    model_config = _TABLE

    schema_version: Literal[1] = Field(default=1, description="version of this schema")
    seed: int = Field(default=0, ge=0, lt=2**64, description="seed of every random choice")
    preset: Preset = Field(
        default=None, description="settings by name, under those of policy and settings"
    )
    cluster: ClusterTable
    workload: WorkloadTable
    policy: PolicyTable = PolicyTable()
    settings: RunSettings = RunSettings()
    profiles: dict[str, ProfileTable] = Field(
        default={}, description="placement profiles of one's own, by name"
    )
    tenants: Tenants = Field(
        default={}, description="what tenants are given, by name; unset: all apps are as of one"
    )
    sweep: SweepTable | None = None

    @model_validator(mode="before")
    @classmethod
    def _over_preset(cls, document: Any) -> Any:  # noqa: ANN401 - whatever was given
        if isinstance(document, Mapping):
            return under(document, preset_values(document.get("preset")))
        return document

    @classmethod
    def parse(
        cls, document: Mapping[str, object], *, directory: Path, file: str | None = None
    ) -> Self:
        """Return the scenario that a document (nested tables) describes.

        Parameters
        ----------
        document
            Nested tables, as TOML gives them.
        directory
            Where relative paths start.
        file
            Named first in the message of an error.

        Raises
        ------
        ScenarioError
            Lists every unknown key, with the nearest known one, and every value that is not
            allowed, with what was expected.
        """
        try:
            return cls.model_validate(_with_absolute_paths(document, directory))
        except ValidationError as error:
            raise scenario_error(error, cls, file=file, homes=SETTING_PLACES) from None

    @classmethod
    def load(cls, path: str | PathLike[str], *, overrides: Iterable[tuple[str, str]] = ()) -> Self:
        """Return the scenario in a TOML file, with (key, text) pairs laid over it.

        Relative paths in the file start at its folder.

        Raises
        ------
        ScenarioError
            The file cannot be read, is not TOML, or describes no valid scenario.
        """
        document = apply_overrides(read_toml(Path(path), ScenarioError), overrides)
        return cls.parse(document, directory=Path(path).parent, file=str(path))

    def to_toml(self) -> str:
        """Return the scenario as TOML with every setting written out; reading it gives it back."""
        document = self.model_dump(mode="python")
        workload = document["workload"]
        for key in ("options", "params", "transform"):
            if not workload[key]:
                del workload[key]
        document["policy"] = {"name": self.policy.name, **document["policy"]}
        document["profiles"] = self.own_profiles()
        for name in ("profiles", "tenants"):
            if not document[name]:
                del document[name]
        return toml_text(document)

    def own_profiles(self) -> dict[str, ProfileInput]:
        """Return the profiles as :func:`themis.simulate` takes them."""
        tables = {
            name: table.model_dump(exclude_none=True) for name, table in self.profiles.items()
        }
        return cast("dict[str, ProfileInput]", tables)

    def of_run(self, policy: str, seed: int) -> Self:
        """Return the scenario of one run with this workload: another policy, and another seed."""
        pinned = self.workload.draws and seed != self.seed
        return self.model_copy(
            update={
                "seed": seed,
                "policy": self.policy.model_copy(update={"name": policy}),
                "workload": self.workload.pinned(self.seed) if pinned else self.workload,
                "sweep": None,
            }
        )

    def document(self) -> dict[str, object]:
        """Return the scenario as nested tables, JSON-able; :meth:`parse` reads them back."""
        return self.model_dump(mode="json", exclude_none=True)

    def build(self) -> Experiment:
        """Read the trace or generate the workload, and build the cluster.

        Raises
        ------
        ClusterError
            The cluster's description is invalid.
        TraceError
            The trace cannot be read, or the generator is unknown or refuses a parameter.
        """
        workload, cluster = self.build_inputs()
        return self.experiment(workload, cluster)

    def check(self) -> None:
        """Refuse what can be seen to be wrong without reading a trace.

        Raises
        ------
        ClusterError, PolicyError, TraceError
            The cluster, the policy, or the generator or one of its parameters is unknown or
            invalid.
        """
        from themis.policies import resolve_policy  # noqa: PLC0415 - on use
        from themis.synthetic import resolve_spec  # noqa: PLC0415 - a scenario is read without it

        resolve_policy(self.policy.name)
        read_profiles(self.own_profiles())
        self.build_cluster()
        if self.workload.generate is not None:
            params = {key: value for key, value in self.workload.params.items() if key != "seed"}
            resolve_spec(self.workload.generate).parse(params)

    def experiment(self, workload: Workload, cluster: Cluster) -> Experiment:
        """Return the policy and settings of this scenario with inputs that are built already."""
        policy = self.policy.model_dump(exclude={"name"})
        settings = Settings(preset=self.preset, **policy, **self.settings.model_dump())
        return Experiment(workload, cluster, self.policy.name, settings, self.seed, self)

    def build_inputs(self) -> tuple[Workload, Cluster]:
        """Return the workload and the cluster; raises as :meth:`build`."""
        cluster = self.build_cluster()
        return self._build_workload(cluster), cluster

    def build_cluster(self) -> Cluster:
        """Return the cluster.

        Raises
        ------
        ClusterError
            Its description is invalid.
        """
        import polars as pl  # noqa: PLC0415 - a scenario is checked without it

        from themis.capacity import read_capacity  # noqa: PLC0415 - the same
        from themis.cluster import Cluster  # noqa: PLC0415 - the same
        from themis.machine_lists import read_cluster  # noqa: PLC0415 - the same

        table = self.cluster
        if table.spec is not None:
            cluster = Cluster.parse(table.spec)
        elif table.file is not None:
            cluster = read_cluster(table.file)
        else:
            rows = [
                {**row.model_dump(), "slot_gpus": row.slot_gpus or row.gpus}
                for row in table.machines or ()
            ]
            cluster = Cluster.from_frame(pl.DataFrame(rows))
        if table.capacity_file is not None:
            return cluster.with_capacity(read_capacity(table.capacity_file))
        changes = [row.model_dump() for row in table.capacity or ()]
        return cluster.with_capacity(pl.DataFrame(changes)) if changes else cluster

    def _build_workload(self, cluster: Cluster) -> Workload:
        from themis.synthetic import generate  # noqa: PLC0415 - a scenario is checked without it
        from themis.traces import read_trace  # noqa: PLC0415 - the same

        table = self.workload
        if table.trace is not None:
            workload = read_trace(table.trace, format=table.format, **table.options)
        else:
            params = dict(table.params)
            seed: Any = params.pop("seed", self.seed)  # generate refuses what is no seed
            workload = generate(table.generate or "", seed, **params)
        return apply_transforms(workload, table.transforms(), cluster=cluster, seed=self.seed)


def cluster_table(text: str, directory: Path = Path()) -> dict[str, str]:
    """Return the cluster table of a scenario for a short form or the path of a file.

    Parameters
    ----------
    text
        What the user wrote.
    directory
        Where a relative path starts.
    """
    path = directory / text
    if text.endswith(".toml") or path.is_file():
        return {"file": str(path.absolute())}
    return {"spec": text}


def _with_absolute_paths(document: Mapping[str, object], directory: Path) -> dict[str, object]:
    changed = dict(document)
    for table, key in _PATH_KEYS:
        values = changed.get(table)
        path = values.get(key) if isinstance(values, Mapping) else None
        if isinstance(values, Mapping) and isinstance(path, str) and path:
            changed[table] = {**values, key: str((directory / path).absolute())}
    return changed
