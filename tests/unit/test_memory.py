"""Memory that was freed goes back to the system."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import numpy as np
import pytest

from themis import _core


def resident() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return 1024 * int(found[1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others keep no gaps, or keep all")
def test_gaps_between_what_is_in_use_are_given_back() -> None:
    blocks = [np.ones(8 << 10) for _ in range(1024)]  # of 64 KiB, which glibc takes from its heap
    del blocks[::2]
    before = resident()
    _core.give_back()
    assert before - resident() > 16 << 20
    assert len(blocks) == 512
