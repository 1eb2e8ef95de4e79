"""The description of a trace format that is one table with one job a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from themis.checking.problems import Problem
from themis.traces.csvtext import CsvHeader
from themis.traces.host import Amounts
from themis.traces.reader import Input
from themis.traces.rows import Floats, RowChecks

__all__ = ["Duration", "Table"]

Duration = Callable[[RowChecks, Floats], Floats]


@dataclass(frozen=True, kw_only=True)
class Table:
    """What the columns of a format mean.

    Parameters
    ----------
    name, title
        Name of the format, and what it is.
    known_by
        Columns that no other format has together.
    submit
        Submission; everything is submitted at 0 if there is none.
    gpus
        GPUs of the job, or how many devices it takes `gpus_each` of.
    gpus_each, each_unit
        Share of each device (a column), and the GPUs that one unit of it means.
    gpus_asked
        GPUs as asked for, fractions included, where `gpus` are the whole ones that they need.
    job_id
        Column of ids; without one, jobs are numbered after sorting by their cells.
    duration
        Column of durations, or a function of the rows and their GPUs that gives seconds.
    start, end
        Columns whose difference is the duration, where there is no `duration`.
    stated
        A column that claims to be that difference: compared with it, not used.
    app, user, tenant, status, profile, gpu_types
        Columns of text.
    also
        Further columns that must be there, because a function of the rows reads them.
    unit
        Unit of times that are numbers; None where they are time stamps.
    host
        CPU cores and memory of the job, read if option ``host`` is ``"keep"``.
    host_each
        Whether they are those of each of the devices that `gpus` counts.
    idle
        Further columns of the format, which are not used.
    header
        Gives the names of a file's columns, where its first line does not.
    prepare
        Derives columns of the description from those of the file, and rejects rows that are none.
    assumed
        Counts the jobs whose duration rests on an assumption.
    attempts
        Whether rows of one id may be attempts of one job (see :mod:`themis.traces.attempts`).
    """

    name: str
    title: str
    known_by: tuple[str, ...]
    gpus: str
    submit: str | None = None
    gpus_each: str | None = None
    each_unit: float = 1.0
    gpus_asked: str | None = None
    job_id: str | None = None
    duration: str | Duration | None = None
    start: str | None = None
    end: str | None = None
    stated: str | None = None
    app: str | None = None
    user: str | None = None
    tenant: str | None = None
    status: str | None = None
    profile: str | None = None
    gpu_types: str | None = None
    also: tuple[str, ...] = ()
    unit: str | None = None
    host: Amounts = field(default_factory=dict)
    host_each: bool = False
    idle: tuple[str, ...] = ()
    header: Callable[[Input], CsvHeader] | None = None
    prepare: Callable[[RowChecks], None] | None = None
    assumed: Callable[[pl.DataFrame], Problem] | None = None
    attempts: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that a file must have."""
        times = (self.start, self.end) if self.duration is None else (self.duration,)
        named = (self.job_id, self.submit, self.gpus, self.gpus_each, *times, *self.also)
        return tuple(name for name in named if isinstance(name, str))

    @property
    def texts(self) -> dict[str, str]:
        """Columns of text, by what they mean."""
        found = {
            "app_id": self.app,
            "user": self.user,
            "tenant": self.tenant,
            "word": self.status,
            "profile": self.profile,
            "gpu_types": self.gpu_types,
        }
        return {meaning: column for meaning, column in found.items() if column is not None}

    @property
    def options(self) -> tuple[str, ...]:
        """Options that every table of this kind has."""
        clock = "timezone" if self.unit is None else "unit"
        fractions = () if self.gpus_each is None else ("fractions",)
        return (clock, *fractions, *(("host",) if self.host else ()))

    def recognise(self, source: Input) -> str | None:
        """Say which columns give the format away."""
        if source.kind != "csv" or not set(self.known_by) <= set(source.columns):
            return None
        return f"CSV with {', '.join(self.known_by)}"
