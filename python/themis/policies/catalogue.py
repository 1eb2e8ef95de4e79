"""The policies by name: what each does, and where it comes from."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from themis.errors import PolicyError
from themis.nearest import nearest

if TYPE_CHECKING:
    from themis.policies.policy import Policy

__all__ = [
    "GROUP",
    "POLICIES",
    "PolicyInfo",
    "choose_policy",
    "known_policies",
    "own_policies",
    "resolve_policy",
]

GROUP = "themis.policies"
"""Entry points of other packages: each loads to a subclass of :class:`themis.Policy`."""


@dataclass(frozen=True)
class PolicyInfo:
    """A policy that has a name.

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
        "the smallest share of the GPUs, over its fair share, first, step by step",
        "Ghodsi et al., NSDI 2011, with GPUs as the only resource",
        needs="GPUs held",
        optimises="equal shares at every instant",
    ),
    PolicyInfo(
        "static",
        (),
        "each app up to its fair share (1/N) of the GPUs; what it does not use stands idle",
        "the partition that sharing has to beat: Mahajan et al., section 3",
        needs="number of apps",
        optimises="isolation",
    ),
    PolicyInfo(
        "fsp",
        (),
        "the app that would end first if all had their fair shares first",
        "Friedman and Henderson, SIGMETRICS 2003",
        needs="work submitted, arrivals",
        optimises="mean completion time, nobody worse off than with its fair share",
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


@functools.cache
def own_policies() -> Mapping[str, type[Policy]]:
    """Return the policies of other packages by the names of their entry points.

    One that cannot be loaded, is no policy, or has the name of another is left out with a warning.
    """
    from themis.policies.policy import Policy  # noqa: PLC0415 - most runs need none

    taken = {word for policy in POLICIES for word in (policy.name, *policy.aliases)}
    found: dict[str, type[Policy]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            policy = point.load()
        except Exception as error:  # noqa: BLE001 - whatever the other package raises
            problem = f"cannot be loaded: {error!r}"
        else:
            if not (isinstance(policy, type) and issubclass(policy, Policy)):
                problem = f"is {policy!r}: expected a subclass of themis.Policy"
            elif point.name in taken or point.name in found:
                problem = "has the name of another policy"
            else:
                found[point.name] = policy
                continue
        warnings.warn(f"policy {point.name!r} ({point.value}) {problem}", stacklevel=2)
    return found


def known_policies() -> tuple[PolicyInfo, ...]:
    """Return the built-in policies and, after them, those of other packages."""
    return (*POLICIES, *(_described(name, policy) for name, policy in own_policies().items()))


def _described(name: str, policy: type[Policy]) -> PolicyInfo:
    lines = (inspect.getdoc(policy) or "").splitlines() or ["(it does not say)"]
    source = f"{policy.__module__}:{policy.__qualname__}"
    return PolicyInfo(name, (), lines[0], source, policy.needs, policy.optimises)


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
    if name in own_policies():
        return name
    known = _names()
    raise PolicyError(
        f"policy is {name!r}{nearest(str(name), known)}: expected one of {', '.join(known)}"
    )


def _names() -> list[str]:
    built_in = (word for policy in POLICIES for word in (policy.name, *policy.aliases))
    return [*built_in, *own_policies()]


def choose_policy(policy: object) -> tuple[str, Policy | None]:
    """Return a policy's name in results, and the policy itself unless it is built in.

    Raises
    ------
    PolicyError
        There is no such policy, it is no policy, cannot be made, or has the name of a built-in one.
    """
    from themis.policies.driver import checked_name  # noqa: PLC0415 - the same
    from themis.policies.policy import Policy  # noqa: PLC0415 - most runs need none

    if isinstance(policy, str):
        name = resolve_policy(policy)
        own = own_policies().get(name)
        return name, None if own is None else _made(name, own)
    if not isinstance(policy, Policy):
        hint = ": it is a class, not an object of it" if isinstance(policy, type) else ""
        raise PolicyError(
            f"policy is {policy!r}{hint}: expected one of {', '.join(_names())}, or a themis.Policy"
        )
    name = checked_name(policy)
    if any(name in (known.name, *known.aliases) for known in POLICIES):
        raise PolicyError(f"policy {name!r} has the name of a built-in one: expected another name")
    return name, policy


def _made(name: str, policy: type[Policy]) -> Policy:
    try:
        return policy()
    except Exception as error:
        raise PolicyError(
            f"policy {name!r}: {policy.__qualname__}() raised {type(error).__name__}: {error}"
        ) from error
