"""The old home of :func:`themis.comparing.compare`."""

from __future__ import annotations

from themis.comparing import compare

__all__ = ["compare"]
