"""Presets: named sets of settings, laid under those that a user gives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from themis.nearest import nearest

__all__ = ["PRESETS", "checked_preset", "preset_values"]

PRESETS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "nsdi20": MappingProxyType(
            {
                "fairness_knob": 0.8,
                "payment": "none",
                "outside_option": "unbounded",
                "filter_key": "holdings",
                "leftover": "random",
                "t_id": "paper",
                "lease_s": 600.0,
                "lease_mode": "rolling",
                "restart_s": 35.0,
                "checkpoint_s": 8.0,
                "phase_cap": "doubling",
            }
        )
    }
)
"""Setting name to value by preset.

``nsdi20`` is the paper to the letter (Mahajan et al., NSDI 2020, sections 3, 4 and 8.1): an app
without GPUs has an unbounded rho, both where apps are ordered and in bids; every GPU has its own
lease; times of a switch are those of the testbed. Nobody is charged: the paper does not say how a
share of an indivisible bundle is taken, and the simulator behind its figures takes none.
"""


def preset_values(name: object) -> Mapping[str, object]:
    """Return the settings of a preset; none for a name that :func:`checked_preset` refuses."""
    return PRESETS.get(name, {}) if isinstance(name, str) else {}


def checked_preset(name: str | None) -> str | None:
    """Return the name of a preset, or None for none.

    Raises
    ------
    ValueError
        There is no such preset; the message names the nearest one.
    """
    if name is None or name in PRESETS:
        return name
    raise ValueError(
        f"unknown preset{nearest(name, PRESETS)}: expected one of {', '.join(PRESETS)}"
    )
