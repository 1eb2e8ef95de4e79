"""How many GPUs a Helios cluster had on each day: ``cluster_gpu_number.csv``.

One row a day: ``date``, one column a virtual cluster (tenant), ``total``. Virtual clusters come and
go as 0. Nodes have 8 GPUs, so a number of GPUs stands for the first so many machines of 8, and a
remainder for a machine that has fewer on that day.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl

from themis.errors import TraceError
from themis.traces.reader import Input, text_rows

__all__ = ["capacity_by_day", "is_capacity", "machines_of_total"]

_NODE_GPUS = 8
_TOTAL = "total"


def is_capacity(source: Input) -> bool:
    """Whether the columns are a date, tenants and a total."""
    return source.columns[:1] == ("date",) and _TOTAL in source.columns


def capacity_by_day(source: Input, *, tenant: str | None, origin: str | None) -> pl.DataFrame:
    """Machine, at_s (to midnight of the day) and gpus, as :func:`themis.read_capacity` says."""
    days = _days(source, tenant)
    midnight = datetime.min.time()
    start = _moment(source.name, origin) if origin else datetime.combine(days[0][0], midnight)
    most = max(gpus for _, gpus in days)
    rows: list[tuple[str, float, int]] = []
    before: dict[str, int | None] = dict.fromkeys(name for name, _ in _machines(most))
    for day, gpus in days:
        now = dict(_machines(gpus))
        at_s = (datetime.combine(day, datetime.min.time()) - start).total_seconds()
        rows.extend(
            (name, at_s, now.get(name, 0)) for name in before if now.get(name, 0) != before[name]
        )
        before = {name: now.get(name, 0) for name in before}
    schema = {"machine": pl.String, "at_s": pl.Float64, "gpus": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("at_s", "machine")


def machines_of_total(source: Input) -> pl.DataFrame:
    """Machines (machine, gpus) of the day on which the cluster was largest."""
    most = max(gpus for _, gpus in _days(source, None))
    return pl.DataFrame(
        _machines(most), schema={"machine": pl.String, "gpus": pl.Int64}, orient="row"
    )


def _machines(gpus: int) -> list[tuple[str, int]]:
    """Names and GPUs of the machines that make up so many GPUs."""
    full, rest = divmod(gpus, _NODE_GPUS)
    sizes = [_NODE_GPUS] * full + [rest] * (rest > 0)
    return [(f"node-{number:04}", size) for number, size in enumerate(sizes)]


def _days(source: Input, tenant: str | None) -> list[tuple[date, int]]:
    """Days and their GPUs, in order."""
    column = _TOTAL if tenant is None else tenant
    if not is_capacity(source) or column not in source.columns[1:]:
        raise TraceError(
            f"{source.name}: no column {column!r} of GPUs by day: found {source.describe()}"
        )
    days: dict[date, int] = {}
    for checks in text_rows(source, source.header):
        text = checks.text("date", required=True)
        dates = text.str.to_date("%Y-%m-%d", strict=False)
        checks.reject(dates.is_null().to_numpy(), "unreadable time", "date")
        gpus = checks.gpus(column)
        again = (dates.is_duplicated() | dates.is_in(list(days))).fill_null(value=False)
        checks.reject(again.to_numpy(), "repeated row", "date")
        checks.refuse_any(source.name)
        good = checks.good
        days.update(zip(dates.filter(pl.Series(good)), map(int, gpus[good]), strict=True))
    if not days:
        raise TraceError(f"{source.name}: no rows after the header: expected a row a day")
    return sorted(days.items())


def _moment(name: str, origin: str) -> datetime:
    """Read the local time of an origin, as it stands in the trace."""
    try:
        found = datetime.fromisoformat(origin)
    except ValueError:
        raise TraceError(f"{name}: origin is {origin!r}: expected an ISO time") from None
    if found.tzinfo is not None:
        found = found.astimezone(UTC)
    return found.replace(tzinfo=None)
