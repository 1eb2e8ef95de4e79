"""Philly's official job log: a JSON array with one entry a job.

An entry has status, vc, jobid, attempts, submitted_time and user; an attempt has start_time,
end_time and detail (machines with their GPUs). Times may be missing: JSON null, ``""`` or the text
``"None"``. The GPUs of a job are those of its first attempt.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.checking.problems import Problem
from themis.checking.repairs import chosen
from themis.errors import TraceError
from themis.traces.endings import endings, unknown_words
from themis.traces.gathered import Gathered, kept_problem
from themis.traces.reader import Input, workload_from_rows
from themis.traces.rows import Floats, Mask, RowChecks
from themis.traces.same_ids import each_id_once
from themis.traces.source import undecodable
from themis.traces.stamps import Clock, since_first
from themis.workload.workload import TraceSource, Workload

__all__ = ["read_entries", "read_job_log"]

_DETAIL = pl.Struct({"ip": pl.String, "gpus": pl.List(pl.String)})
_ATTEMPT = pl.Struct({"start_time": pl.String, "end_time": pl.String, "detail": pl.List(_DETAIL)})
_TEXTS = ("jobid", "user", "vc", "status", "submitted_time")
_ENTRY = {**dict.fromkeys(_TEXTS, pl.String()), "attempts": pl.List(_ATTEMPT)}
_ODD_ATTEMPT = Problem(
    "attempt without both times", "attempts", action="kept: only the other attempts count"
)
# A lone value here would be read as a list of one, so that 8 would count as one GPU.
_NO_LIST = re.compile(rb'"(?:attempts|detail|gpus)"\s*:\s*[^\[n\s]')
_RUNNING = "still running at the snapshot"
_STRIPPED = pl.col(pl.String).str.strip_chars()
_CONTENT = ("submit_us", "job_id", "gang_size", "serial_time_s", "user", "tenant", "status")


def read_job_log(source: Input, about: TraceSource, clock: Clock, *, span: bool) -> Workload:
    """Read the official job log.

    Parameters
    ----------
    source, about
        The file, and what is known of it.
    clock
        Reader of the time stamps.
    span
        Whether a job's duration is the time from its first start to its last end; else it is the
        sum of its attempts.
    """
    frame, malformed = _entries(source)
    gathered = Gathered(source.name, "entry")
    checks = RowChecks(frame, np.arange(1, frame.height + 1))
    checks.reject(malformed, "malformed entry", values=frame.get_column("jobid"))
    job_id = checks.text("jobid", required=True)
    submit = clock.read(checks, "submitted_time")
    count = frame.get_column("attempts").list.len().fill_null(0).to_numpy()
    checks.reject(count == 0, "never scheduled", "attempts", job_id)
    gpus = _gpus(frame)
    checks.reject(np.isnan(gpus), "no GPUs recorded", "attempts", job_id)
    attempts = _attempts(frame, clock)
    if chosen(_RUNNING) == "to_the_end":
        attempts, still = attempts.to_the_snapshot(frame.height, submit.micros)
        checks.repair(still, _RUNNING, "attempts", job_id)
    duration_s = attempts.durations(checks, job_id, span=span)
    work = duration_s * gpus
    checks.work("attempts", work)
    word = checks.text("status")
    columns: dict[str, pl.Series | Floats] = {
        "job_id": job_id,
        "app_id": job_id,
        "submit_us": pl.Series(submit.micros),
        "gang_size": gpus,
        "serial_time_s": np.where(gpus > 0, work, duration_s),
        "user": checks.text("user"),
        "tenant": checks.text("vc"),
        "word": word,
        "status": endings(word),
        "ended": pl.Series(attempts.last_end(frame.height)),
        "odd": pl.Series(attempts.odd_entries(frame.height)),
    }
    gathered.add(checks, columns, work)
    rows = each_id_once(gathered, unique="job_id", content=_CONTENT)
    rows, origin = since_first(rows, "submit_us", clock)
    gathered.notes.extend(clock.notes())
    kept = [
        kept_problem(rows, pl.col("odd"), _ODD_ATTEMPT),
        unknown_words(rows, "status"),
    ]
    return workload_from_rows(rows, gathered, about.with_origin(origin), kept=kept)


def read_entries(source: Input) -> pl.DataFrame:
    """Entries of the log as columns, for what else they tell; malformed ones are empty."""
    if source.kind != "json":
        raise TraceError(f"{source.name}: found {source.describe()}: expected Philly's job log")
    return _entries(source)[0]


def _entries(source: Input) -> tuple[pl.DataFrame, Mask]:
    """Entries of the array as columns, and which of them do not have the shape of a job."""
    data = source.file.read_all()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(undecodable(source.name, data, error)) from None
    if text.lstrip()[:1] == "[" and not _NO_LIST.search(data):
        try:
            frame = pl.read_json(data, schema=_ENTRY)
        except pl.exceptions.PolarsError:
            pass  # malformed JSON or a malformed entry: the slow path tells which and where
        else:
            return _some(source, frame), np.zeros(frame.height, dtype=np.bool_)
    try:
        entries = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(
            f"{source.name}, line {error.lineno}, column {error.colno}: malformed JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise TraceError(f"{source.name}: malformed JSON: nested too deep") from None
    if not isinstance(entries, list):
        raise TraceError(f"{source.name}: a JSON {type(entries).__name__}: expected an array")
    plain = [_plain_entry(entry) for entry in entries]
    malformed = np.array([entry is None for entry in plain], dtype=np.bool_)
    frame = pl.DataFrame([entry or {} for entry in plain], schema=_ENTRY)
    return _some(source, frame), malformed


def _some(source: Input, frame: pl.DataFrame) -> pl.DataFrame:
    if frame.is_empty():
        raise TraceError(f"{source.name}: an empty JSON array: expected at least one job")
    return frame.with_columns(_STRIPPED)


def _plain_entry(entry: object) -> dict[str, object] | None:
    """Reduce an entry to the keys of a job; None if a value has the wrong shape."""
    if not isinstance(entry, dict):
        return None
    plain: dict[str, object] = {}
    for key in _TEXTS:
        value = entry.get(key)
        if isinstance(value, dict | list):
            return None
        plain[key] = None if value is None else str(value)
    try:
        plain["attempts"] = [
            {
                "start_time": _text(attempt.get("start_time")),
                "end_time": _text(attempt.get("end_time")),
                "detail": [
                    {
                        "ip": _text(machine.get("ip")),
                        "gpus": [str(gpu) for gpu in _list(machine.get("gpus"))],
                    }
                    for machine in _list(attempt.get("detail"))
                ],
            }
            for attempt in _list(entry.get("attempts"))
        ]
    except (AttributeError, TypeError):
        return None
    return plain


def _list(value: object) -> list[Any]:
    """`value` as a list; nothing for null."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _gpus(frame: pl.DataFrame) -> Floats:
    """GPUs of each entry's first attempt; NaN where it names no machine."""
    detail = pl.col("attempts").list.first().struct.field("detail")
    found = frame.select(
        pl.when(detail.list.len() > 0).then(
            detail.list.eval(pl.element().struct.field("gpus").list.len()).list.sum()
        )
    ).to_series()
    return np.asarray(found.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


@dataclass(frozen=True)
class _Attempts:
    """All attempts of all entries, in order: times in microseconds, -1 where absent."""

    entry: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    has_start: Mask
    has_end: Mask
    unreadable: Mask

    @property
    def both(self) -> Mask:
        """Attempts with a start and an end."""
        return self.has_start & self.has_end

    def odd_entries(self, entries: int) -> Mask:
        """Entries with an attempt that lacks a time."""
        return self._any(~self.both, entries)

    def last_end(self, entries: int) -> npt.NDArray[np.int64]:
        """Latest end of each entry, microseconds; the least number where there is none."""
        last = np.full(entries, np.iinfo(np.int64).min, dtype=np.int64)
        np.maximum.at(last, self.entry[self.has_end], self.end[self.has_end])
        return last

    @property
    def _last(self) -> Mask:
        """Which attempts are the last of their entry."""
        last: Mask = np.append(self.entry[1:] != self.entry[:-1], [True])[: len(self.entry)]
        return last

    def to_the_snapshot(
        self, entries: int, submit: npt.NDArray[np.int64]
    ) -> tuple[_Attempts, Mask]:
        """Let last attempts without an end run to the last instant; say in which entries."""
        still = self._last & self.has_start & ~self.has_end & ~self.unreadable
        seen = (submit, self.start[self.has_start], self.end[self.has_end])
        snapshot = max(int(times.max(initial=0)) for times in seen)
        ended = replace(self, end=np.where(still, snapshot, self.end), has_end=self.has_end | still)
        return ended, self._any(still, entries)

    def durations(self, checks: RowChecks, job_id: pl.Series, *, span: bool) -> Floats:
        """Seconds that each entry ran; entries without a duration are rejected."""
        entries = checks.frame.height
        for bad, reason in (
            (self.unreadable, "unreadable time"),
            (self._last & ~self.has_end, _RUNNING),
            (self.both & (self.end < self.start), "end before start"),
        ):
            checks.reject(self._any(bad, entries), reason, "attempts", job_id)
        unknown = ~self._any(self.both, entries)
        checks.reject(unknown, "no attempt with both times", "attempts", job_id)
        return self._span(entries) if span else self._sum(entries)

    def _any(self, which: Mask, entries: int) -> Mask:
        found = np.zeros(entries, dtype=np.bool_)
        found[self.entry[which]] = True
        return found

    def _sum(self, entries: int) -> Floats:
        micros = np.zeros(entries, dtype=np.int64)
        chosen = self.both & (self.end >= self.start)
        np.add.at(micros, self.entry[chosen], (self.end - self.start)[chosen])
        seconds: Floats = micros / 1e6
        return seconds

    def _span(self, entries: int) -> Floats:
        high = np.iinfo(np.int64).max // 4
        first = np.full(entries, high, dtype=np.int64)
        last = np.full(entries, -high, dtype=np.int64)
        np.minimum.at(first, self.entry[self.has_start], self.start[self.has_start])
        np.maximum.at(last, self.entry[self.has_end], self.end[self.has_end])
        seconds: Floats = np.maximum(last - first, 0) / 1e6
        return seconds


def _attempts(frame: pl.DataFrame, clock: Clock) -> _Attempts:
    flat = (
        frame.select(pl.int_range(pl.len()).alias("entry"), "attempts")
        .filter(pl.col("attempts").list.len() > 0)
        .explode("attempts")
        .unnest("attempts")
        .sort("entry", maintain_order=True)
        .with_columns(_STRIPPED)
    )
    start = clock.parse(flat.get_column("start_time"))
    end = clock.parse(flat.get_column("end_time"))
    finish = np.where(end.micros < start.micros, end.latest, end.micros)
    return _Attempts(
        entry=flat.get_column("entry").cast(pl.Int64).to_numpy(),
        start=start.micros,
        end=finish,
        has_start=~start.absent,
        has_end=~end.absent,
        unreadable=start.unreadable | end.unreadable,
    )
