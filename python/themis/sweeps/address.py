"""The address of a run: a digest of all that its result depends on."""

from __future__ import annotations

import hashlib
import json
from functools import cache

from themis import _core
from themis.scenario.scenario import Scenario
from themis.schema.result import RESULT_SCHEMA_VERSION
from themis.traces.inputs import files_of
from themis.traces.source import TraceFile, digest

__all__ = ["Addresses"]

_DIGITS = 32
"""Of 64 hexadecimal ones: 128 bits, so that no two runs of a sweep share an address."""


class Addresses:
    """Addresses of runs; each input file is read once."""

    def __init__(self) -> None:
        self._inputs = cache(_input_digest)

    def of(self, scenario: Scenario) -> str:
        """Return the address of the run of a scenario.

        It covers the scenario with every setting, the bytes of the files that it names, the
        package's version and the compiled engine.

        Raises
        ------
        TraceError
            A file cannot be read.
        """
        about = {
            "schema_version": RESULT_SCHEMA_VERSION,
            "themis_version": _core.__version__,
            "core": self._inputs(str(_core.__file__)),
            "scenario": scenario.model_dump(exclude={"sweep"}),
            "inputs": {path: self._inputs(path) for path in scenario.input_files()},
        }
        text = json.dumps(about, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _input_digest(path: str) -> str:
    """Return the digest of a file, a folder or a pattern: names and bytes."""
    files = dict.fromkeys(part.path for part in files_of(path))
    parts = [f"{file}\0{digest([TraceFile(file)])}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
