"""What scripts read of ``--json``: one document a command, whose keys are never lost or renamed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from themis.cli.root import COMMANDS, cli

ON_8 = ("--trace", "jobs.csv", "--cluster", "2x4")
AUCTION = {
    "offer": [[0, 0, 0, 4]],
    "bids": [{"app_id": "a", "rho_empty": 8, "rows": [[[4], 2]]}],
}
KEYS: Mapping[tuple[str, ...], str] = {
    ("demo", "--out", "demo"): "policies seeds complete baseline runs winners differences report",
    ("check", "jobs.csv"): (
        "paths format recognised sha256 rows jobs_read rejected problems jobs apps users tenants "
        "gpu_s first_s last_s span_s gangs notes clean passed censoring load"
    ),
    ("run", *ON_8): "manifest summary tenants path",
    ("run", *ON_8, "--print-scenario"): "schema_version seed cluster workload policy settings",
    ("compare", *ON_8, "--policies", "fifo,themis"): (
        "policies seeds complete baseline runs winners differences report"
    ),
    ("sweep", *ON_8, "--axis", "lease_s=300,600", "--workers", "1"): (
        "axes complete failed runs path"
    ),
    ("explain", "kept", "--app", "c"): (
        "app job policy seed why at_s timeline waits winners holders bids changes auction "
        "smallest_change notes"
    ),
    ("policies",): "policies",
    ("auction", "auction.json"): (
        "payment solver objective upper_bound gap allocation payments leftovers bids winners "
        "reasons"
    ),
    ("generate", "demo", "-o", "made"): "format apps jobs gpu_s last_arrival_s notes path",
    ("generate", "--list"): "workloads",
    ("convert", "jobs.csv", "-o", "made"): "format apps jobs gpu_s last_arrival_s notes path",
    ("report", "kept", "-o", "page.html"): "report figures",
}
APART = {"reproduce"}
"""Minutes long: its document is read in `tests/e2e/test_reproduce.py`."""


def test_every_command_that_prints_json_is_here() -> None:
    assert {command for command, *_ in KEYS} == set(COMMANDS) - APART


@pytest.mark.parametrize(
    "command", KEYS, ids=lambda command: "-".join(word.strip("-") for word in command[:2])
)
def test_a_document_has_its_keys(
    command: tuple[str, ...], trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace.parent)
    Path("auction.json").write_text(json.dumps(AUCTION), encoding="utf-8")
    if "kept" in command:
        assert CliRunner().invoke(cli, ["run", *ON_8, "--out", "kept", "--quiet"]).exit_code == 0
    done = CliRunner().invoke(cli, [*command, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout, parse_constant=pytest.fail)  # neither NaN nor Infinity
    assert set(KEYS[command].split()) <= set(document)
