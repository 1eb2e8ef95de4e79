"""Time stamps of a trace into microseconds.

A stamp is ``YYYY-MM-DD HH:MM:SS``, with ``T`` for the blank, a fraction of a second or a zone
offset (``Z``, ``+08:00``) if the source has them. Stamps without an offset are naive local time:
they are compared as they stand, which keeps the numbers that papers publish, unless a `timezone`
is given; then daylight-saving jumps are undone. An hour that the clock shows twice is taken as its
first pass, unless that would end something before its start; an hour that it skips is taken as if
the clock had been moved an hour later. Both are counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.errors import TraceError
from themis.traces.rows import Floats, Mask, RowChecks, is_missing

__all__ = ["Clock", "Stamps", "iso", "since_first"]

Micros = npt.NDArray[np.int64]

_PLAIN = "%Y-%m-%d %H:%M:%S"
_FRACTION = "%Y-%m-%d %H:%M:%S%.f"
_OFFSET = "%Y-%m-%d %H:%M:%S%.f%z"
_PLAIN_LENGTH = 19
_OFFSET_TEXT = re.compile(r"([+-])(\d\d):?([0-5]\d)")
_MOST_OFFSETS = 200
_PASSES: tuple[Literal["earliest"], Literal["latest"]] = ("earliest", "latest")
_FIRST_US = int(datetime(1, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
_LAST_US = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000_000


@dataclass(frozen=True)
class Stamps:
    """Parsed stamps.

    Parameters
    ----------
    micros
        Int64 microseconds since 1970 (UTC where a zone is known, else naive); 0 where absent.
    absent
        Rows without a stamp, or with one that cannot be read.
    unreadable
        Rows whose stamp cannot be read.
    latest
        As `micros`, the second pass of an hour that the clock shows twice.
    """

    micros: Micros
    absent: Mask
    unreadable: Mask
    latest: Micros


@dataclass
class Clock:
    """Reads stamps in one time zone and counts what it had to decide.

    Parameters
    ----------
    timezone
        IANA name of the zone of stamps without an offset, or None for naive local time.
    name
        The file, for messages.

    Raises
    ------
    TraceError
        The zone is unknown.
    """

    timezone: object
    name: str
    naive: int = 0
    offset: int = 0
    ambiguous: int = 0
    skipped: int = 0

    def __post_init__(self) -> None:
        if self.timezone is None:
            return
        try:
            probe = pl.Series([datetime(2000, 1, 1)])  # noqa: DTZ001 - naive on purpose
            probe.dt.replace_time_zone(str(self.timezone) or "none")
        except pl.exceptions.PolarsError:
            raise TraceError(
                f"{self.name}: option timezone is {self.timezone!r}: expected an IANA name such as "
                "'America/Los_Angeles'"
            ) from None

    @property
    def zoned(self) -> bool:
        """Whether the microseconds read are UTC."""
        return self.timezone is not None or self.offset > 0

    def read(self, checks: RowChecks, column: str) -> Stamps:
        """Read required stamps; rows without a readable one are rejected."""
        stamps = self.parse(checks.frame.get_column(column))
        checks.reject(stamps.absent & ~stamps.unreadable, "missing value", column)
        checks.reject(stamps.unreadable, "unreadable time", column)
        return stamps

    def between(self, checks: RowChecks, start: str, end: str) -> tuple[Floats, Micros]:
        """Seconds from a required start to a required end, and that end in microseconds.

        Rows that end before their start are rejected.
        """
        began, ended = self.read(checks, start), self.read(checks, end)
        finish = np.where(ended.micros < began.micros, ended.latest, ended.micros)
        checks.reject(finish < began.micros, "end before start", end)
        seconds: Floats = (finish - began.micros) / 1e6
        return seconds, finish

    def parse(self, series: pl.Series) -> Stamps:
        """Stamps of any strings."""
        text = series.cast(pl.String)
        missing = is_missing(text)
        plain, zoned = _parsed(text, missing)
        first, latest = (
            pl.select(pl.coalesce(zoned, local)).to_series() for local in self._localise(plain)
        )
        self.offset += zoned.len() - zoned.null_count()
        in_calendar = first.is_between(_FIRST_US, _LAST_US)
        first = pl.select(pl.when(in_calendar).then(first)).to_series()
        absent = first.is_null()
        self.naive += plain.drop_nulls().len()
        return Stamps(
            micros=first.fill_null(0).to_numpy(),
            absent=absent.to_numpy(),
            unreadable=(absent & ~missing).to_numpy(),
            latest=latest.fill_null(0).to_numpy(),
        )

    def notes(self) -> list[str]:
        """Say in words what was decided."""
        found = []
        if self.offset and self.naive and self.timezone is None:
            found.append(f"{self.naive} time stamps without a zone offset were taken as UTC")
        elif self.naive and self.timezone is None:
            found.append(
                "time stamps name no zone and are taken as they stand: an hour that a clock "
                "repeats or skips counts as shown (option timezone undoes it)"
            )
        if self.ambiguous:
            found.append(
                f"{self.ambiguous} time stamps lie in an hour that the clock of {self.timezone} "
                "shows twice: taken as the first pass, unless that would end before the start"
            )
        if self.skipped:
            found.append(
                f"{self.skipped} time stamps lie in an hour that the clock of {self.timezone} "
                "skips: taken an hour later"
            )
        return found

    def _localise(self, plain: pl.Series) -> tuple[pl.Series, pl.Series]:
        if self.timezone is None:
            micros = plain.cast(pl.Int64)
            return micros, micros.clone()
        zone = str(self.timezone)
        first, latest = (_utc(plain, zone, which) for which in _PASSES)
        skipped = (first.is_null() & plain.is_not_null()).arg_true()
        if skipped.len():
            self.skipped += skipped.len()
            later = _utc(plain.gather(skipped) + timedelta(hours=1), zone, "earliest")
            first, latest = first.scatter(skipped, later), latest.scatter(skipped, later)
        self.ambiguous += int((first != latest).sum())
        return first, latest


def _parsed(text: pl.Series, missing: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Local time of the stamps without an offset, and microseconds since 1970 of the others."""
    head = text.str.head(_PLAIN_LENGTH)
    simple = head.str.to_datetime(_PLAIN, strict=False, time_unit="us", cache=False)
    rest = text.str.slice(_PLAIN_LENGTH)
    plain = pl.select(pl.when(rest == "").then(simple)).to_series()
    zoned = simple.cast(pl.Int64) - _offsets(rest)
    odd = (plain.is_null() & zoned.is_null() & ~missing).arg_true()
    if odd.len():
        other = text.gather(odd).str.replace(r"^(\S{10})[Tt]", "$1 ").str.replace("[Zz]$", "+00:00")
        local = other.str.to_datetime(_FRACTION, strict=False, time_unit="us")
        known = other.str.to_datetime(_OFFSET, strict=False, time_unit="us")
        plain, zoned = plain.scatter(odd, local), zoned.scatter(odd, known.cast(pl.Int64))
    return plain, zoned


