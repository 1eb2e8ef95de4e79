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
    """

    name: str
    aliases: tuple[str, ...]
    description: str
    source: str


POLICIES = (
    PolicyInfo(
        "themis",
        (),
        "the worst off in finish-time fairness bid for free GPUs in an auction",
        "Mahajan et al., NSDI 2020, sections 3 and 4",
    ),
    PolicyInfo(
        "tiresias",
        ("las",),
        "least attained GPU service first, with leases",
        "Gu et al., NSDI 2019, as emulated by Mahajan et al., section 8.1",
    ),
    PolicyInfo(
        "fifo",
        (),
        "jobs in order of submission, each until it ends; nobody overtakes a waiting gang",
        "the default of most batch systems",
    ),
    PolicyInfo(
        "max_rho",
        (),
        "the app with the worst rho first gets all that it can use",
        "the straw man of Mahajan et al., section 3.2",
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
