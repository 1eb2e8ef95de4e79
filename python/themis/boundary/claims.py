"""What agents make of the truth in their bids: errors of estimation, and lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from themis.errors import ScenarioError
from themis.nearest import nearest
from themis.settings.settings import Settings

__all__ = ["Claims", "claims", "notes_of_lies", "with_lies"]

_ERRORS, _LIARS = 3, 4  # a stream of random numbers for each purpose


@dataclass(frozen=True)
class Claims:
    """Factors by which the bids of each app differ from the truth.

    Parameters
    ----------
    work
        On its work: float64, one an app.
    slowdown
        On its slowdowns S, which are never claimed below 1.
    excess
        On the part of S above 1.
    liars
        Who lies: bool, one an app.
    """

    work: npt.NDArray[np.float64]
    slowdown: npt.NDArray[np.float64]
    excess: npt.NDArray[np.float64]
    liars: npt.NDArray[np.bool_]

    def columns(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the columns of apps that the core takes."""
        return {
            "claimed_work": self.work,
            "claimed_slowdown": self.slowdown,
            "claimed_excess": self.excess,
        }


def claims(
    apps: Sequence[str] | pl.Series, settings: Settings, seed: int, *, honest: bool = False
) -> Claims:
    """Return what each app claims; apps are in their canonical order.

    An estimate is wrong by one factor an app, uniform in 1 +- `bid_error`, on work and on S. A
    lie comes on top: a share of liars, rounded to a whole number of apps drawn from the seed, or
    those named. `honest` leaves the lies out.

    Raises
    ------
    ScenarioError
        `liars` names an app that the workload does not have.
    """
    truth: npt.NDArray[np.float64] = np.broadcast_to(1.0, len(apps))  # takes no memory
    error = truth
    if settings.bid_error:
        error = 1 + settings.bid_error * (2 * _draws(seed, _ERRORS, len(apps)) - 1)
    work, excess = error, truth
    lies = _who(apps, settings, seed)
    if settings.liars is not None and not honest:
        work, excess, by = work.copy(), excess.copy(), 1 + settings.liars.by
        if settings.liars.term == "slowdown":
            excess[lies] *= by
        else:
            work[lies] *= by if settings.liars.term == "work" else 1 / by
    return Claims(work, error, excess, lies)


def with_lies(apps: pl.DataFrame, claimed: Claims, honest: pl.DataFrame | None) -> pl.DataFrame:
    """Say who lied and what it brought.

    Parameters
    ----------
    apps
        The `apps` table of a run, in canonical order.
    honest
        That of the same run without lies; None where nobody lied.

    Returns
    -------
    pl.DataFrame
        The table with `lied` and `lie_gain_s`: how much sooner the app finished than in the honest
        run, liar or not; null where nobody lied or it has no T_SH.
    """
    gain = pl.lit(None, dtype=pl.Float64)
    if honest is not None:
        gain = pl.lit(honest.get_column("t_sh_s")) - pl.col("t_sh_s")
    return apps.with_columns(lied=pl.Series(claimed.liars), lie_gain_s=gain)


def notes_of_lies(apps: pl.DataFrame, settings: Settings) -> tuple[str, ...]:
    """Sum up what the lies brought, for the notes of a result."""
    if settings.liars is None:
        return ()
    means = []
    for lied in (True, False):
        gains = apps.filter(pl.col("lied") == lied).get_column("lie_gain_s").drop_nulls().to_numpy()
        means.append(f"{gains.mean():.6g} s" if gains.size else "nothing")
    count, term, by = int(apps["lied"].sum()), settings.liars.term, settings.liars.by
    who = f"{count} of {apps.height} apps lied ({term} by {by:+g})"
    gain = f"liars finished {means[0]} sooner in the mean, the others {means[1]}"
    return (f"{who}; against the honest run {gain}",)


def _who(apps: Sequence[str] | pl.Series, settings: Settings, seed: int) -> npt.NDArray[np.bool_]:
    lies = np.zeros(len(apps), dtype=np.bool_)
    liars = settings.liars
    if liars is None:
        return lies
    if liars.share is not None:
        order = np.argsort(_draws(seed, _LIARS, len(apps)), kind="stable")
        lies[order[: int(liars.share * len(apps) + 0.5)]] = True
        return lies
    rows = {app: row for row, app in enumerate(apps)}
    for app in liars.apps or ():
        if app not in rows:
            raise ScenarioError(
                f"liars.apps: app {app!r} is not in the workload{nearest(app, list(rows))}"
            )
        lies[rows[app]] = True
    return lies


def _draws(seed: int, purpose: int, count: int) -> npt.NDArray[np.float64]:
    """Return uniform numbers in [0, 1), the same on every platform."""
    return np.random.Generator(np.random.PCG64([seed, purpose])).random(count)
