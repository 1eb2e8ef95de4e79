"""Synthetic workloads by name: the same for a seed on every machine.

Random numbers are the raw 64-bit words of PCG64, seeded by a `SeedSequence` with one stream a
purpose, turned into values by inverse distribution functions written here; times are whole
seconds. So no release of NumPy and no processor changes a workload.
"""

from __future__ import annotations

from themis.synthetic.specs import SPECS, Spec, generate, resolve_spec

__all__ = ["SPECS", "Spec", "generate", "resolve_spec"]
