"""Transformations of a workload as data: what a scenario lists and ``--transform`` gives.

A transformation is named like the method of :class:`themis.Workload` that does it, and
has that method's parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from themis.errors import ScenarioError
from themis.settings.overrides import parse_text_value
from themis.settings.validation import scenario_error

if TYPE_CHECKING:
    from themis.cluster.cluster import Cluster
    from themis.workload.workload import Workload

__all__ = [
    "AnyTransform",
    "GroupIntoApps",
    "Sample",
    "Scale",
    "Transform",
    "Window",
    "apply_transforms",
    "parse_transforms",
    "split_values",
    "transform_table",
]


class Transform(BaseModel):
    """What all have in common: the rest of the fields are the arguments of the method."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    kind: str

    def apply(self, workload: Workload, *, cluster: Cluster | None, seed: int) -> Workload:
        """Return the transformed workload.

        Parameters
        ----------
        workload
            What is transformed.
        cluster
            Where it will run, if that is known.
        seed
            For random choices whose own seed is unset.

        Raises
        ------
        TraceError
            Nothing would be left, or a value does not fit the workload.
        ScenarioError
            A cluster is needed and not given.
        """
        arguments = self.model_dump(exclude={"kind"}, exclude_none=True)
        if "seed" in type(self).model_fields:
            arguments.setdefault("seed", seed)
        if arguments.pop("on_cluster", False):
            if cluster is None:
                raise ScenarioError(f"{self.kind}: on_cluster is true: expected a cluster")
            arguments["cluster"] = cluster
        transformed: Workload = getattr(workload, self.kind)(**arguments)
        return transformed


Seed = Annotated[
    int | None,
    Field(default=None, ge=0, lt=2**64, description="its seed; unset: that of the scenario"),
]


class Scale(Transform):
    """Submit the same jobs in less or more time."""

    kind: Literal["scale"] = "scale"
    load: float = Field(gt=0, description="factor on the rate of arrivals; no unit")
    on_cluster: bool = Field(
        default=False, description="load is what shall be offered to the cluster, no factor"
    )


class Window(Transform):
    """The part of the workload that is kept: apps that arrive in [start_s, end_s)."""

    kind: Literal["window"] = "window"
    start_s: float = Field(default=0.0, description="first arrival that is kept, in seconds")
    end_s: float | None = Field(
        default=None, description="first arrival that is left out, in seconds; unset: none"
    )


class Sample(Transform):
    """Some apps at random, or all apps of some users or tenants."""

    kind: Literal["sample"] = "sample"
    fraction: float | None = Field(
        default=None, gt=0, le=1, description="keep each with this probability; no unit"
    )
    n: int | None = Field(default=None, ge=1, description="or keep so many")
    by: Literal["app", "user", "tenant"] = Field(
        default="app", description="what is kept or left out as one"
    )
    seed: Seed = None


class Filter(Transform):
    """The jobs for which a condition holds."""

    kind: Literal["filter"] = "filter"
    where: str = Field(description="condition in SQL over the columns of jobs and apps")


class GroupIntoApps(Transform):
    """Jobs into apps: one user's jobs of one kind, submitted close together."""

    kind: Literal["group_into_apps"] = "group_into_apps"
    gap_s: float = Field(default=60.0, ge=0, description="longest pause inside an app, in seconds")
    max_jobs: int = Field(default=100, ge=1, description="most jobs of an app")
    keys: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=("user", "tenant", "gang_size"), description="columns that an app's jobs share"
    )


class Rigid(Transform):
    """Every job uses its gang and no more."""

    kind: Literal["rigid"] = "rigid"


class Elastic(Transform):
    """Every job may run on fewer or more GPUs than its gang."""

    kind: Literal["elastic"] = "elastic"
    min_factor: float = Field(
        default=1.0, gt=0, le=1, description="GPUs that it needs, in parts of its gang"
    )
    max_factor: float = Field(
        default=2.0, ge=1, description="GPUs that it can use, in parts of its gang"
    )


class AssignProfiles(Transform):
    """Placement profiles by a seeded mix or by the name of the model."""

    kind: Literal["assign_profiles"] = "assign_profiles"
    mix: dict[str, float] | None = Field(default=None, description="shares by profile")
    models: dict[str, str] | None = Field(default=None, description="or profiles by model name")
    seed: Seed = None


AnyTransform = Annotated[
    Scale | Window | Sample | Filter | GroupIntoApps | Rigid | Elastic | AssignProfiles,
    Field(discriminator="kind"),
]
"""One of the transformations, told apart by its `kind`."""


class _Listed(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    transform: Annotated[tuple[AnyTransform, ...], Field(strict=False)]


def apply_transforms(
    workload: Workload, transforms: Iterable[Transform], *, cluster: Cluster | None, seed: int
) -> Workload:
    """Apply transformations one after the other; see :meth:`Transform.apply`."""
    for transform in transforms:
        workload = transform.apply(workload, cluster=cluster, seed=seed)
    return workload


def parse_transforms(texts: Iterable[str]) -> tuple[Transform, ...]:
    """Return the transformations that texts like ``window:start_s=0,end_s=3600`` mean.

    Raises
    ------
    ScenarioError
        A kind or key is unknown, with the nearest known one, or a value is not allowed.
    """
    try:
        return _Listed(transform=[transform_table(text) for text in texts]).transform  # type: ignore[arg-type]
    except ValidationError as error:
        raise scenario_error(error, _Listed) from None


def transform_table(text: str) -> dict[str, object]:
    """Return the table of a scenario that a text ``kind:key=value,...`` means; values are TOML.

    Commas inside brackets and quotes do not separate, and words in a list need no quotes.

    Raises
    ------
    ScenarioError
        A part has no key or no equals sign, or a key stands twice.
    """
    kind, _, rest = text.partition(":")
    table: dict[str, object] = {"kind": kind.strip()}
    for part in split_values(rest):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise ScenarioError(f"transform {text!r}: {part!r} is not of the form key=value")
        if key in table:
            raise ScenarioError(f"transform {text!r}: key {key!r} stands twice")
        table[key] = _value(value)
    return table


def _value(text: str) -> Any:  # noqa: ANN401 - any value of TOML
    value = parse_text_value(text)
    if value == text and text.startswith("[") and text.endswith("]"):
        return [_value(part.strip()) for part in split_values(text[1:-1])]
    return value


def split_values(text: str) -> Iterator[str]:
    """Parts of a text between commas that stand in no brackets and no quotes."""
    start, depth, quote = 0, 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    if text[start:].strip():
        yield text[start:]
