"""How jobs ended: the words of all traces in the words of `schema.STATUSES`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from themis.checking.problems import Problem
from themis.traces.gathered import kept_problem

__all__ = ["endings", "unknown_words"]

_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "completed": ("pass", "passed", "completed", "complete", "terminated", "succeeded", "success"),
    "cancelled": ("killed", "cancelled", "canceled", "revoked", "stopped"),
    "failed": (
        *("failed", "failure", "error", "timeout", "node_fail", "boot_fail", "deadline"),
        *("out_of_memory", "launch_failed", "reconfig_fail"),
    ),
}
"""Words of traces by ending; those of jobs that had not ended (running, pending) have none."""

_KNOWN = {word: ending for ending, words in _ENDINGS.items() for word in words}
_UNKNOWN = Problem("unknown status", action="kept as 'unknown'")


def endings(words: pl.Series) -> pl.Series:
    """Status words as `schema.STATUSES`; ``"unknown"`` for words that tell no ending.

    Only the first word counts (``CANCELLED by 1000``), in any case, without the ``+`` of a column
    that was cut (``CANCELLED+``).
    """
    found: dict[str | None, str | None] = {None: None}
    for word in words.drop_nulls().unique():
        found[word] = _KNOWN.get(re.split(r"[\s+]", word.lower(), maxsplit=1)[0], "unknown")
    return words.replace_strict(found, return_dtype=pl.String)


def unknown_words(rows: pl.DataFrame, column: str) -> Problem:
    """Count the jobs whose status tells no ending; `rows` has its text as ``word``."""
    return kept_problem(
        rows, pl.col("status") == "unknown", replace(_UNKNOWN, column=column), "word"
    )
