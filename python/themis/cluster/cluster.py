"""The cluster: racks of machines of GPUs, with slots of fast links inside the machines."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from themis.arguments import path as path_argument
from themis.cluster.capacity import capacity_columns, checked_capacity, no_changes
from themis.cluster.machines import (
    MOST_GPUS,
    SCHEMA,
    check_count,
    checked,
    completed,
    too_many,
    with_host,
)
from themis.cluster.spec import PRESETS, UNTYPED, MachineKind, parse_spec, spec_text
from themis.errors import ClusterError
from themis.files.documents import read_toml
from themis.nearest import nearest
from themis.notebook import grid
from themis.schema.host import OF_MACHINE, there

if TYPE_CHECKING:
    from themis import _core

__all__ = ["UNTYPED", "Cluster"]


@dataclass(frozen=True, eq=False, repr=False)
class Cluster:
    """Machines with their racks, GPUs and slots.

    Parameters
    ----------
    machines
        One row a machine: machine (String, unique), rack (String), gpu_type (String), gpus
        (Int64, at least 1), slot_gpus (Int64, GPUs on one fast link; the last slot takes the
        remainder); cpu_cores and memory_gib (Float64: what GPUs there may take beside themselves;
        null or absent: as much as their jobs need). Ties between machines are broken by this order.
    capacity
        Changes of what machines have (:meth:`with_capacity`); none by default.

    Raises
    ------
    ClusterError
        There is no machine, a name stands twice, a count is out of range, or the cluster has more
        than 16,777,216 GPUs. Or :attr:`capacity` breaks a rule of :meth:`with_capacity`.
    """

    machines: pl.DataFrame
    capacity: pl.DataFrame = field(default_factory=no_changes)

    def __post_init__(self) -> None:
        object.__setattr__(self, "machines", checked(with_host(self.machines)))
        object.__setattr__(self, "capacity", checked_capacity(self.capacity, self.machines))

    @classmethod
    def uniform(
        cls,
        *,
        machines: int,
        gpus_per_machine: int,
        racks: int = 1,
        slot_gpus: int | None = None,
        gpu_type: str = UNTYPED,
    ) -> Cluster:
        """Return a cluster of equal machines, spread evenly over racks.

        Parameters
        ----------
        machines
            Machines in all; the first racks take one more when they do not divide evenly.
        gpus_per_machine
            GPUs of each.
        racks
            Number of racks, at most `machines`.
        slot_gpus
            GPUs of a slot; all of the machine when None.
        gpu_type
            Name of the GPU type.

        Raises
        ------
        ClusterError
            A count is below 1 or there are more racks than machines.
        """
        counts = {"machines": machines, "gpus_per_machine": gpus_per_machine, "racks": racks}
        for name, count in counts.items():
            check_count(name, count)
        if racks > machines:
            raise ClusterError(f"racks is {racks}: expected at most one a machine ({machines})")
        slot = gpus_per_machine if slot_gpus is None else slot_gpus
        check_count("slot_gpus", slot)
        kind = MachineKind(gpus_per_machine, gpu_type, slot)
        if machines * gpus_per_machine > MOST_GPUS:
            raise too_many(machines * gpus_per_machine)
        share, more = divmod(machines, racks)
        return cls._from_kinds([[kind] * (share + (rack < more)) for rack in range(racks)])

    @classmethod
    def parse(cls, text: str) -> Cluster:
        """Return the cluster of a short form.

        Parameters
        ----------
        text
            ``"32x8"``: one rack of 32 machines of 8 GPUs. ``"4x(8x8)"``: 4 such racks of 8.
            ``"8x(6x4+3x2+2x1)"``: mixed racks. ``"2x(4x8:a100/4)"``: GPU type a100, slots of 4.
            Racks are added with ``+``: ``"2x(4x8)+1x(8x4)"``. The names of :meth:`preset` too.

        Raises
        ------
        ClusterError
            The text does not follow the form; the message says where.
        """
        if not isinstance(text, str):
            raise ClusterError(f"cluster is {text!r}: expected a text such as '4x(8x8)'")
        return cls._from_kinds(parse_spec(text))

    @classmethod
    def preset(cls, name: str) -> Cluster:
        """Return a cluster of the paper.

        Parameters
        ----------
        name
            ``"nsdi20-testbed"``, ``"nsdi20-sim"``, ``"nsdi20-authors"`` or ``"nsdi20-lying"``; see
            :data:`themis.cluster.spec.PRESETS`.

        Raises
        ------
        ClusterError
            There is none of that name.
        """
        if name not in PRESETS:
            raise ClusterError(
                f"cluster preset {name!r} is unknown{nearest(name, PRESETS)}: "
                f"expected one of {', '.join(PRESETS)}"
            )
        return cls.parse(name)

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Cluster:
        """Return the cluster of a machine list.

        Parameters
        ----------
        frame
            Columns machine and gpus; optional rack (one rack when absent), gpu_type, slot_gpus
            (the whole machine when absent or null), cpu_cores and memory_gib (any number of them
            when absent or null). Sorted by (rack, machine): any order of the
            rows gives the same cluster.

        Raises
        ------
        ClusterError
            A column is missing, unknown or of another type, or a value is out of range.
        """
        if not isinstance(frame, pl.DataFrame):
            raise ClusterError(f"machine list is {frame!r:.80}: expected a polars DataFrame")
        return cls(completed(frame))

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Cluster:
        """Return the cluster that a TOML file describes.

        The file has either ``spec = "8x(8x8)"`` or ``[[machines]]`` tables with machine, gpus, and
        optionally rack, gpu_type, slot_gpus, cpu_cores, memory_gib; and ``[[capacity]]`` tables, if
        the capacity changes (:meth:`with_capacity`).

        Raises
        ------
        ClusterError
            The file can't be read or does not describe a cluster; the message names it.
        """
        file = path_argument("cluster: path", path, ClusterError)
        document = read_toml(file, ClusterError)
        try:
            return cls._from_document(document)
        except ClusterError as error:
            raise ClusterError(f"{file}: {error}") from error

    @classmethod
    def _from_document(cls, document: dict[str, object]) -> Cluster:
        unknown = [key for key in document if key not in ("spec", "machines", "capacity")]
        if unknown:
            raise ClusterError(
                f"key {unknown[0]!r} is unknown: expected spec, machines or capacity"
            )
        if "capacity" in document:
            rest = {key: value for key, value in document.items() if key != "capacity"}
            return cls._from_document(rest).with_capacity(_rows("capacity", document["capacity"]))
        match document:
            case {"spec": str(spec), **rest} if not rest:
                return cls.parse(spec)
            case {"machines": list(rows), **rest} if not rest and rows:
                return cls.from_frame(_rows("machines", rows))
        raise ClusterError("expected either spec (text) or machines (tables)")

    @classmethod
    def _from_kinds(cls, racks: list[list[MachineKind]]) -> Cluster:
        rows = [
            (f"r{rack}-m{number}", f"r{rack}", kind.gpu_type, kind.gpus, kind.slot_gpus, None, None)
            for rack, kinds in enumerate(racks)
            for number, kind in enumerate(kinds)
        ]
        return cls(pl.DataFrame(rows, schema=SCHEMA, orient="row"))

    def with_capacity(self, changes: pl.DataFrame) -> Cluster:
        """Return this cluster with machines that join, leave, fail or are repaired.

        Parameters
        ----------
        changes
            One row a change: machine (String), at_s (seconds on the workload's clock), gpus (what
            the machine has from then on, 0 to what the machine list says), and optionally cause:
            ``"planned"`` (default: GPUs in use leave when their leases end), ``"evicted"``
            (they leave at once; jobs save their state), ``"failure"`` (they are gone at once; jobs
            go back to their last checkpoints) or ``"repair"``. A machine has all of its GPUs until
            its first row; rows at 0 or before say what it has at the start. Any order of the rows
            gives the same cluster. :func:`themis.read_capacity` reads such a frame.

        Raises
        ------
        ClusterError
            A column is missing or unknown, a machine unknown, a value out of range, or two rows
            tell of a machine at one instant.
        """
        return Cluster(self.machines, changes)

    @property
    def gpus(self) -> int:
        """GPUs of all machines (R_C of the paper, where the capacity does not change)."""
        return int(self.machines.get_column("gpus").sum())

    @property
    def racks(self) -> int:
        """Number of racks."""
        return self.machines.get_column("rack").n_unique()

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """The GPU types, in the order of their first machines."""
        return tuple(self.machines.get_column("gpu_type").unique(maintain_order=True).to_list())

    @property
    def limits_host(self) -> bool:
        """Whether some machine has only so many CPU cores, or so much memory."""
        return any(self.machines.get_column(name).count() for name in OF_MACHINE)

    def describe(self) -> dict[str, object]:
        """Short form and counts, JSON-able."""
        return {
            "spec": str(self),
            "gpus": self.gpus,
            "machines": self.machines.height,
            "racks": self.racks,
            "gpu_types": list(self.gpu_types),
            **self._host_totals(),
            **({"capacity_changes": self.capacity.height} if self.capacity.height else {}),
        }

    def _host_totals(self) -> dict[str, object]:
        """Return what those machines have together that are limited."""
        columns = {name: self.machines.get_column(name).drop_nulls() for name in OF_MACHINE}
        return {name: math.fsum(column) for name, column in columns.items() if column.len()}

    def __str__(self) -> str:
        racks: dict[str, list[MachineKind]] = {}
        rows = self.machines.select("rack", "gpus", "gpu_type", "slot_gpus").iter_rows()
        for rack, gpus, gpu_type, slot in rows:
            racks.setdefault(rack, []).append(MachineKind(gpus, gpu_type, slot))
        return spec_text(list(racks.values()), plain_type=UNTYPED)

    def __repr__(self) -> str:
        return f"Cluster({self}: {self.gpus} GPUs, {self.machines.height} machines)"

    def _repr_html_(self) -> str:
        kinds = self.machines.group_by("gpu_type", "gpus", "slot_gpus").agg(
            pl.len().alias("machines"), pl.col("rack").n_unique().alias("racks")
        )
        rows = kinds.sort("gpu_type", "gpus", "slot_gpus").rows()
        columns = ["GPU type", "GPUs a machine", "GPUs a slot", "machines", "racks"]
        return grid(f"Themis cluster: {self}, {self.gpus:,} GPUs", columns, rows)

    @cached_property
    def core(self) -> _core.Cluster:
        """The cluster as the compiled core takes it."""
        from themis import _core  # noqa: PLC0415 - loaded when something runs

        racks = self.machines.get_column("rack")
        numbers = {rack: at for at, rack in enumerate(racks.unique(maintain_order=True))}
        types = {name: at for at, name in enumerate(self.gpu_types)}
        return _core.Cluster(
            np.array([numbers[rack] for rack in racks], dtype=np.uint32),
            self.machines.get_column("gpus").to_numpy().astype(np.uint32),
            self.machines.get_column("slot_gpus").to_numpy().astype(np.uint32),
            np.array([types[name] for name in self.machines["gpu_type"]], dtype=np.uint32),
            capacity_columns(self.capacity, self.machines) if self.capacity.height else None,
            there(self.machines) if self.limits_host else None,
        )


def _rows(key: str, rows: object) -> pl.DataFrame:
    """Return tables of a TOML file as a frame."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ClusterError(f"{key}: expected tables")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    data = {name: [row.get(name) for row in rows] for name in columns}
    # Whole numbers of seconds are numbers of seconds.
    kinds = {"at_s": pl.Float64()} if "at_s" in data else {}
    try:
        return pl.DataFrame(data, schema_overrides=kinds, strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise ClusterError(f"{key}: {error}") from error
