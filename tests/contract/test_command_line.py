"""What scripts rely on: names of commands and flags, help, version, exit codes, clean streams."""

from __future__ import annotations

import importlib
import re
import resource
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner

from themis.cli.root import COMMANDS, cli

Themis = Callable[..., subprocess.CompletedProcess[str]]

OVERVIEW = """\
Usage: themis [OPTIONS] COMMAND [ARGS]...

  Finish-time fair GPU-cluster scheduling.

  Replay a GPU trace and see how its users would have fared under Themis and
  under other schedulers.

Options:
  --version   Show the version and exit.
  -h, --help  Show this message and exit.

Commands:
  demo       Run a built-in workload under every policy; write a report.
  check      Say what is wrong with a trace, by line and class.
  run        Simulate one policy on a workload and a cluster.
  compare    Simulate several policies on the same workload.
  sweep      Simulate a scenario at every point of a grid.
  reproduce  Reproduce the figures of a paper.
  explain    Say why an app waited, and what would have helped.
  policies   List the policies and what each is after.
  auction    Clear one auction and show every bid and its fate.
  generate   Make a synthetic workload and write it.
  convert    Write any trace as tables of the native format.
  report     Draw a report from result directories.

  Exit codes: 0 done, 1 a run failed, 2 wrong usage, 3 bad input, 4 a check
  failed, 130 interrupted.
"""

SCENARIO_FLAGS = {
    "--trace",
    "--format",
    "--generate",
    "--option",
    "--repair",
    "--transform",
    "--cluster",
    "--capacity",
    "--set",
    "--seed",
    "--out",
    "--print-scenario",
    "--force",
    "--threads",
    "--json",
    "--quiet",
    "--help",
}
FLAGS = {
    "demo": {"--out", "--seed", "--force", "--threads", "--json", "--quiet", "--help"},
    "check": {
        "--format",
        "--option",
        "--repair",
        "--transform",
        "--cluster",
        "--strict",
        "--html",
        "--quiet",
        "--threads",
        "--json",
        "--help",
    },
    "run": SCENARIO_FLAGS | {"--policy", "--audit"},
    "compare": SCENARIO_FLAGS | {"--policies", "--seeds", "--baseline"},
    "sweep": SCENARIO_FLAGS
    | {"--policy", "--axis", "--seeds", "--backend", "--workers", "--summaries-only"},
    "reproduce": {
        "--figure",
        "--quick",
        "--seeds",
        "--set",
        "--workers",
        "--out",
        "--force",
        "--threads",
        "--json",
        "--quiet",
        "--help",
    },
    "explain": {
        "--app",
        "--job",
        "--at",
        "--no-what-if",
        "--threads",
        "--json",
        "--quiet",
        "--help",
    },
    "policies": {"--json", "--quiet", "--help"},
    "auction": {"--seed", "--payment", "--solver", "--json", "--quiet", "--help"},
    "generate": {"--seed", "--set", "--out", "--list", "--threads", "--json", "--help"},
    "convert": {
        "--format",
        "--option",
        "--repair",
        "--to",
        "--out",
        "--threads",
        "--json",
        "--quiet",
        "--help",
    },
    "report": {"--out", "--figures", "--baseline", "--force", "--json", "--quiet", "--help"},
}

HEAVY = ("polars", "numpy", "pydantic", "rich", "altair", "jinja2")


def test_the_overview_is_as_documented(themis: Themis) -> None:
    done = themis("--help")
    assert (done.returncode, done.stdout, done.stderr) == (0, OVERVIEW, "")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_command_has_its_flags_and_the_summary_of_the_overview(name: str) -> None:
    place = COMMANDS[name]
    command = getattr(importlib.import_module(f"themis.cli.{place.module}"), place.name)
    assert command.short_help == place.summary
    help_text = CliRunner().invoke(cli, [name, "--help"]).output
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", help_text)) >= FLAGS[name]
    defined = {flag for option in command.params for flag in option.opts if flag[:2] == "--"}
    assert defined | {"--help"} == FLAGS[name]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_option_says_what_it_does(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def test_help_and_version_load_nothing_heavy() -> None:
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom themis.cli.root import cli\n"
        "for flag, unwanted in (('--help', ('themis._core',)), ('--version', ())):\n"
        "    assert CliRunner().invoke(cli, [flag]).exit_code == 0\n"
        f"    print([name for name in {HEAVY!r} + unwanted if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n[]\n"


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_answer_at_once(flag: str, themis: Themis) -> None:
    def cpu_s() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert themis(flag).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # measured 0.05 s and 0.08 s on two idle cores; twice the target of 0.1 s where others run too
    assert min(cpu_s() for _ in range(5)) < 0.2


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("--nonsense",),
        ("run",),
        ("run", "--nonsense"),
        ("run", "--trace", "x"),
        ("run", "--cluster", "4"),
        ("run", "--trace", "x", "--cluster", "4", "--seed", "one"),
        ("run", "--trace", "x", "--cluster", "4", "--seed", "-1"),
        ("run", "--trace", "x", "--cluster", "4", "--threads", "0"),
        ("run", "--trace", "x", "--cluster", "4", "--set", "lease_s"),
        ("run", "a", "b"),
        ("compare", "--generate", "demo", "--cluster", "4", "--seeds", "0"),
        ("check",),
        ("auction",),
        ("report",),
        ("generate",),
        ("convert",),
        ("convert", "x", "-o", "y", "--to", "json"),
    ],
)
def test_wrong_usage_is_2_with_a_hint_and_nothing_on_stdout(
    arguments: tuple[str, ...], themis: Themis
) -> None:
    done = themis(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: themis")
    assert "Error: " in done.stderr


def test_no_command_shows_the_overview_and_is_wrong_usage(themis: Themis) -> None:
    done = themis()
    assert done.returncode == 2
    assert OVERVIEW in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "themis", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0
