"""What a reader must know before trusting the figures: limits, exclusions, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from themis.metrics import Number
from themis.metrics.catalogue import Unit
from themis.report.wording import worded
from themis.results.digest import RunDigest
from themis.results.remarks import remarks_of

__all__ = ["run_facts", "run_name", "run_notes"]


def run_facts(runs: Sequence[RunDigest]) -> list[tuple[str, str]]:
    """Name and value of what was run: workload, its size, cluster, seeds.

    Taken from the first run; :func:`run_notes` says where the others differ.
    """
    first = runs[0]
    workload, cluster = _section(first, "workload"), _section(first, "cluster")
    paths = workload.get("paths")
    names = [_file_name(path) for path in paths] if isinstance(paths, list) else []
    facts = [
        ("Workload", ", ".join(names) or str(workload.get("format") or "")),
        ("Apps", worded(first.summary["apps"], Unit.COUNT)),
        ("Jobs", worded(first.summary["jobs"], Unit.COUNT)),
        ("Cluster", str(cluster.get("spec", ""))),
        ("GPUs", str(cluster.get("gpus", ""))),
        ("Seeds" if len({run.seed for run in runs}) > 1 else "Seed", _seeds(runs)),
    ]
    return [(name, value) for name, value in facts if value]


def run_notes(runs: Sequence[RunDigest], *, complete: bool) -> list[str]:
    """Sentences on the limits of the runs, each once."""
    notes: list[str] = []
    if not complete:
        notes.append("The comparison was interrupted: not every run that was asked for is here.")
    notes.extend(_differences(runs))
    for run in runs:
        notes.extend(_limits(run))
    notes.extend(remarks_of([(run_name(run), run.manifest) for run in runs]))
    return list(dict.fromkeys(notes))


def _limits(run: RunDigest) -> list[str]:
    summary, name = run.summary, run_name(run)
    notes = []
    unfinished = summary["apps_unfinished"]
    if unfinished:
        text = f"{name}: {_apps(unfinished)} unfinished at the horizon; statistics of rho and of "
        text += "completion leave them out"
        if summary["rho_bounds"]:
            bound = worded(summary["rho_bound_max"], Unit.RATIO)
            text += f", and the worst of them has a rho of at least {bound}"
        notes.append(text + ".")
    if summary["apps_infeasible"]:
        notes.append(
            f"{name}: {_apps(summary['apps_infeasible'])} infeasible: they can never run on this "
            "cluster, and have no rho."
        )
    if summary["jobs_rejected"]:
        notes.append(f"{name}: rejected jobs: {summary['jobs_rejected']:,}.")
    return notes


def _differences(runs: Sequence[RunDigest]) -> list[str]:
    notes = []
    for what, key in (("workloads", "sha256"), ("clusters", "spec")):
        section = what.removesuffix("s")
        found = {str(_section(run, section).get(key)) for run in runs}
        if len(found) > 1:
            notes.append(f"The runs are on different {what}: their figures do not compare.")
    readings = {str(_section(run, "settings").get("t_id", "paper")) for run in runs}
    if len(readings) > 1:
        listed = ", ".join(sorted(readings))
        notes.append(f"The runs read the ideal time T_ID differently ({listed}): so is their rho.")
    else:
        notes.append(f"rho uses the ideal time T_ID as read by t_id = {next(iter(readings))}.")
    return notes


def _section(run: RunDigest, key: str) -> Mapping[str, object]:
    section = run.manifest.get(key)
    return section if isinstance(section, Mapping) else {}


def _apps(count: Number) -> str:
    return "1 app was" if count == 1 else f"{count:,} apps were"


def run_name(run: RunDigest) -> str:
    """Return what notes call a run: its label, and its seed unless that is 0."""
    return f"{run.label} (seed {run.seed})" if run.seed else run.label


def _seeds(runs: Sequence[RunDigest]) -> str:
    return ", ".join(str(seed) for seed in dict.fromkeys(run.seed for run in runs))


def _file_name(path: object) -> str:
    return str(path).replace("\\", "/").rpartition("/")[2]
