"""What reading and simulating had to remark, and of which runs it is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["remarks_of"]

Manifest = Mapping[str, object]


def remarks_of(runs: Sequence[tuple[str, Manifest]]) -> list[str]:
    """Return the notes of runs, each once, those of some only after the names of these runs.

    Parameters
    ----------
    runs
        Names and manifests.
    """
    found = [(name, _notes(manifest)) for name, manifest in runs]
    each = dict.fromkeys(note for _, notes in found for note in notes)
    owners = {note: [name for name, notes in found if note in notes] for note in each}
    return [
        note if len(names) == len(found) else f"{', '.join(names)}: {note}"
        for note, names in owners.items()
    ]


def _notes(manifest: Manifest) -> list[str]:
    found: list[str] = []
    workload = manifest.get("workload")
    for holder in (workload if isinstance(workload, Mapping) else {}, manifest):
        listed = holder.get("notes")
        found.extend(map(str, listed if isinstance(listed, list) else []))
    return found
