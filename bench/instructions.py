"""Instructions of fixed auctions, by callgrind: a regression shows whatever the machine is doing.

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

ROUNDS = (
    ("whole", 64),
    ("whole", 1024),
    ("whole", 16384),
    ("scattered", 64),
    ("scattered", 1024),
    ("scattered", 16384),
    ("tables", 128),
    ("greedy", 256),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Instructions of fixed auctions, by callgrind.")
    parser.add_argument("--write", action="store_true", help="write instructions.json anew")
    write = parser.parse_args().write
    if shutil.which("valgrind") is None:
        say("valgrind is not installed: no instructions were counted")
        return 0
    compiler = output("rustc", "--version").strip()
    program = build()
    counts = {f"{kind} {gpus}": count(program, kind, gpus) for kind, gpus in ROUNDS}
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


def build() -> Path:
    """Build the example and return the program."""
    cargo = ("cargo", "build", "--release", "--locked", "-p", "themis-core")
    lines = output(*cargo, "--example", "auction_rounds", "--message-format", "json").splitlines()
    built = [
        message["executable"] for line in lines if (message := json.loads(line)).get("executable")
    ]
    return Path(built[-1])


def count(program: Path, kind: str, gpus: int) -> int:
    """Return the instructions of a run, from callgrind's own summary."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        output(
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            str(program),
            kind,
            str(gpus),
        )
        found = re.search(
            r"^(?:summary|totals): (\d+)", out.read_text(encoding="utf-8"), re.MULTILINE
        )
    if found is None:
        raise SystemExit(f"valgrind counted no instructions of {kind} {gpus}")
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
