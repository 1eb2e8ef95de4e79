"""Short forms of clusters: ``8x(6x4+3x2+2x1)``, ``2x(4x8:a100/4)``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

from themis.errors import ClusterError
from themis.nearest import nearest

__all__ = ["PRESETS", "UNTYPED", "MachineKind", "parse_spec", "spec_text"]

UNTYPED = "gpu"
"""GPU type of machines for which none was given."""

PRESETS: Mapping[str, str] = {
    "nsdi20-testbed": "8x2+12x4",
    "nsdi20-sim": "4x(4x8/2+7x4/2+4x1)",
    "nsdi20-authors": "8x(6x4/2+3x2+2x1)",
    "nsdi20-lying": "1x8+28x2",
}
"""Clusters of Mahajan et al., NSDI 2020, by name.

The testbed of 64 GPUs; the simulated 256 GPUs of its footnote (whose counts add up to 168: with 28
machines of 4 GPUs they give 256; the four racks are ours); those of the authors' simulator; the 64
GPUs of the experiment with lies.
"""

_MOST_MACHINES = 2**20
_FORM = (
    "expected racks x (machines x GPUs[:type][/GPUs a slot]), for example 4x(8x8) or 32x8, "
    f"or one of {', '.join(PRESETS)}"
)
_RACKS = re.compile(r"(\d{1,9})[xX]\(([^()]*)\)")
_MACHINES = re.compile(r"(\d{1,9})[xX](\d{1,9})(?::([A-Za-z0-9_.\-]+))?(?:/(\d{1,9}))?")


class MachineKind(NamedTuple):
    """What a machine has: GPUs, their type, and GPUs a slot."""

    gpus: int
    gpu_type: str
    slot_gpus: int


def parse_spec(text: str) -> list[list[MachineKind]]:
    """Return the machines of every rack that a short form, or a name in `PRESETS`, describes.

    Machines outside parentheses share one rack.

    Raises
    ------
    ClusterError
        The text does not follow the form, or a count is out of range.
    """
    compact = "".join(text.split())
    compact = PRESETS.get(compact, compact)
    racks: list[list[MachineKind]] = []
    loose: list[MachineKind] = []
    for term in _split_terms(compact, text):
        grouped = _RACKS.fullmatch(term)
        if grouped is None:
            loose.extend(_machines(term, text))
            _check_size(racks, loose, text)
            continue
        inside = [kind for part in grouped[2].split("+") for kind in _machines(part, text)]
        count = _positive(grouped[1], "racks", text)
        if count * len(inside) > _MOST_MACHINES:
            raise _error(text, f"more than {_MOST_MACHINES} machines")
        racks.extend(list(inside) for _ in range(count))
        _check_size(racks, loose, text)
    if loose:
        racks.append(loose)
    return racks


def spec_text(racks: list[list[MachineKind]], *, plain_type: str) -> str:
    """Return the shortest form that :func:`parse_spec` reads back; `plain_type` is left out."""

    def machines(rack: list[MachineKind]) -> str:
        return "+".join(
            f"{len(list(same))}x{kind.gpus}"
            + (f":{kind.gpu_type}" if kind.gpu_type != plain_type else "")
            + (f"/{kind.slot_gpus}" if kind.slot_gpus != kind.gpus else "")
            for kind, same in groupby(rack)
        )

    if len(racks) == 1:
        return machines(racks[0])
    return "+".join(f"{len(list(same))}x({inner})" for inner, same in groupby(map(machines, racks)))


def _split_terms(compact: str, text: str) -> list[str]:
    """Split at every ``+`` outside parentheses."""
    terms, depth, start = [], 0, 0
    for at, letter in enumerate(compact):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth not in (0, 1):
            raise _error(text, "parentheses do not match")
        if letter == "+" and depth == 0:
            terms.append(compact[start:at])
            start = at + 1
    if depth:
        raise _error(text, "parentheses do not match")
    return [*terms, compact[start:]]


def _machines(term: str, text: str) -> list[MachineKind]:
    found = _MACHINES.fullmatch(term)
    if found is None:
        raise _error(text, f"{term!r} can't be read" if term else "a part is empty")
    count = _positive(found[1], "machines", text)
    gpus = _positive(found[2], "GPUs of a machine", text)
    slot = gpus if found[4] is None else _positive(found[4], "GPUs of a slot", text)
    if slot > gpus:
        raise _error(text, f"{term!r} has slots larger than its machines")
    if count > _MOST_MACHINES:
        raise _error(text, f"more than {_MOST_MACHINES} machines")
    return [MachineKind(gpus, found[3] or "gpu", slot)] * count


def _positive(digits: str, what: str, text: str) -> int:
    if (count := int(digits)) < 1:
        raise _error(text, f"{what} is {count}, must be at least 1")
    return count


def _check_size(racks: list[list[MachineKind]], loose: list[MachineKind], text: str) -> None:
    if sum(map(len, racks)) + len(loose) > _MOST_MACHINES:
        raise _error(text, f"more than {_MOST_MACHINES} machines")


def _error(text: str, problem: str) -> ClusterError:
    hint = nearest(text.strip(), PRESETS)
    return ClusterError(f"cluster {text!r}: {problem}{hint}: {_FORM}")
