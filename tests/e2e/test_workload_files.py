"""``themis generate`` and ``themis convert`` as a user runs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from themis.synthetic import SPECS, generate
from themis.traces import read_trace

Themis = Callable[..., subprocess.CompletedProcess[str]]
DATA = Path(__file__).parents[1] / "data"


def test_generate_writes_what_python_makes(tmp_path: Path, themis: Themis) -> None:
    done = themis(
        "generate", "nsdi20-w2", "--seed", "3", "--set", "contention=2", "--set", "gangs=[1, 2]",
        "-o", "out", "--json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    expected = generate("nsdi20-w2", 3, contention=2, gangs=[1, 2])
    assert read_trace(tmp_path / "out").equals(expected)
    assert (said["apps"], said["jobs"], said["gpu_s"]) == (31, 565, expected.gpu_seconds)
    assert said["sha256"] == expected.source.sha256
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    arguments = ("--seed", "3", "--set", "gangs=[1, 2]", "--set", "contention=2", "-o", "again")
    themis("generate", "nsdi20-w2", *arguments, PYTHONHASHSEED="7")
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == files


def test_generate_lists_workloads_and_parameters(themis: Themis) -> None:
    done = themis("generate", "--list")
    assert [name for name in SPECS if f"\n{name}" not in done.stdout] == []
    done = themis("generate", "mix", "--list")
    assert "network_share" in done.stdout
    listed = json.loads(themis("generate", "--list", "--json").stdout)["workloads"]
    assert [one["name"] for one in listed] == list(SPECS)
    assert all(p["meaning"] and p["source"] for one in listed for p in one["parameters"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nsdi20-w9", "-o", "x"), 3, "workload 'nsdi20-w9' is unknown (did you mean"),
        (("nsdi20-w1", "-o", "x", "--set", "ap=3"), 3, "ap: unknown key (did you mean 'apps'?)"),
        (("nsdi20-w1", "-o", "x", "--set", "seed=3"), 3, "parameter 'seed' is unknown"),
        (("nsdi20-w1", "-o", "jobs.csv"), 3, "jobs.csv: cannot be written"),
        (("nsdi20-w1",), 2, "--list shows the workloads"),
        (("-o", "x"), 2, "--list shows the workloads"),
    ],
)
@pytest.mark.usefixtures("trace")
def test_generate_refuses(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path, themis: Themis
) -> None:
    done = themis("generate", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]


@pytest.mark.parametrize("name", ["hyperdrive.csv", "philly_log.json", "philly_pollux.csv"])
def test_convert_keeps_the_workload_and_goes_to_csv_and_back(
    name: str, tmp_path: Path, themis: Themis
) -> None:
    for source, form, place in (
        (str(DATA / name), "parquet", "one"),
        ("one", "csv", "two"),
        ("two", "parquet", "three"),
    ):
        done = themis("convert", source, "--to", form, "-o", place, "--quiet")
        assert (done.returncode, done.stderr) == (0, "")
    original = read_trace(DATA / name)
    for place in ("one", "two", "three"):
        assert read_trace(tmp_path / place).equals(original)
    assert read_trace(tmp_path / "one").source.origin == original.source.origin
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["apps.csv", "jobs.csv"]


def test_convert_takes_options_of_the_format(tmp_path: Path, themis: Themis) -> None:
    path = str(DATA / "hyperdrive.csv")
    done = themis("convert", path, "--option", "jobs_at=start", "-o", "out", "--json")
    assert json.loads(done.stdout)["jobs"] == read_trace(tmp_path / "out").jobs.height
    assert read_trace(tmp_path / "out").equals(read_trace(path, jobs_at="start"))
    for arguments, message in (
        (("--option", "jobs=start"), "has no option 'jobs'"),
        (("--format", "philly"), "not a philly trace"),
        (("--option", "format=philly"), "option 'format' is unknown: it is a flag"),
    ):
        refused = themis("convert", path, *arguments, "-o", "none")
        assert (refused.returncode, refused.stdout) == (3, "")
        assert message in refused.stderr


def test_tables_of_both_forms_in_one_place_are_refused(themis: Themis) -> None:
    assert themis("convert", str(DATA / "hyperdrive.csv"), "-o", "out").returncode == 0
    done = themis("convert", "out", "--to", "csv", "-o", "out")
    assert done.returncode == 3
    assert "jobs.parquet: is there already" in done.stderr


def test_a_scenario_generates_with_parameters(tmp_path: Path, themis: Themis) -> None:
    text = (
        '[cluster]\nspec = "nsdi20-testbed"\n[workload]\ngenerate = "mix"\n'
        "params = {network_share = 0.8, mean_job_gpu_h = 0.5}\n[policy]\nname = 'fifo'\n"
    )
    (tmp_path / "s.toml").write_text(text)
    from_file = themis("run", "s.toml", "--json", "--quiet")
    flags = ("--option", "network_share=0.8", "--option", "mean_job_gpu_h=0.5")
    from_flags = themis(
        "run", "--generate", "mix", *flags, "--cluster", "8x2+12x4", "--policy", "fifo", "--json",
        "--quiet",
    )  # fmt: skip
    assert (from_file.returncode, from_file.stderr) == (0, "")
    summary = json.loads(from_file.stdout)["summary"]  # the manifests name the cluster differently
    assert summary == json.loads(from_flags.stdout)["summary"]
    assert summary["jobs_done"] == 113
