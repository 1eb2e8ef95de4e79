"""Hostile TOML and JSON: one line each, whatever is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import themis
from themis.arguments import MOST_SEEDS
from themis.auction.file import read_auction
from themis.comparison.comparing import compare
from themis.errors import ScenarioError, ThemisError
from themis.files import documents
from themis.files.documents import toml_tables
from themis.scenario.scenario import Scenario
from themis.settings.overrides import parse_text_value
from themis.sweeps import sweep

READERS: dict[str, Callable[[Path], object]] = {
    "scenario": Scenario.load,
    "cluster": themis.Cluster.from_toml,
    "auction": read_auction,
    "result": lambda path: themis.load_result(path.parent),
}
DEEP_TOML = {
    "arrays": "x = " + "[" * 100_000 + "]" * 100_000,
    "inline tables": "x = " + "{a=" * 50_000 + "1" + "}" * 50_000,
    "keys": "a" + ".a" * 100_000 + " = 1",
    "quoted keys": '"a"' + ' . "a"' * 100_000 + " = 1",
    "headers": "[a" + ".a" * 100_000 + "]",
    "keys inside": "x = {a" + ".a" * 100_000 + " = 1}",
    "digits": "x = " + "9" * 10_000,
}
BASE = {"workload": {"generate": "demo"}, "cluster": {"spec": "1x8"}}


@pytest.mark.parametrize("reader", ["scenario", "cluster"])
@pytest.mark.parametrize("text", DEEP_TOML.values(), ids=DEEP_TOML)
def test_toml_without_end_is_refused(reader: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ThemisError, match=r"deep\.toml: not valid TOML: ") as caught:
        READERS[reader](path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("reader", ["auction", "result"])
@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, '{"a": ' + "9" * 10_000 + "}"])
def test_json_without_end_is_refused(reader: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ThemisError, match=r"manifest\.json: not valid JSON: "):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_devices_pipes_and_large_files_are_not_read(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_MOST_BYTES", 1 << 20)
    path = tmp_path / "manifest.json"
    os.mkfifo(path)
    with pytest.raises(ThemisError, match="a device or pipe"):
        READERS[reader](path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ThemisError, match="a device or pipe"):
        READERS[reader](path)
    path.unlink()
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(ThemisError, match="more than 1 MiB"):
        READERS[reader](path)


def test_ordinary_dots_are_no_long_key() -> None:
    text = "values = [" + ", ".join(f"{at}.5" for at in range(10_000)) + "]\n[a.b.c]\nx.y = '...'"
    assert toml_tables(text)["a"] == {"b": {"c": {"x": {"y": "..."}}}}
    assert toml_tables("x" * 100_000 + " = 1") == {"x" * 100_000: 1}


@pytest.mark.parametrize("text", ["[" * 50_000, "{a=" * 50_000, "9" * 10_000])
def test_values_of_flags_are_text_where_they_are_no_toml(text: str) -> None:
    assert parse_text_value(text) == text


def test_counts_without_end_are_refused_before_anything_runs() -> None:
    many = [float(value) for value in range(1, 102)]
    with pytest.raises(ScenarioError, match="the grid has 1030301 points: expected at most"):
        sweep(BASE, {"lease_s": many, "restart_s": many, "checkpoint_s": many})
    with pytest.raises(ScenarioError, match="axis seed has more than 10000 values"):
        sweep(BASE, {"seed": range(10**12)})
    with pytest.raises(ScenarioError, match=r"sweep\.seeds = 1000000000000: must be <= 10000"):
        sweep({**BASE, "sweep": {"seeds": 10**12}})
    workload = themis.generate("demo", apps=3)
    with pytest.raises(ScenarioError, match=f"more than {MOST_SEEDS} seeds"):
        compare(workload, themis.Cluster.parse("1x8"), policies=["fifo"], seeds=range(10**12))
