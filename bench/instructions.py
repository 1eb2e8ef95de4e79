"""Instructions of fixed auctions and simulations, by callgrind, whatever else the machine does.

    python bench/instructions.py            compare with instructions.json; exit 1 if more
    python bench/instructions.py --write    measure the reference anew

Counts depend on the compiler, so the reference names it.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
REFERENCE = HERE / "instructions.json"
TOLERANCE = 0.02
"""Layout of memory moves counts by less than this."""

AUCTIONS = (
    ("whole", 64),
    ("whole", 1024),
    ("whole", 16384),
    ("scattered", 64),
    ("scattered", 1024),
    ("scattered", 16384),
    ("tables", 128),
    ("greedy", 256),
)
"""Kind and GPUs."""

SIMULATIONS = (
    ("fifo", 2000, 128),
    ("tiresias", 2000, 128),
    ("themis", 1000, 128),
    ("themis", 2000, 128),
    ("gandiva", 2000, 128),
    ("drf", 2000, 128),
    ("fsp", 2000, 128),
)
"""Policy, jobs and GPUs."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--write", action="store_true", help="write instructions.json anew")
    write = parser.parse_args().write
    if shutil.which("valgrind") is None:
        say("valgrind is not installed: no instructions were counted")
        return 0
    compiler = output("rustc", "--version").strip()
    programs = (
        (build("themis-core", "auction_rounds"), AUCTIONS),
        (build("themis-sim", "one_simulation"), SIMULATIONS),
    )
    counts = {
        " ".join(map(str, load)): count(program, *map(str, load))
        for program, loads in programs
        for load in loads
    }
    if write:
        text = json.dumps({"compiler": compiler, "instructions": counts}, indent=2)
        REFERENCE.write_text(f"{text}\n", encoding="utf-8")
        return 0
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))
    if compiler != reference["compiler"]:
        say(f"the reference is of {reference['compiler']}, this is {compiler}: counts may differ")
    return compare(counts, reference["instructions"])


def compare(counts: dict[str, int], reference: dict[str, int]) -> int:
    """Show counts beside the reference; 1 where one is larger by more than the tolerance."""
    worse = 0
    for name, now in counts.items():
        before = reference.get(name)
        change = "new" if before is None else f"{now / before - 1:+.2%}"
        over = before is not None and now > before * (1 + TOLERANCE)
        worse |= over
        say(f"{name:<18} {now:>15,} {change:>8}{'  more than allowed' if over else ''}")
    return int(worse)


def build(package: str, example: str) -> Path:
    """Build an example and return the program."""
    cargo = ("cargo", "build", "--release", "--locked", "-p", package)
    lines = output(*cargo, "--example", example, "--message-format", "json").splitlines()
    built = [
        message["executable"] for line in lines if (message := json.loads(line)).get("executable")
    ]
    return Path(built[-1])


def count(program: Path, *load: str) -> int:
    """Return the instructions of a run, from callgrind's own summary."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        output(
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            str(program),
            *load,
        )
        found = re.search(
            r"^(?:summary|totals): (\d+)", out.read_text(encoding="utf-8"), re.MULTILINE
        )
    if found is None:
        raise SystemExit(f"valgrind counted no instructions of {' '.join(load)}")
    return int(found[1])


def output(*command: str) -> str:
    """Run a command; what it writes to standard output. Its complaint, where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)  # noqa: S603 - ours
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stderr}")
    return done.stdout


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
