"""Random choices among apps that depend on nothing but the seed and the app's own id.

Whether an app is kept, or which profile it gets, is the same whatever else the workload holds: so
sampling and other selections may change places, and a larger sample contains a smaller one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.arguments import real, whole
from themis.errors import TraceError

__all__ = ["SAMPLED_BY", "draws", "sampled"]

SAMPLED_BY = ("app", "user", "tenant")
"""What may be kept or left out as one."""


def draws(seed: int, purpose: str, ids: Sequence[str | None]) -> npt.NDArray[np.float64]:
    """Return a uniform number in [0, 1) for each id; equal ids have equal numbers.

    It is the first 53 bits of the BLAKE2b hash of seed, purpose and id.
    """
    start = hashlib.blake2b(f"{seed}\0{purpose}\0".encode(), digest_size=8)
    words = np.empty(len(ids), dtype=np.uint64)
    for index, name in enumerate(ids):
        state = start.copy()
        state.update(b"\xff" if name is None else name.encode("utf-8", "surrogatepass"))
        words[index] = int.from_bytes(state.digest())
    numbers: npt.NDArray[np.float64] = np.ldexp((words >> np.uint64(11)).astype(np.float64), -53)
    return numbers


def sampled(
    apps: pl.DataFrame, *, fraction: object, n: object, by: object, seed: int
) -> tuple[pl.DataFrame, str]:
    """Apps of the units that are drawn, and in words how many units that is.

    See :meth:`themis.Workload.sample`.

    Raises
    ------
    TraceError
        An argument is not one that is expected.
    """
    if by not in SAMPLED_BY:
        raise TraceError(f"sample: by is {by!r}: expected one of {', '.join(SAMPLED_BY)}")
    column = "app_id" if by == "app" else str(by)
    units = apps.get_column(column).unique().sort()
    if units.null_count() == units.len():
        raise TraceError(f"sample: by is {by!r}: no app of this workload names a {by}")
    luck = draws(seed, f"sample by {by}", units.to_list())
    if (fraction is None) == (n is None):
        found = "none of them" if n is None else "both"
        raise TraceError(f"sample: expected exactly one of fraction and n, found {found}")
    if n is None:
        share = real(
            "sample: fraction", fraction, "more than 0, at most 1", lambda value: 0 < value <= 1
        )
        kept = units.filter(pl.Series(luck < share))
    else:
        most = units.len()
        count = whole("sample: n", n, f"1 to {most}, the {by}s", lambda value: 1 <= value <= most)
        kept = units.gather(np.sort(np.argsort(luck, kind="stable")[:count]))
    inside = pl.col(column).is_in(kept.drop_nulls().implode())
    if kept.null_count():
        inside = inside | pl.col(column).is_null()
    return apps.filter(inside.fill_null(value=False)), f"{kept.len()} {by}s of {units.len()}"
