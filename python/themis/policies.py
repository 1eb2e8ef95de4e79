"""The built-in policies by name: what each does, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from themis.errors import PolicyError
from themis.nearest import nearest

__all__ = ["POLICIES", "PolicyInfo", "resolve_policy"]


@dataclass(frozen=True)
class PolicyInfo:
    """A built-in policy.

    Parameters
    ----------
    name
        Its name in results.
    aliases
        Other names it answers to.
    description
        What it does, in one line.
    source
        Where it comes from.
    needs
        What it has to know of an app or a job.
    optimises
        What it is after.
    """

    name: str
    aliases: tuple[str, ...]
    description: str
    source: str
    needs: str
    optimises: str


POLICIES = (
    PolicyInfo(
        "themis",
        (),
        "the worst off in finish-time fairness bid for free GPUs in an auction",
        "Mahajan et al., NSDI 2020, sections 3 and 4",
        needs="work left, arrivals, placement",
        optimises="the worst rho, then efficiency",
    ),
    PolicyInfo(
        "tiresias",
        ("las",),
        "least attained GPU service first, with leases",
        "Gu et al., NSDI 2019, as emulated by Mahajan et al., section 8.1",
        needs="service attained",
        optimises="mean completion time, work unknown",
    ),
    PolicyInfo(
        "fifo",
        (),
        "jobs in order of submission, each until it ends; nobody overtakes a waiting gang",
        "the default of most batch systems",
        needs="nothing",
        optimises="order of arrival",
    ),
    PolicyInfo(
        "fifo_backfill",
        ("easy",),
        "fifo, but jobs behind a waiting gang start where that should not delay it",
        "Lifka, JSSPP 1995 (EASY); Mu'alem and Feitelson, IEEE TPDS 2001",
        needs="requested times",
        optimises="order of arrival, utilisation",
    ),
    PolicyInfo(
        "gandiva",
        (),
        "the job that would be placed best first",
        "Xiao et al., OSDI 2018, as emulated by Mahajan et al., section 8.1",
        needs="placement",
        optimises="efficiency of the GPUs held",
    ),
    PolicyInfo(
        "optimus",
        (),
        "the largest ratio of throughput with one more GPU or gang first",
        "Peng et al., EuroSys 2018, as emulated by Mahajan et al., section 8.1",
        needs="throughput, placement",
        optimises="throughput",
    ),
    PolicyInfo(
        "slaq",
        (),
        "the job whose loss would fall most over the next lease first",
        "Zhang et al., SoCC 2017, as emulated by Mahajan et al., section 8.1",
        needs="loss curves, placement",
        optimises="quality of the models",
    ),
    PolicyInfo(
        "srtf",
        (),
        "the shortest time left with the GPUs on offer first",
        "Mahajan et al., NSDI 2020, section 8.1",
        needs="work left, placement",
        optimises="mean completion time",
    ),
    PolicyInfo(
        "srsf",
        (),
        "the least GPU time left first",
        "Gu et al., NSDI 2019, as emulated by Mahajan et al., section 8.1",
        needs="work left",
        optimises="mean completion time",
    ),
    PolicyInfo(
        "drf",
        (),
        "the smallest share of the GPUs first, step by step",
        "Ghodsi et al., NSDI 2011, with GPUs as the only resource",
        needs="GPUs held",
        optimises="equal shares at every instant",
    ),
    PolicyInfo(
        "static",
        (),
        "each of N apps up to 1/N of the GPUs; what it does not use stands idle",
        "the partition that sharing has to beat: Mahajan et al., section 3",
        needs="number of apps",
        optimises="isolation",
    ),
    PolicyInfo(
        "fsp",
        (),
        "the app that would end first if all shared equally first",
        "Friedman and Henderson, SIGMETRICS 2003",
        needs="work submitted, arrivals",
        optimises="mean completion time, nobody worse off than in equal shares",
    ),
    PolicyInfo(
        "slack",
        (),
        "the worst rho in the best case first, without an auction",
        "Themis's filter as a policy of its own",
        needs="work left, arrivals",
        optimises="the worst rho",
    ),
    PolicyInfo(
        "max_rho",
        (),
        "the app with the worst rho first gets all that it can use",
        "the straw man of Mahajan et al., section 3.2",
        needs="work left, arrivals",
        optimises="the worst rho",
    ),
)
"""Every built-in policy, in the order of reports."""


def resolve_policy(name: str) -> str:
    """Return the name in results of a policy called `name` or one of its aliases.

    Raises
    ------
    PolicyError
        There is no such policy; the message names the nearest one.
    """
    for policy in POLICIES:
        if name == policy.name or name in policy.aliases:
            return policy.name
    known = [word for policy in POLICIES for word in (policy.name, *policy.aliases)]
    raise PolicyError(
        f"policy is {name!r}{nearest(str(name), known)}: expected one of {', '.join(known)}"
    )
