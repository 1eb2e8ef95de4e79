"""A scenario: one TOML file that says which workload runs on which cluster under which rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from themis.errors import ScenarioError
from themis.files.documents import read_toml
from themis.profiles import ProfileInput, read_profiles
from themis.scenario.tables import (
    TABLE,
    ClusterTable,
    PolicyTable,
    ProfileTable,
    SweepTable,
    WorkloadTable,
)
from themis.settings.overrides import SETTING_PLACES, apply_overrides, under
from themis.settings.presets import preset_values
from themis.settings.settings import Preset, RunSettings, Settings
from themis.settings.toml_text import toml_text
from themis.settings.validation import scenario_error
from themis.workload.tenants import Tenants
from themis.workload.transforms import (
    apply_transforms,
)

if TYPE_CHECKING:
    from themis.cluster.cluster import Cluster
    from themis.workload.workload import Workload

__all__ = ["Experiment", "Scenario", "cluster_table"]

_PATH_KEYS = (("cluster", "file"), ("cluster", "capacity_file"), ("workload", "trace"))


class Experiment(NamedTuple):
    """What a scenario builds: all that a simulation needs."""

    workload: Workload
    cluster: Cluster
    policy: str
    settings: Settings
    seed: int
    scenario: Scenario


class Scenario(BaseModel):
    """Everything that a run depends on, checked and frozen.

    Paths are absolute once a scenario is loaded, so that it means the same from everywhere.
    """

    model_config: ClassVar[ConfigDict] = TABLE

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

    def input_files(self) -> Iterator[str]:
        """Give the files, folders and patterns that the scenario names, as absolute paths."""
        for path in (self.cluster.file, self.cluster.capacity_file, self.workload.trace):
            if path is not None:
                yield path
        for value in self.workload.options.values():  # some formats have tables beside the trace
            if isinstance(value, str) and Path(value).is_file():
                yield value

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
        from themis.policies.catalogue import resolve_policy  # noqa: PLC0415 - on use
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

        from themis.cluster.cluster import Cluster  # noqa: PLC0415 - the same
        from themis.traces.capacity_tables import read_capacity  # noqa: PLC0415 - the same
        from themis.traces.machine_lists import read_cluster  # noqa: PLC0415 - the same

        table = self.cluster
        if table.spec is not None:
            cluster = Cluster.parse(table.spec)
        elif table.file is not None:
            cluster = read_cluster(table.file, host=table.host)
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