def _offsets(rest: pl.Series) -> pl.Series:
    """Microseconds of ``+08:00``, ``-0730`` or ``Z``; null for anything else."""
    kinds = rest.drop_nulls().unique()
    if kinds.len() > _MOST_OFFSETS or kinds.to_list() == [""]:  # fractions of seconds, or nothing
        return pl.repeat(None, rest.len(), dtype=pl.Int64, eager=True)
    micros = {"Z": 0, "z": 0}
    for kind in kinds:
        if found := _OFFSET_TEXT.fullmatch(kind):
            seconds = int(found[2]) * 3600 + int(found[3]) * 60
            micros[kind] = seconds * (-1_000_000 if found[1] == "-" else 1_000_000)
    return rest.replace_strict(micros, default=None, return_dtype=pl.Int64)


def _utc(plain: pl.Series, zone: str, which: Literal["earliest", "latest"]) -> pl.Series:
    """Microseconds since 1970 of naive local time; null in an hour that the clock skips."""
    local = plain.dt.replace_time_zone(zone, ambiguous=which, non_existent="null")
    return local.cast(pl.Int64)


def since_first(rows: pl.DataFrame, column: str, clock: Clock) -> tuple[pl.DataFrame, str]:
    """`rows` with `column` (microseconds) as float seconds since its earliest, and that as ISO.

    The new column has the name of the old one with ``_s`` for ``_us``.
    """
    origin = int(rows.get_column(column).to_numpy().min())
    seconds = ((pl.col(column) - origin) / 1e6).alias(column.removesuffix("us") + "s")
    return rows.with_columns(seconds), iso(origin, zoned=clock.zoned)


def iso(micros: int, *, zoned: bool) -> str:
    """ISO text of a stamp, with ``+00:00`` when `zoned`."""
    moment = datetime.fromtimestamp(micros // 1_000_000, tz=UTC)
    return (moment if zoned else moment.replace(tzinfo=None)).isoformat()
