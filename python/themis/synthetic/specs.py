"""The workloads that can be generated, by name: their parameters and where these come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from themis.errors import TraceError
from themis.nearest import nearest
from themis.settings.validation import scenario_error
from themis.synthetic.demo import DemoParams, demo
from themis.synthetic.parameters import Parameters
from themis.synthetic.search import SearchParams, search
from themis.synthetic.two_jobs import TwoJobsParams, two_jobs
from themis.workload.workload import TraceSource, Workload

__all__ = ["SPECS", "Parameter", "Spec", "generate", "resolve_spec"]

_OURS = "ours"


class Parameter(NamedTuple):
    """A parameter of a workload: its default there, what it means, and who says so."""

    name: str
    default: object
    meaning: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A workload that can be generated.

    Parameters
    ----------
    name, aliases
        What it is called.
    summary
        What it is, in a line.
    kind, make
        Its parameters, and what makes a workload of them.
    own
        Values of this workload where they are not the defaults of `kind`, each with its source.
    """

    name: str
    summary: str
    kind: type[Parameters]
    make: Callable[..., Workload]
    own: Mapping[str, tuple[object, str]] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    def parameters(self) -> Iterator[Parameter]:
        """Return every parameter in the order of the documentation."""
        for name, known in self.kind.model_fields.items():
            value, source = self.own.get(name, (known.default, _OURS))
            yield Parameter(name, value, str(known.description), source)

    def parse(self, given: Mapping[str, object]) -> Parameters:
        """Return the parameters of this workload with those that are given laid over them.

        Raises
        ------
        TraceError
            A name is unknown or a value is not allowed; every such entry is listed.
        """
        replaced = {name for key in given for name in self.kind.replaces.get(key, ())}
        own = {name: value for name, (value, _) in self.own.items() if name not in replaced}
        try:
            return self.kind.model_validate({**own, **given})
        except ValidationError as error:
            message = str(scenario_error(error, self.kind))
            raise TraceError(f"workload {self.name!r}: {message}") from None


def generate(spec: str, seed: int = 0, **parameters: Any) -> Workload:  # noqa: ANN401 - checked
    """Make a synthetic workload.

    Parameters
    ----------
    spec
        Name in :data:`SPECS`, such as ``"demo"`` or ``"nsdi20-w2"``.
    seed
        Not negative; the same seed and parameters give the same workload.
    **parameters
        Parameters of that workload; docs/workloads.md lists them with their defaults and sources.

    Raises
    ------
    TraceError
        The name, a parameter or a value is not one that is expected.
    """
    chosen = resolve_spec(spec)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise TraceError(
            f"workload {chosen.name!r}: seed is {seed!r}: expected a whole number, 0 or more"
        )
    params = chosen.parse(parameters)
    about = {"spec": chosen.name, "seed": seed, **params.model_dump(mode="json")}
    changed = "".join(f", {name}={parameters[name]}" for name in sorted(parameters))
    source = TraceSource(
        format=f"generated:{chosen.name}",
        recognised=f"seed {seed}{changed}",
        sha256=hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest(),
    )
    return chosen.make(params, seed, source)


def resolve_spec(name: str) -> Spec:
    """Return the workload called `name`.

    Raises
    ------
    TraceError
        There is none; the message names the nearest one.
    """
    for spec in SPECS.values():
        if name == spec.name or name in spec.aliases:
            return spec
    known = [word for spec in SPECS.values() for word in (spec.name, *spec.aliases)]
    raise TraceError(
        f"workload {name!r} is unknown{nearest(str(name), known)}: "
        f"expected one of {', '.join(known)}"
    )


_CSV = "quartiles of the authors' public CSV"
_MIX_OF_MODELS = "paper: vision 10 %, language 60 %, speech 30 %; the stand-ins are ours"
_TESTBED: dict[str, tuple[object, str]] = {
    "app_spread": (0.35, _CSV),
    "job_spread": (0.26, _CSV),
    "profiles": (("resnet50", "vgg16", "alexnet"), _MIX_OF_MODELS),
    "profile_shares": ((0.1, 0.6, 0.3), _MIX_OF_MODELS),
    "gap_s": (1200.0, "ours: the only rate that the paper states, that of its mix"),
}
_W1_GANGS: dict[str, tuple[object, str]] = {
    "gangs": ((1, 2), "paper, W1"),
    "gang_shares": ((0.705, 0.295), "paper, W1"),
}
_W1_JOBS = (1, 10, 20, 20, 43, 56, 56, 70, 81, 91)
_W2_JOBS = (
    *(1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 5, 5, 5, 6, 7, 8, 9, 10, 11, 13, 14, 20, 24, 25, 27, 29),
    *(65, 78, 88, 90),
)
_MIX_JOBS = (13, 24, 20, 29, 27)
_W1_GPU_H, _W2_GPU_H, _MIX_GPU_H = 1229.0, 410.0, 565.0
_W2_WHOLE_JOBS = 63.15
"""Work that halving lets W2 do, in whole jobs: phases of equal work, half of the jobs each time."""


def _trace_jobs(apps: int = 85) -> tuple[int, ...]:
    """Numbers of jobs with the quantiles that the paper states: 10 % one, half 75, all 100."""
    jobs = []
    for place in range(apps):
        below = (place + 0.5) / apps
        tail = (below - 0.1) / 0.4 * 74 if below < 0.5 else 74 + (below - 0.5) / 0.5 * 25  # noqa: PLR2004
        jobs.append(1 + round(max(tail, 0.0)))
    return tuple(jobs)


