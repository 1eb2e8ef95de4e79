"""Licences of the crates that are linked into the extension, as one text.

`make licences` writes THIRD-PARTY.txt from it; a test compares its list with Cargo.lock.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = "themis-py"
_TEXTS = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
_HEAD = """\
The extension module of Themis holds code of the Rust standard library (MIT OR Apache-2.0) and of
the crates below; their licences follow. Themis itself is licensed under LICENSE.
"""


@dataclass(frozen=True, order=True)
class Crate:
    """A crate, its licence as an SPDX expression, and where its sources lie."""

    name: str
    version: str
    license: str
    folder: Path


def linked_crates() -> list[Crate]:
    """Return the crates of others in the extension, sorted; not those of builds and tests."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] == _ROOT]
    found = set(waiting)
    while waiting:
        for edge in edges[waiting.pop()]:
            used = any(kind["kind"] is None for kind in edge["dep_kinds"])
            package = packages[edge["pkg"]]
            macro = any("proc-macro" in target["kind"] for target in package["targets"])
            if used and not macro and edge["pkg"] not in found:
                found.add(edge["pkg"])
                waiting.append(edge["pkg"])
    return sorted(
        Crate(
            package["name"],
            package["version"],
            package["license"].replace("/", " OR "),
            Path(package["manifest_path"]).parent,
        )
        for package in map(packages.__getitem__, found)
        if package["source"] is not None
    )


def third_party(crates: list[Crate]) -> str:
    """Return the list of the crates and every licence text among theirs, each once."""
    texts: dict[str, tuple[str, list[str]]] = {}
    for crate in crates:
        files = list(_license_files(crate.folder))
        if not files:
            raise SystemExit(f"error: {crate.name} {crate.version} has no licence text")
        for file in files:
            text = file.read_text(encoding="utf-8").strip()
            _, users = texts.setdefault(" ".join(text.split()), (text, []))
            users.append(f"{crate.name} ({file.name})")
    listed = "".join(f"  {crate.name} {crate.version}: {crate.license}\n" for crate in crates)
    bodies = (f"\n{'=' * 80}\n{', '.join(users)}\n\n{text}\n" for text, users in texts.values())
    return f"{_HEAD}\n{listed}{''.join(bodies)}"


def _license_files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name.upper().startswith(_TEXTS):
            yield file


if __name__ == "__main__":
    sys.stdout.write(third_party(linked_crates()))
