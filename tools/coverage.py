"""What the tests leave out of the auction and the engine: lines of Rust that never ran.

    cov show ... | coverage.py [FOLDER...]

Reads sources with a count of runs beside each line, as `cov` of llvm_profparser prints them, and
prints a line a file below the folders (by default both pure crates), then the lines that never
ran. Lines without code, and those after `#[cfg(test)]`, do not count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

FOLDERS = ("rust/themis-core/src", "rust/themis-sim/src")
_LINE = re.compile(r"\s*(\d+)\|\s*(\d*)\|(.*)", re.DOTALL)


@dataclass
class Source:
    """A file: how many lines of it hold code, and those that never ran."""

    path: str
    lines: int = 0
    never: list[tuple[int, str]] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Its path in the repository."""
        return "rust/" + f"/{self.path}".rsplit("/rust/", 1)[-1]

    @property
    def share(self) -> float:
        """Lines that ran, of those with code."""
        return 1.0 - len(self.never) / self.lines if self.lines else 1.0


def sources(printed: Iterable[str]) -> Iterator[Source]:
    """Yield the files of a listing; each begins with its path."""
    source, tests = None, False
    for row in printed:
        line = _LINE.fullmatch(row.rstrip("\n"))
        if line is None:
            if source is not None and row.strip():
                yield source
            if row.strip():
                source, tests = Source(row.strip()), False
            continue
        number, count, text = line.groups()
        tests = tests or text.strip() == "#[cfg(test)]"
        if source is None or tests or not count:
            continue
        source.lines += 1
        if int(count) == 0:
            source.never.append((int(number), text.strip()))
    if source is not None:
        yield source


def main(folders: Iterable[str]) -> int:
    """Print the shares, then what never ran."""
    found = [
        s for s in sources(sys.stdin) if any(f"/{folder}/" in f"/{s.path}" for folder in folders)
    ]
    if not found:
        sys.stderr.write("nothing below the folders: expected the output of cov show\n")
        return 1
    for source in found:
        sys.stdout.write(f"{source.share:7.1%} of {source.lines:>4}  {source.place}\n")
    lines = sum(source.lines for source in found)
    never = sum(len(source.never) for source in found)
    sys.stdout.write(f"{1 - never / lines:7.1%} of {lines:>4}  in all\n\n")
    for source in found:
        for number, text in source.never:
            sys.stdout.write(f"{source.place}:{number}: {text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or FOLDERS))
