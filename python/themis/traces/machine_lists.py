"""Clusters from the machine lists that traces come with.

A machine list is a table with one machine a row; a format says which columns hold its name, GPUs
and type. Machines without a GPU are left out: nothing can run there. Machines are ordered by rack,
type, GPUs and name, whatever the order of the rows, so that equal ones stand together.

=============  ===================================================================================
format         file
=============  ===================================================================================
toml           as :meth:`themis.Cluster.from_toml` takes it
native         CSV or Parquet with machine, gpus, and any of rack, gpu_type, slot_gpus, cpu_cores,
               memory_gib
philly         ``cluster_machine_list``: the memory of a GPU stands for its type
pai            ``pai_machine_spec.csv`` of Alibaba PAI, with or without a header
openb          ``openb_node_list_*.csv`` of Alibaba 2023
alibaba-spot   ``node_info_df.csv`` of Alibaba 2026
tiresias       cluster specs of the Tiresias simulator: a switch is a rack
helios         ``cluster_gpu_number.csv``: machines of 8 GPUs, as many as on its largest day
=============  ===================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike

import polars as pl

from themis.arguments import path as path_argument
from themis.cluster.cluster import UNTYPED, Cluster
from themis.errors import ClusterError, TraceError
from themis.nearest import nearest
from themis.schema.host import OF_MACHINE
from themis.traces.csvtext import CsvHeader
from themis.traces.gathered import Gathered
from themis.traces.helios_capacity import is_capacity, machines_of_total
from themis.traces.host import HOST, Amounts, amounts
from themis.traces.native_tables import table_rows
from themis.traces.philly_machines import compared_with_log
from themis.traces.reader import Input, choice, text_rows

__all__ = ["MACHINE_FORMATS", "read_cluster"]

_PAI = CsvHeader(("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"), 0, 5)
_PAI_LINE = re.compile(r"[0-9a-z_.-]+,[A-Za-z0-9-]+(,\d+(\.\d+)?){3}")
_COLUMNS = ("machine", "rack", "gpu_type", "gpus", "slot_gpus")


@dataclass(frozen=True)
class _Columns:
    """Which columns of a CSV file say what of a machine."""

    machine: str
    gpus: str
    gpu_type: str
    host: Amounts = field(default_factory=dict)

    def recognise(self, source: Input) -> bool:
        return {self.machine, self.gpus, self.gpu_type} <= set(source.columns)

    def rows(self, source: Input, *, host: bool) -> pl.DataFrame:
        used = {"machine": self.machine, "gpus": self.gpus, "gpu_type": self.gpu_type}
        return _machines(source, used, None, self.host if host else {})


def read_cluster(
    path: str | PathLike[str],
    format: str | None = None,  # noqa: A002 - as in read_trace
    *,
    log: str | PathLike[str] | None = None,
    more: str = "stop",
    host: str = HOST[0],
) -> Cluster:
    """Return the cluster in a file.

    Parameters
    ----------
    path
        A cluster file (TOML), or the machine list of a trace, plain or packed.
    format
        One of :data:`MACHINE_FORMATS`; None recognises it by the content.
    log
        Philly's job log, to compare the machine list with: the list gives many machines fewer
        GPUs than their jobs used.
    more
        What to do with machines that the log shows with more GPUs than the list: ``"stop"``
        (an error that names the first), ``"raise"`` them to what was seen, or ``"drop"`` them.
        Machines that only the log has are left out in any case.
    host
        Whether the CPU cores and memory that the list of a trace has limit its machines:
        ``"keep"``, or ``"leave_out"``. Those of a TOML or native file always do.

    Raises
    ------
    ClusterError
        The file cannot be read, is of no known format, or has a row that is no machine; the
        message names file, line, column and value. Or no machine has a GPU, list and log disagree,
        or `host` is ``"keep"`` and the list has neither cores nor memory.
    """
    file = path_argument("machine list: path", path, ClusterError)
    if format is not None and format not in tuple(MACHINE_FORMATS):
        raise ClusterError(
            f"{path}: format {format!r} is unknown{nearest(str(format), MACHINE_FORMATS)}: "
            f"expected one of {', '.join(MACHINE_FORMATS)}"
        )
    if format == "toml" or (format is None and file.suffix == ".toml"):
        return Cluster.from_toml(path)
    source = Input(file)
    try:
        keeps = choice(source.name, "host", host, HOST) == "keep"
        machines = _READ[format or _recognise(source)](source, host=keeps)
        if log is not None:
            machines = compared_with_log(
                machines, source.name, Input(path_argument("machine list: log", log)), more
            )
    except TraceError as error:
        raise ClusterError(str(error)) from None
    if machines.is_empty():
        raise ClusterError(f"{path}: no machine with a GPU")
    if keeps and not set(OF_MACHINE) & set(machines.columns):
        raise ClusterError(
            f"{path}: host is 'keep': found neither CPU cores nor memory in the list"
        )
    try:
        cluster = Cluster.from_frame(machines)
    except ClusterError as error:
        raise ClusterError(f"{path}: {error}") from None
    return Cluster(cluster.machines.sort("rack", "gpu_type", "gpus", "machine"))


def _recognise(source: Input) -> str:
    for name, recognise in _RECOGNISE.items():
        if source.kind in {"csv", "parquet"} and recognise(source):
            return name
    raise ClusterError(
        f"{source.name}: no cluster and no machine list: found {source.describe()}; expected one "
        f"of {', '.join(MACHINE_FORMATS)}"
    )


def _machines(
    source: Input, used: Mapping[str, str], header: CsvHeader | None, host: Amounts
) -> pl.DataFrame:
    """Read machine, gpus and what else `used` and `host` name; every row must be a machine."""
    amounts_of = {name: column for name, (column, _) in host.items()}
    for column in (*used.values(), *amounts_of.values()):
        if header is None and column not in source.columns:
            raise ClusterError(
                f"{source.name}: column {column!r} is missing: found {source.describe()}"
            )
    blocks = (
        table_rows(source, Gathered(source.name), {**used, **amounts_of})
        if header is None
        else text_rows(source, header)
    )
    frames = []
    for checks in blocks:
        columns: dict[str, pl.Series] = {
            name: checks.text(column, required=name == "machine")
            for name, column in used.items()
            if name not in {"gpus", "slot_gpus"}
        }
        for name in {"gpus", "slot_gpus"} & set(used):
            found = checks.gpus(used[name], required=name == "gpus")
            columns[name] = pl.Series(found).fill_nan(None).cast(pl.Int64, strict=False)
        for name, (column, unit) in host.items():
            columns[name] = pl.Series(amounts(checks, column, unit)).fill_nan(None)
        checks.refuse_any(source.name)
        good = pl.Series(checks.good)
        frames.append(pl.DataFrame(columns).filter(good))
    if not frames:
        raise ClusterError(f"{source.name}: no rows after the header: expected machines")
    return pl.concat(frames).filter(pl.col("gpus") > 0)


def _native(source: Input, *, host: bool) -> pl.DataFrame:  # noqa: ARG001 - its own columns count
    needed = {"machine", "gpus"}
    used = [name for name in _COLUMNS if name in needed or name in source.columns]
    own = {name: (name, 1.0) for name in OF_MACHINE if name in source.columns}
    return _machines(source, dict(zip(used, used, strict=True)), None, own)


def _helios(source: Input, *, host: bool) -> pl.DataFrame:  # noqa: ARG001 - it has none
    return machines_of_total(source)


def _pai(source: Input, *, host: bool) -> pl.DataFrame:
    headed = source.columns == _PAI.names
    used = {"machine": "machine", "gpus": "cap_gpu", "gpu_type": "gpu_type"}
    own = {"cpu_cores": ("cap_cpu", 1.0), "memory_gib": ("cap_mem", 1.0)} if host else {}
    return _machines(source, used, source.header if headed else _PAI, own)


def _tiresias(source: Input, *, host: bool) -> pl.DataFrame:
    names = ("num_switch", "num_node_p_switch", "num_gpu_p_node")
    own = ("num_cpu_p_node", "mem_p_node") if host else ()
    rows: list[tuple[float, ...]] = []
    for checks in text_rows(source, source.header):
        counts = [checks.gpus(name) for name in names]
        counts += [amounts(checks, name, 1.0) for name in own]
        checks.refuse_any(source.name)
        rows.extend(row for row in zip(*counts, strict=True) if checks.good.all())
    if len(rows) != 1:
        raise ClusterError(f"{source.name}: {len(rows)} rows: expected one cluster")
    switches, nodes, gpus = (int(count) for count in rows[0][:3])
    try:
        cluster = Cluster.uniform(
            machines=switches * nodes, racks=switches, gpus_per_machine=gpus, gpu_type=UNTYPED
        )
    except ClusterError as error:
        raise ClusterError(f"{source.name}: {error}") from None
    limits = zip(OF_MACHINE, rows[0][3:], strict=False)
    return cluster.machines.with_columns(pl.lit(has).alias(name) for name, has in limits)


_TABLES = {
    "philly": _Columns("machineId", "number of GPUs", "single GPU mem"),
    "openb": _Columns(
        *("sn", "gpu", "model"),
        {"cpu_cores": ("cpu_milli", 1e-3), "memory_gib": ("memory_mib", 1 / 1024)},
    ),
    "alibaba-spot": _Columns(
        *("node_name", "gpu_capacity_num", "gpu_model"), {"cpu_cores": ("cpu_num", 1.0)}
    ),
}

_READ: Mapping[str, Callable[..., pl.DataFrame]] = {
    **{name: table.rows for name, table in _TABLES.items()},
    "tiresias": _tiresias,
    "helios": _helios,
    "pai": _pai,
    "native": _native,
}

_RECOGNISE: Mapping[str, Callable[[Input], bool]] = {
    **{name: table.recognise for name, table in _TABLES.items()},
    "tiresias": lambda source: {"num_switch", "num_gpu_p_node"} <= set(source.columns),
    "helios": is_capacity,
    "pai": lambda source: (
        source.columns == _PAI.names
        or (source.kind == "csv" and bool(_PAI_LINE.fullmatch(source.first_line.strip())))
    ),
    "native": lambda source: {"machine", "gpus"} <= set(source.columns),
}

MACHINE_FORMATS = ("toml", *_RECOGNISE)
"""Formats that :func:`read_cluster` knows, in the order in which they are tried."""