_W1: dict[str, tuple[object, str]] = {
    **_TESTBED,
    **_W1_GANGS,
    "jobs_per_app": (_W1_JOBS, "paper, W1"),
    "job_gpu_h": (3.75, "paper: median task of its trace; see mean_job_gpu_h"),
    "mean_job_gpu_h": (
        _W1_GPU_H / sum(_W1_JOBS),
        "paper, Fig. 11: 1229 GPU-hours in 448 jobs",
    ),
}

SPECS: Mapping[str, Spec] = {
    spec.name: spec
    for spec in (
        Spec(
            name="demo",
            summary="searches of a few teams that contend for 64 GPUs for some hours",
            kind=DemoParams,
            make=demo,
        ),
        Spec(
            name="nsdi20-w1",
            summary="the paper's workload 1: ten searches of up to 91 jobs on 1 or 2 GPUs",
            kind=SearchParams,
            make=search,
            own=_W1,
        ),
        Spec(
            name="nsdi20-w2",
            summary="the paper's workload 2: successive halving, most jobs on 4 GPUs",
            kind=SearchParams,
            make=search,
            own={
                **_TESTBED,
                "jobs_per_app": (_W2_JOBS, "paper, W2"),
                "stopping": ("successive_halving", "paper, W2"),
                "gangs": ((1, 2, 4), "paper, W2"),
                "gang_shares": ((0.233, 0.158, 0.608), "paper, W2"),
                "job_gpu_h": (3.75, "paper: median task of its trace; see mean_job_gpu_h"),
                "mean_job_gpu_h": (
                    _W2_GPU_H / _W2_WHOLE_JOBS,
                    "paper, Fig. 12: 410 GPU-hours, the work of 63.15 whole jobs under halving",
                ),
            },
        ),
        Spec(
            name="nsdi20-mix",
            aliases=("mix",),
            summary="the paper's network-intensive share: five searches, one every 20 minutes",
            kind=SearchParams,
            make=search,
            own={
                "jobs_per_app": (_MIX_JOBS, "paper, mix"),
                "arrivals": ("even", "paper, mix"),
                "gap_s": (1200.0, "paper, mix"),
                "gangs": ((2, 4), "paper, mix: 2 to 4"),
                "app_spread": (0.35, _CSV),
                "job_spread": (0.26, _CSV),
                "job_gpu_h": (3.75, "paper: median task of its trace; see mean_job_gpu_h"),
                "mean_job_gpu_h": (
                    _MIX_GPU_H / sum(_MIX_JOBS),
                    "paper, Fig. 16: 565 GPU-hours at 0 % in 113 jobs",
                ),
                "network_share": (0.4, "paper, mix: it sweeps 0 to 1"),
            },
        ),
        Spec(
            name="nsdi20-trace",
            summary="the paper's trace: 85 searches, half of them of 75 jobs or more",
            kind=SearchParams,
            make=search,
            own={
                **_TESTBED,
                **_W1_GANGS,
                "jobs_per_app": (_trace_jobs(), "paper: 10 % one job, median 75, at most 100"),
                "job_gpu_h": (3.75, "paper: median task"),
            },
        ),
        Spec(
            name="nsdi20-lying",
            summary="eight identical apps, for the experiment with lies",
            kind=SearchParams,
            make=search,
            own={
                "jobs_per_app": ((1,), _OURS),
                "apps": (8, "paper, Fig. 18"),
                "arrivals": ("together", "paper, Fig. 18: identical apps"),
                "gangs": ((2,), _OURS),
                "elastic_factor": (4, _OURS + ": eight apps then want all 64 GPUs"),
                "job_gpu_h": (8.0, _OURS),
                "app_spread": (0.0, "paper, Fig. 18: identical apps"),
                "job_spread": (0.0, "paper, Fig. 18: identical apps"),
                "profiles": (("network",), _OURS),
                "loss_curves": (False, "paper, Fig. 18: identical apps"),
            },
        ),
        Spec(
            name="nsdi20-two-jobs",
            summary="a long and a short job that join the paper's workload 1",
            kind=TwoJobsParams,
            make=two_jobs,
            own={
                **_W1,
                "long_gpu_h": (580 / 60, "paper, Table 5: 580 GPU-minutes"),
                "long_gang": (4, "paper, Table 5"),
                "short_gpu_h": (83 / 60, "paper, Table 5: 83 GPU-minutes"),
                "short_gang": (2, "paper, Table 5"),
                "joined_profile": ("vgg16", _OURS),
            },
        ),
        Spec(
            name="search",
            summary="searches to build upon: six apps of 1 to 32 jobs on one GPU each",
            kind=SearchParams,
            make=search,
        ),
        Spec(
            name="jobs",
            summary="single jobs to build upon: 100 of 1 to 8 GPUs",
            kind=SearchParams,
            make=search,
            own={
                "jobs_per_app": ((1,), _OURS),
                "apps": (100, _OURS),
                "gangs": ((1, 2, 4, 8), _OURS),
                "gang_shares": ((0.5, 0.2, 0.2, 0.1), _OURS),
                "gap_s": (300.0, _OURS),
            },
        ),
    )
}
"""Workloads by name; a new one takes its entry here."""
