"""Machine lists on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

Themis = Callable[..., CompletedProcess[str]]


def test_a_machine_list_is_a_cluster(themis: Themis, trace: Path) -> None:
    machines = trace.parent / "openb_node_list.csv"
    machines.write_text("sn,cpu_milli,memory_mib,gpu,model\nb,1,1,8,G2\na,1,1,8,G2\nc,1,1,0,\n")
    checked = themis("check", str(trace), "--cluster", str(machines), "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["load"]["gpus"] == 16
    run = themis(
        *("run", "--trace", str(trace), "--cluster", machines.name, "--policy", "fifo"),
        *("--out", "out", "--json"),
    )
    assert run.returncode == 0, run.stderr
    manifest = json.loads((trace.parent / "out" / "manifest.json").read_text())
    assert manifest["cluster"]["spec"] == "2x8:G2"
    machines.write_text("sn,cpu_milli,memory_mib,gpu,model\nb,1,1,many,G2\n")
    bad = themis("run", "--trace", str(trace), "--cluster", machines.name, "--out", "bad")
    assert bad.returncode == 3
    assert "line 2: not a number in column 'gpu': 'many'" in bad.stderr
