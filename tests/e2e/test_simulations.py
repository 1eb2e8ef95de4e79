"""`themis run`, `compare`, `report` and `demo` as whole commands."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import themis as package
from themis.comparison.comparison import load_comparison

Themis = Callable[..., subprocess.CompletedProcess[str]]

ON_8 = ("--trace", "jobs.csv", "--cluster", "2x(1x4)")
RESULT = {
    "manifest.json",
    "summary.json",
    "apps.parquet",
    "jobs.parquet",
    "leases.parquet",
    "auctions.parquet",
    "usage.parquet",
    "capacity.parquet",
}
POLICIES = ("themis", "tiresias", "fifo", "max_rho")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def done(process: subprocess.CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("policy", [*(one.name for one in package.POLICIES), "las"])
def test_a_run_prints_its_metrics_and_leaves_a_result(
    policy: str, themis: Themis, trace: Path
) -> None:
    out = trace.parent / "out"
    text = done(themis("run", *ON_8, "--policy", policy, "--out", "out"))
    assert "Worst rho" in text
    assert text.endswith(f"result: {out}\n")
    assert names(out) == RESULT
    result = package.load_result(out)
    assert result.jobs.height == 6
    assert result.jobs.get_column("state").to_list() == ["done"] * 6
    assert result.apps.get_column("rho").null_count() == 0


@pytest.mark.usefixtures("trace")
def test_json_is_one_document_on_stdout(themis: Themis) -> None:
    run = json.loads(done(themis("run", *ON_8, "--json")))
    assert set(run) == {"manifest", "summary", "tenants", "path"}
    assert (run["path"], run["summary"]["jobs"], run["manifest"]["seed"]) == (None, 6, 0)
    both = json.loads(done(themis("compare", *ON_8, "--json", "--policies", "themis,fifo")))
    assert [one["policy"] for one in both["runs"]] == ["themis", "fifo"]
    assert both["report"] is None
    report = json.loads(done(themis("check", "jobs.csv", "--json", "--cluster", "2x(1x4)")))
    assert (report["jobs"], report["clean"]) == (6, True)


@pytest.mark.usefixtures("trace")
def test_notes_are_silenced_by_quiet_and_never_on_stdout(themis: Themis) -> None:
    loud = themis("run", *ON_8)
    quiet = themis("run", *ON_8, "--quiet")
    assert done(loud) == done(quiet)
    assert "themis: simulated in " in loud.stderr
    assert quiet.stderr == ""


def test_a_printed_scenario_means_the_same_run(themis: Themis, trace: Path) -> None:
    flags = (*ON_8, "--policy", "fifo", "--set", "lease_s=300", "--set", "t_id=critical_path",
             "--seed", "5")  # fmt: skip
    done(themis("run", *flags, "--out", "flags"))
    printed = themis("run", *flags, "--print-scenario")
    assert printed.stderr == ""
    (trace.parent / "inner").mkdir()
    (trace.parent / "inner" / "s.toml").write_text(done(printed), encoding="utf-8")
    done(themis("run", "inner/s.toml", "--out", "file"))
    assert done(themis("run", "inner/s.toml", "--print-scenario")) == printed.stdout
    for command in ("run", "compare"):
        document = json.loads(done(themis(command, "inner/s.toml", "--print-scenario", "--json")))
        assert document == tomllib.loads(printed.stdout)
    one, other = (package.load_result(trace.parent / name) for name in ("flags", "file"))
    assert one.manifest["settings"] == other.manifest["settings"]
    assert (one.policy, one.seed) == ("fifo", 5)
    assert [one.frames[name].equals(other.frames[name]) for name in one.frames] == [True] * 6


def test_flags_are_laid_over_a_scenario(themis: Themis, trace: Path) -> None:
    printed = done(themis("run", *ON_8, "--print-scenario"))
    (trace.parent / "s.toml").write_text(printed, encoding="utf-8")
    flags = ("--policy", "fifo", "--seed", "7", "--cluster", "4x8", "--set", "payment=none")
    run = json.loads(done(themis("run", "s.toml", *flags, "--json")))["manifest"]
    assert (run["policy"], run["seed"], run["cluster"]["gpus"]) == ("fifo", 7, 32)
    assert run["settings"]["payment"] == "none"


@pytest.mark.usefixtures("trace")
def test_a_horizon_leaves_apps_unfinished(themis: Themis) -> None:
    run = json.loads(done(themis("run", *ON_8, "--set", "horizon_s=1000", "--json")))
    states = {key: run["summary"][f"jobs_{key}"] for key in ("done", "unfinished")}
    assert states["unfinished"] > 0
    assert sum(states.values()) == 6


def test_a_job_that_can_never_run_blocks_nobody(themis: Themis, trace: Path) -> None:
    with trace.open("a", encoding="utf-8") as file:
        file.write("z1,0,64,10,zoe,z\n")
    for policy in POLICIES:
        run = json.loads(done(themis("run", *ON_8, "--policy", policy, "--json")))
        assert (run["summary"]["jobs_infeasible"], run["summary"]["jobs_done"]) == (1, 6)


def test_same_seed_same_bytes(themis: Themis, trace: Path) -> None:
    flags = (*ON_8, "--policies", ",".join(POLICIES), "--seed", "3", "--seeds", "2")
    done(themis("compare", *flags, "--out", "first"))
    expected = digests(trace.parent / "first")
    done(themis("compare", *flags, "--out", "second", "--threads", "1", PYTHONHASHSEED="7"))
    assert digests(trace.parent / "second") == expected
    head, *rows = trace.read_text(encoding="utf-8").splitlines()
    trace.write_text("\n".join([head, *rows[::-1]]) + "\n", encoding="utf-8")
    done(themis("compare", *flags, "--out", "third", PYTHONHASHSEED="8"))
    shuffled = digests(trace.parent / "third")
    tables = [name for name in expected if name.endswith(".parquet")]
    assert len(tables) == 2 + 6 * 8
    assert [name for name in tables if shuffled[name] != expected[name]] == []


def test_a_comparison_leaves_results_tables_and_a_report(themis: Themis, trace: Path) -> None:
    out = trace.parent / "out"
    process = themis("compare", *ON_8, "--policies", ",".join(POLICIES), "--out", "out")
    text = done(process)
    assert text.endswith(f"report: {out / 'report.html'}\n")
    assert text.splitlines()[1].split() == list(POLICIES)
    assert re.search(r"^themis: 4 runs in \d+\.\d s$", process.stderr, re.MULTILINE)
    own = {"manifest.json", "summary.json", "comparison.parquet", "apps.parquet", "report.html"}
    assert names(out) == {*POLICIES, *own}
    assert [names(out / policy) for policy in POLICIES] == [RESULT] * 4
    assert "http://" not in (out / "report.html").read_text(encoding="utf-8").replace(
        "http://www.w3.org/", ""
    )


def test_an_earlier_result_is_replaced_and_foreign_files_only_by_force(
    themis: Themis, trace: Path
) -> None:
    out = trace.parent / "out"
    done(themis("compare", *ON_8, "--policies", "themis,fifo", "--out", "out"))
    done(themis("run", *ON_8, "--policy", "fifo", "--out", "out"))
    assert names(out) == RESULT
    (out / "thesis.tex").write_text("x", encoding="utf-8")
    assert themis("run", *ON_8, "--out", "out").returncode == 3
    assert names(out) == RESULT | {"thesis.tex"}
    done(themis("run", *ON_8, "--out", "out", "--force"))
    assert names(out) == RESULT


def test_a_report_of_results_and_of_a_comparison(themis: Themis, trace: Path) -> None:
    folder = trace.parent
    done(themis("compare", *ON_8, "--policies", "themis,fifo", "--out", "both"))
    assert done(themis("report", "both", "-o", "a.html")) == f"report: {folder / 'a.html'}\n"
    drawn = json.loads(done(themis("report", "both", "-o", "c.html", "--json")))
    assert drawn == {"report": str(folder / "c.html"), "figures": []}
    text = done(themis("report", "both/themis", "both/fifo", "-o", "b.html", "--figures", "f"))
    assert text.splitlines()[-1] == f"report: {folder / 'b.html'}"
    assert {path.suffix for path in (folder / "f").iterdir()} == {".png", ".svg"}
    assert (folder / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_demo_writes_its_report_and_says_where(themis: Themis, tmp_path: Path) -> None:
    started = time.monotonic()
    text = done(themis("demo"))
    assert time.monotonic() - started < 60
    report = tmp_path / "themis-demo" / "report.html"
    assert text.endswith(f"report: {report}\n")
    assert report.is_file()
    assert "Worst rho" in text
    assert all(policy.name in text for policy in package.POLICIES)
    first = digests(tmp_path / "themis-demo")
    again = json.loads(done(themis("demo", "--json")))
    assert again["report"] == str(report)
    assert digests(tmp_path / "themis-demo") == first


def test_strict_checks_fail_on_problems(themis: Themis, trace: Path) -> None:
    assert themis("check", "jobs.csv", "--strict").returncode == 0
    with trace.open("a", encoding="utf-8") as file:
        file.write("x1,0,two,10,zoe,z\n")
    lax, strict = themis("check", "jobs.csv"), themis("check", "jobs.csv", "--strict")
    assert (lax.returncode, strict.returncode) == (0, 4)
    assert lax.stdout == strict.stdout
    assert "line 8" in lax.stdout


# A job that a shell started in the background ignores interrupts, and so would the command
INTERRUPTIBLE = (
    "import signal\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from themis.cli.root import main\n"
    "main()\n"
)


def long_run(out: Path) -> list[str]:
    return [
        *(sys.executable, "-c", INTERRUPTIBLE),
        *("compare", "--generate", "demo", "--option", "apps=12000"),
        *("--cluster", "2x(8x4)", "--policies", "fifo,themis"),
        *("--out", str(out)),
    ]


def wait_until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_an_interrupted_comparison_is_130_and_keeps_the_runs_that_had_finished(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    with subprocess.Popen(long_run(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: bool(list(tmp_path.glob(".out.*/fifo/manifest.json"))))
        time.sleep(1.0)  # the finished run is entered in the comparison, the next one plays
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, b"")
    assert said.splitlines()[-3:] == [
        f"themis: the runs that had finished are in {out}".encode(),
        b"",
        b"themis: interrupted",
    ]
    assert names(tmp_path) == {"out"}
    comparison = load_comparison(out)
    assert (comparison.policies, comparison.complete) == (["fifo"], False)
    assert comparison.results["fifo", 0].jobs.get_column("state").unique().to_list() == ["done"]


def test_a_bar_moves_on_a_terminal_and_stdout_stays_clean(trace: Path) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "themis", "run", *ON_8, "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=terminal, cwd=trace.parent
    ) as process:
        os.close(terminal)
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
        drawn = b""
        while chunk := _read(controller):
            drawn += chunk
    os.close(controller)
    assert process.returncode == 0
    assert document["summary"]["jobs"] == 6
    assert b"jobs, day" in drawn
    assert b"left" in drawn


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 4096)
    except OSError:  # the other end is closed
        return b""


def test_a_comparison_is_against_the_baseline_that_was_asked_for(
    themis: Themis, trace: Path
) -> None:
    flags = ("--trace", str(trace), "--cluster", "2x4", "--policies", "themis,fifo")
    text = themis("compare", *flags, "--baseline", "themis", "--quiet")
    assert (text.returncode, text.stderr) == (0, "")
    title, head, row = text.stdout.split("\n\n")[1].splitlines()
    assert title.startswith("the same apps against themis")
    assert head.split()[:6] == ["policy", "apps", "sooner", "same", "later", "cut"]
    assert row.split()[:2] == ["fifo", "5"]
    assert themis("compare", *flags, "--baseline", "las").returncode == 2


@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_sweep_in_the_scenario_is_not_passed_over_in_silence(
    themis: Themis, trace: Path, command: str
) -> None:
    (trace.parent / "s.toml").write_text(
        f'[cluster]\nspec = "2x4"\n[workload]\ntrace = "{trace.name}"\n[sweep]\nseeds = 3\n',
        encoding="utf-8",
    )
    done = themis(command, "s.toml")
    assert done.returncode == 0
    assert "the scenario's table sweep is not looked at; themis sweep plays it" in done.stderr
