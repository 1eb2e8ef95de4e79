"""Check what is released: the files of a wheel and a source archive, and how the wheel starts.

    release_check.py artefacts WHEEL SDIST     files, metadata; no folder of this machine
    release_check.py installed PYTHON          in a fresh environment: build, start-up, public API

Prints a line a check; the first that fails ends with exit code 1.
"""

from __future__ import annotations

import email
import json
import os
import resource
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
MOST_WHEEL_BYTES = 4 << 20  # measured 1.2 MB; a wheel with debug symbols has 10 times as many
MOST_START_S = {"import themis": 0.06, "themis --help": 0.1}  # of CPU; measured 0.02 and 0.05-0.08
RUNS = 7
_STRIPPED = {".debug_info", ".debug_line", ".symtab"}
_INFO = {"METADATA", "WHEEL", "RECORD", "entry_points.txt"}
_LICENSES = {"licenses/LICENSE", "licenses/THIRD-PARTY.txt"}
_FIELDS = {
    "Name": "themis-sched",
    "License-Expression": "Apache-2.0",
    "Requires-Python": ">=3.11",
    "Description-Content-Type": "text/markdown; charset=UTF-8; variant=GFM",
}


def main() -> None:
    """Run the checks that the arguments name."""
    match sys.argv[1:]:
        case ["artefacts", wheel, sdist]:
            check_wheel(Path(wheel))
            check_sdist(Path(sdist))
        case ["installed", python]:
            check_installed(Path(python).absolute())
        case _:
            raise SystemExit(__doc__)


def say(what: str, found: object, *, holds: bool) -> None:
    """Print a check and end the program if it does not hold."""
    sys.stdout.write(f"{'ok' if holds else 'FAILED'}: {what}: {found}\n")
    if not holds:
        raise SystemExit(1)


def tracked(folder: str) -> set[str]:
    """Files below a folder of the repository that git knows."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", folder]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}


def check_wheel(path: Path) -> None:
    """Check that it is for any Python and Linux, holds our files alone, and is stripped."""
    tags = path.stem.split("-")[2:]
    say("tags of the wheel", "-".join(tags), holds=tags[:2] == ["cp311", "abi3"])
    say("platform", tags[2], holds="manylinux_2_17_" in tags[2])
    size = path.stat().st_size
    say("bytes of the wheel", f"{size:,} of {MOST_WHEEL_BYTES:,}", holds=size < MOST_WHEEL_BYTES)
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        expected = {name.removeprefix("python/") for name in tracked("python")}
        expected |= {"themis/_core.abi3.so"} | {f"{info}/{name}" for name in _INFO | _LICENSES}
        say("stray files", sorted(names - expected), holds=names <= expected)
        say("missing files", sorted(expected - names), holds=expected <= names)
        for name in ("themis/py.typed", "themis/_core.pyi"):
            say("types", name, holds=name in names)
        check_metadata(wheel.read(f"{info}/METADATA").decode())
        debug = [name for name in sections(wheel.read("themis/_core.abi3.so")) if name in _STRIPPED]
        say("sections that should be stripped", debug, holds=not debug)
        check_paths({name: wheel.read(name) for name in names})


def sections(library: bytes) -> list[str]:
    """Return the names of the sections of a 64-bit ELF file (its header, then a table)."""
    table, size, count, names = struct.unpack_from("<40xQ10xHHH", library)
    headers = [struct.unpack_from("<I20xQQ", library, table + at * size) for at in range(count)]
    _, begin, length = headers[names]
    text = library[begin : begin + length]
    return [text[at : text.index(b"\0", at)].decode() for at, _, _ in headers]


def check_metadata(text: str) -> None:
    """Check that what an index shows is there."""
    fields = email.message_from_string(text)
    for name, value in _FIELDS.items():
        say(name, fields[name], holds=fields[name] == value)
    for name in ("Version", "Summary", "Keywords", "Classifier", "Requires-Dist"):
        say(name, len(fields.get_all(name, [])), holds=bool(fields.get_all(name)))


def check_paths(files: dict[str, bytes]) -> None:
    """Check that nothing tells where it was built."""
    for place in (ROOT, Path.home()):
        mark = f"{place}/".encode()
        found = sorted(name for name, data in files.items() if mark in data)
        say(
            "files that name a folder of this machine", found, holds=not found or place == Path("/")
        )


def check_sdist(path: Path) -> None:
    """Check that all is there that a build needs, and nothing that git does not know."""
    with tarfile.open(path) as archive:
        files = {
            str(PurePosixPath(*PurePosixPath(member.name).parts[1:])): member
            for member in archive
            if member.isfile()
        }
        known = tracked(".") | {"PKG-INFO"}
        say("stray sources", sorted(set(files) - known), holds=set(files) <= known)
        needed = {"Cargo.toml", "Cargo.lock", "LICENSE", "THIRD-PARTY.txt", "README.md"}
        needed |= {"pyproject.toml"} | tracked("python")
        needed |= {name for name in tracked("rust") if "/src/" in name or name.endswith(".toml")}
        say("missing sources", sorted(needed - set(files)), holds=needed <= set(files))
        contents = {name: archive.extractfile(member) for name, member in files.items()}
        check_paths({name: stream.read() for name, stream in contents.items() if stream})


def check_installed(python: Path) -> None:
    """Check that it is a release build and starts fast."""
    code = "import json, themis; print(json.dumps(themis.build_info()))"
    told = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    info = json.loads(told.stdout)
    say("build", info, holds=not info["debug"])
    check_start("import themis", [str(python), "-c", "import themis"])
    check_start("themis --help", [str(python.with_name("themis")), "--help"])


def check_start(what: str, command: list[str]) -> None:
    """Check the CPU time of a process, the least of several: others may run beside."""
    spent = sorted(cpu_s(command) for _ in range(RUNS))
    limit = MOST_START_S[what]
    found = f"{spent[0] * 1e3:.0f} to {spent[-1] * 1e3:.0f} ms of CPU, limit {limit * 1e3:.0f}"
    say(what, found, holds=spent[0] < limit)


def cpu_s(command: list[str]) -> float:
    """Return the seconds of CPU that a process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=os.sep)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
