"""`themis sweep` as a whole command: killed, interrupted, failing, with one worker and with two."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import themis as package

Themis = Callable[..., subprocess.CompletedProcess[str]]

SCENARIO = """\
[cluster]
spec = "2x(2x4)"

[workload]
generate = "demo"
params = {apps = 60}

[sweep.axes]
policy = ["themis", "fifo"]
lease_s = [300, 600]
"""
SEEDS = ("--seeds", "5")
RUNS = 20


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def done(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stderr
    return process.stdout


def finished(folder: Path) -> dict[str, int]:
    """Finished runs by name, and when each was written."""
    return {
        path.parent.name: path.stat().st_mtime_ns
        for path in folder.glob("runs/*/manifest.json")
        if not path.parent.name.startswith(".")
    }


def wait_until(condition: Callable[[], bool], limit_s: float = 120.0) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def gone(process: int) -> bool:
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return True
    return text.rsplit(")", 1)[1].split()[0] in "ZX"


def start(folder: Path, out: str, *, workers: int) -> subprocess.Popen[bytes]:
    # A job that a shell started in the background ignores interrupts, and so would the command
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from themis.cli.root import main\n"
        "main()\n"
    )
    return subprocess.Popen(
        [
            *(sys.executable, "-c", code, "sweep", "s.toml"),
            *(*SEEDS, "-o", out, "--workers", str(workers)),
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_killed_sweep_goes_on_and_ends_with_the_same_bytes(
    themis: Themis, scenario: Path
) -> None:
    folder = scenario.parent
    done(themis("sweep", "s.toml", *SEEDS, "--workers", "1", "-o", "whole"))
    expected = digests(folder / "whole")
    assert len(finished(folder / "whole")) == RUNS
    with start(folder, "cut", workers=2) as process:
        wait_until(lambda: len(finished(folder / "cut")) >= 2)
        workers = children(process.pid)
        process.send_signal(signal.SIGKILL)
    assert len(workers) == 2
    wait_until(lambda: all(map(gone, workers)))
    kept = finished(folder / "cut")
    assert 2 <= len(kept) < RUNS
    cut = package.load_sweep(folder / "cut")
    assert not cut.complete
    assert cut.runs["state"].to_list().count("done") == len(kept)
    again = themis("sweep", "s.toml", *SEEDS, "--workers", "2", "-o", "cut")
    done(again)
    assert f"themis: {len(kept)} of {RUNS} runs were played before" in again.stderr
    assert digests(folder / "cut") == expected
    assert finished(folder / "cut").items() >= kept.items()


def test_an_interrupted_sweep_is_130_and_its_results_stay_readable(
    themis: Themis, scenario: Path
) -> None:
    folder = scenario.parent
    with start(folder, "out", workers=2) as process:
        wait_until(lambda: len(finished(folder / "out")) >= 2)
        workers = children(process.pid)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, b"")
    assert f"finished are in {folder / 'out'}; go on by the same command" in said.decode()
    assert all(map(gone, workers))
    cut = package.load_sweep(folder / "out")
    table = pl.read_parquet(folder / "out" / "sweep.parquet")
    assert table.equals(cut.runs)
    ready = [row for row, state in enumerate(table["state"]) if state == "done"]
    assert 2 <= len(ready) < RUNS
    assert [cut.result(row).summary()["rho_max"] for row in ready] == [
        table["rho_max"][row] for row in ready
    ]
    done(themis("sweep", "s.toml", *SEEDS, "-o", "out"))
    assert package.load_sweep(folder / "out").complete


def test_a_run_of_a_sweep_is_that_of_themis_run(themis: Themis, scenario: Path) -> None:
    folder = scenario.parent
    done(themis("sweep", "s.toml", "-o", "out"))
    done(themis("run", "s.toml", "--policy", "fifo", "--set", "lease_s=300", "-o", "one"))
    rows = pl.read_parquet(folder / "out" / "sweep.parquet")
    row = rows.filter((pl.col("policy") == "fifo") & (pl.col("lease_s") == 300))
    assert digests(folder / "out" / "runs" / row["run"][0]) == digests(folder / "one")


def test_a_failing_run_is_reported_and_the_others_go_on(themis: Themis, trace: Path) -> None:
    flags = (
        *("sweep", "--trace", "jobs.csv", "--cluster", "2x(1x4)", "--policy", "fifo"),
        *("--axis", "workload.window.end_s=100,-1,5000", "--workers", "2"),
    )
    process = themis(*flags)
    assert process.returncode == 1
    failed = [line for line in process.stderr.splitlines() if "failed: " in line]
    assert len(failed) == 1
    assert failed[0].startswith("themis: failed: workload.window.end_s=-1: window(")
    assert process.stderr.endswith("themis: 1 of 3 runs failed\n")
    runs = pl.read_parquet(trace.parent / "themis-sweep" / "sweep.parquet")
    assert runs["state"].to_list() == ["done", "failed", "done"]
    assert runs["jobs"].to_list() == [3, None, 6]
    first = digests(trace.parent / "themis-sweep")
    assert themis(*flags, "--quiet").returncode == 1
    assert digests(trace.parent / "themis-sweep") == first


def test_of_several_seeds_the_medians_are_shown(themis: Themis, scenario: Path) -> None:
    flags = (
        "--axis",
        "policy=fifo",
        "--axis",
        "lease_s=60,120",
        "--summaries-only",
        "--seeds",
        "3",
    )
    shown = done(themis("sweep", scenario.name, *flags)).splitlines()
    assert shown[0].strip() == "6 runs, medians over 3 seeds"
    assert shown[1].split()[:3] == ["policy", "lease_s", "runs"]
    assert [line.split()[:3] for line in shown[2:4]] == [["fifo", "60", "3"], ["fifo", "120", "3"]]


def test_json_is_one_document_on_stdout(themis: Themis, scenario: Path) -> None:
    flags = ("--axis", "policy=fifo", "--axis", "lease_s=60,120", "--summaries-only", "--json")
    process = themis("sweep", "s.toml", *flags)
    document = json.loads(done(process))
    assert document["path"] == str(scenario.parent / "themis-sweep")
    assert (document["complete"], document["failed"]) == (True, 0)
    assert document["axes"] == {"policy": ["fifo"], "lease_s": [60.0, 120.0]}
    assert [run["lease_s"] for run in document["runs"]] == [60.0, 120.0]
    assert all(run["apps_done"] == 60 for run in document["runs"])
    assert process.stderr == ""


def test_a_sweep_has_a_report(themis: Themis, scenario: Path) -> None:
    done(themis("sweep", "s.toml", "-o", "out"))
    done(themis("report", "out", "-o", "page.html"))
    page = scenario.with_name("page.html").read_text(encoding="utf-8")
    assert all(
        f"{policy}, lease_s={s}" in page for policy in ("themis", "fifo") for s in (300, 600)
    )


def test_the_order_of_axes_and_extra_values_repeat_nothing(themis: Themis, scenario: Path) -> None:
    folder = scenario.parent
    short = "\n".join(SCENARIO.splitlines()[:-3])
    scenario.write_text(short, encoding="utf-8")
    done(themis("sweep", "s.toml", "--axis", "policy=fifo,las", "--axis", "lease_s=60", "-o", "a"))
    kept = finished(folder / "a")
    again = themis(
        "sweep", "s.toml", "--axis", "lease_s=60,90", "--axis", "policy=fifo,las", "-o", "a"
    )
    done(again)
    assert "themis: 2 of 4 runs were played before" in again.stderr
    assert finished(folder / "a").items() >= kept.items()


def test_a_printed_scenario_means_the_same_sweep(themis: Themis, scenario: Path) -> None:
    flags = ("--axis", "fairness_knob=.2,0.8", "--axis", "policy=themis", "--seeds", "2")
    printed = done(themis("sweep", "s.toml", *flags, "--print-scenario"))
    sweep = tomllib.loads(printed)["sweep"]
    assert sweep["seeds"] == 2
    assert sweep["axes"]["fairness_knob"] == [0.2, 0.8]
    scenario.with_name("p.toml").write_text(printed, encoding="utf-8")
    assert done(themis("sweep", "p.toml", "--print-scenario")) == printed
    assert themis("run", "p.toml", "--quiet").returncode == 0


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--axis", "fairness_knb=1"), 3, "did you mean 'fairness_knob'"),
        (("--axis", "policy.fairnes_knob=1"), 3, "did you mean 'fairness_knob'"),
        (("--axis", "fairness_knob=0,high"), 3, "fairness_knob = 'high': expected a number"),
        (("--axis", "fairness_knob"), 2, "not of the form key=value"),
        (("--axis", "lease_s="), 3, "axis lease_s has no value"),
        (("--axis", "lease_s=1", "--axis", "lease_s=2"), 2, "axis lease_s is given twice"),
        (("--workers", "0"), 2, "--workers"),
        (("--backend", "slurm"), 2, "--backend"),
    ],
)
def test_bad_axes_and_flags_are_refused(
    flags: tuple[str, ...], code: int, said: str, themis: Themis, scenario: Path
) -> None:
    process = themis("sweep", "s.toml", *flags)
    assert (process.returncode, process.stdout) == (code, "")
    assert said in process.stderr
    assert [path.name for path in scenario.parent.iterdir()] == ["s.toml"]


def test_a_script_needs_no_guard_and_may_have_loaded_polars(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(
        "import polars as pl\n"
        "import themis\n"
        "pl.DataFrame({'a': [1, 2]}).lazy().group_by('a').len().collect()\n"
        "tables = {'cluster': {'spec': '1x8'}, 'workload': {'generate': 'demo'}}\n"
        "sweep = themis.sweep(tables, {'policy': ['themis', 'fifo']}, workers=2)\n"
        "print(sweep.runs['state'].to_list())\n",
        encoding="utf-8",
    )
    process = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "['done', 'done']\n"


@pytest.mark.parametrize(("flags", "drawn"), [((), True), (("--quiet",), False)])
def test_a_terminal_sees_a_bar_with_an_estimate_unless_quiet(
    flags: tuple[str, ...], scenario: Path, *, drawn: bool
) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "themis", "sweep", "s.toml", "--axis", "policy=fifo", *flags],
        cwd=scenario.parent,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
    ) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                block = os.read(master, 4096)
            except OSError:
                break
            if not block:
                break
            shown += block
        assert process.wait(timeout=60) == 0
    os.close(master)
    assert (b"runs," in shown) == drawn
    assert (b"left" in shown) == drawn
