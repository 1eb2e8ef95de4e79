"""Microsoft Philly: the official JSON job log, or the CSV that the Pollux authors derived from it.

Options
-------
timezone
    IANA zone of the time stamps. None, the default, takes them as they stand, which keeps the
    numbers that papers publish; ``"America/Los_Angeles"`` undoes the change to winter time that
    lies inside the trace.
duration
    Of the JSON log: ``"attempts"``, the default, adds up the attempts that have both a start and
    an end; ``"span"`` takes the last end minus the first start, as the notebook published with
    the trace does, and so counts the time between attempts, when no GPU was held, as work.
"""

from __future__ import annotations

from themis.errors import TraceError
from themis.traces.philly_json import read_job_log
from themis.traces.philly_pollux import COLUMNS, read_pollux
from themis.traces.reader import Input, Reader, choice
from themis.traces.stamps import Clock
from themis.workload.workload import TraceSource, Workload

__all__ = ["READER"]

_JSON_KEYS = ("jobid", "attempts", "submitted_time")
_CSV_NAMES = ("timestamp", "num_gpus")


def recognise(source: Input) -> str | None:
    """By the keys of the JSON entries or the columns of the CSV."""
    if source.kind == "json":
        found = [key for key in _JSON_KEYS if f'"{key}"' in source.file.head]
        return f"JSON with {', '.join(found)}" if len(found) > 1 else None
    if source.kind == "csv" and set(_CSV_NAMES) <= set(source.columns):
        return f"CSV with {', '.join(name for name in COLUMNS if name in source.columns)}"
    return None


def read(
    source: Input, about: TraceSource, *, timezone: object = None, duration: object = "attempts"
) -> Workload:
    """Read either form; the module says what the options mean."""
    duration = choice(source.name, "duration", duration, ("attempts", "span"))
    clock = Clock(timezone, source.name)
    if source.kind == "csv":
        return read_pollux(source, about, clock)
    if source.kind != "json":
        raise TraceError(f"{source.name}: found {source.describe()}: expected {READER.expects}")
    return read_job_log(source, about, clock, span=duration == "span")


READER = Reader(
    name="philly",
    expects=f"a JSON array of jobs with {', '.join(_JSON_KEYS)}, or CSV with {', '.join(COLUMNS)}",
    recognise=recognise,
    read=read,
    options=("timezone", "duration"),
)
