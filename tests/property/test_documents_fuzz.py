"""Damaged scenarios, clusters, auctions and results: read, or refused in one message.

The files below `corpus` are read as they are in every run, and are what the damage begins with.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.damage import EDITS, ENCODINGS, damaged

import themis
from themis.auction.file import read_auction
from themis.errors import ThemisError
from themis.results.result import Result
from themis.scenario.scenario import Scenario
from themis.schema.result import TABLES

CORPUS = Path(__file__).parent / "corpus"
READ = {"docs", "spec", "machines", "full", "control_characters", "too_many_gpus_of_a_cluster"}
"""Files that are in order: a scenario opens neither cluster nor trace before it is built."""

EXAMPLES = int(os.environ.get("THEMIS_FUZZ_EXAMPLES", "60"))
CHECKED = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def scenario(path: Path) -> bool:
    """A scenario says the same when it is written and read again."""
    found = Scenario.load(path)
    again = path.with_name("again.toml")
    again.write_text(found.to_toml(), encoding="utf-8")
    return Scenario.load(again) == found


def cluster(path: Path) -> bool:
    """A cluster has as many GPUs as its machines."""
    found = themis.Cluster.from_toml(path)
    return found.gpus == found.machines["gpus"].sum()


def auction(path: Path) -> bool:
    """No more GPUs are granted than there are."""
    request = read_auction(path)
    offered = sum(request.offer.gpus)
    return int(request.clear().allocation["gpus"].sum()) <= offered


def result(path: Path) -> bool:
    """A result that loads has a summary and can be audited."""
    found = themis.load_result(path.parent)
    return bool(found.summary()) and themis.audit(found) is not None


KINDS: dict[str, Callable[[Path], bool]] = {
    "scenario": scenario,
    "cluster": cluster,
    "auction": auction,
}


def holds_or_is_refused(check: Callable[[Path], bool], path: Path) -> bool:
    """Whether it was read; a refusal is one message with the name of the file."""
    message = refusal(lambda: check(path))
    if message is None:
        return True
    assert path.name in message
    assert all(line.startswith("  ") for line in message.split("\n")[1:])
    return False


def refusal(check: Callable[[], bool]) -> str | None:
    """The message of a refusal; None where all is as it should be."""
    try:
        assert check()
    except ThemisError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "file", sorted(CORPUS.rglob("*.*")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_the_corpus_is_read_or_refused(file: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(file, tmp_path))
    assert holds_or_is_refused(KINDS[file.parent.name], path) == (file.stem in READ)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_documents_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    samples = [file.read_bytes() for file in sorted((CORPUS / kind).iterdir())]
    path = tmp_path / "damaged"
    read = 0

    @CHECKED
    @given(st.sampled_from(samples), EDITS.map(lambda edits: edits[:3]), ENCODINGS)
    def try_one(sample: bytes, edits: list[tuple[float, str, bytes]], encoding: str) -> None:
        nonlocal read
        path.write_bytes(damaged(sample, edits, encoding))
        read += holds_or_is_refused(KINDS[kind], path)

    try_one()
    assert read  # damage that is always refused would test little


@pytest.fixture(scope="module")
def sound() -> Result:
    workload = themis.generate("demo", apps=3)
    return themis.simulate(workload, themis.Cluster.parse("1x8"), policy="themis")


@pytest.mark.parametrize("name", ["manifest.json", "leases.parquet", "apps.parquet"])
def test_damaged_results_are_read_or_refused(name: str, sound: Result, tmp_path: Path) -> None:
    folder = sound.write(tmp_path / "result")
    whole = (folder / name).read_bytes()

    @CHECKED
    @given(EDITS.map(lambda edits: edits[:2]), ENCODINGS)
    def try_one(edits: list[tuple[float, str, bytes]], encoding: str) -> None:
        (folder / name).write_bytes(damaged(whole, edits, encoding))
        assert name in (refusal(lambda: result(folder / name)) or name)

    try_one()


def forged(draw: st.DrawFn, frame: pl.DataFrame) -> pl.DataFrame:
    """The table with one cell changed: the manifest gives the number of rows away."""
    if frame.is_empty():
        return frame
    row = draw(st.integers(0, frame.height - 1))
    name = draw(st.sampled_from(frame.columns))
    kind = frame.schema[name]
    value: object
    if kind == pl.String:
        value = draw(st.sampled_from([None, "", "\x1b", "app-01", "done", "auction"]))
    elif kind == pl.Boolean:
        value = draw(st.sampled_from([None, True, False]))
    elif kind.is_integer():
        top = 2**31 - 1 if kind in (pl.Int32, pl.UInt32) else 2**53
        value = draw(st.sampled_from([None, 0, 1, 7, top]))
    else:
        value = draw(st.sampled_from([None, 0.0, -1.0, 1e-9, 1e18, -1e18, 600.0]))
    changed = pl.Series(name, [*frame[name].head(row), value, *frame[name].slice(row + 1)], kind)
    return frame.with_columns(changed)


@CHECKED
@given(st.data())
def test_the_audit_of_forged_tables_finds_or_refuses(sound: Result, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TABLES)))
    frame = data.draw(st.composite(forged)(sound.frames[name]))

    def found_or_refused() -> bool:
        run = Result(frames={**sound.frames, name: frame}, manifest=sound.manifest)
        run.summary()
        return all(finding.rows for finding in themis.audit(run).findings)

    assert "\n" not in (refusal(found_or_refused) or "")
