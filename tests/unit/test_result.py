from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from themis.errors import ThemisError
from themis.results.result import Result, load_result
from themis.schema.result import RESULT_SCHEMA_VERSION, TABLES


def digest(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_frames_come_out_in_the_written_order_and_types(tiny_result: Result) -> None:
    for name, schema in TABLES.items():
        assert dict(tiny_result.frames[name].schema) == dict(schema)


def test_narrow_types_are_widened_and_order_restored(tiny_result: Result) -> None:
    usage = tiny_result.usage.select(
        pl.col("waiting_apps").cast(pl.UInt32), pl.all().exclude("waiting_apps")
    )
    apps = tiny_result.apps.with_columns(
        pl.lit(None).alias("reason"), pl.col("state").cast(pl.Categorical)
    )
    frames = {**tiny_result.frames, "usage": usage, "apps": apps}
    result = Result(frames=frames, manifest=tiny_result.manifest)
    assert_frame_equal(result.usage, tiny_result.usage)
    assert result.apps.schema == tiny_result.apps.schema


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("rho"), "table 'apps': column 'rho' is missing"),
        (lambda f: f.with_columns(x=pl.lit(1)), "column 'x' is unknown"),
        (lambda f: f.with_columns(pl.col("rho").cast(pl.String)), "'rho' has type String"),
        (
            lambda f: f.with_columns(rho=pl.Series([1.0, None, float("nan")])),
            "column 'rho', row 2: nan where a finite number or null",
        ),
    ],
)
def test_a_wrong_table_is_refused(tiny_result: Result, change, message) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    frames = {**tiny_result.frames, "apps": change(tiny_result.apps)}
    with pytest.raises(ThemisError, match=message):
        Result(frames=frames, manifest=tiny_result.manifest)


def test_missing_and_unknown_tables_are_refused(tiny_result: Result) -> None:
    fewer = {name: frame for name, frame in tiny_result.frames.items() if name != "usage"}
    with pytest.raises(ThemisError, match="'usage' is missing"):
        Result(frames=fewer, manifest=tiny_result.manifest)
    with pytest.raises(ThemisError, match="'gpus' is unknown"):
        Result(frames={**tiny_result.frames, "gpus": tiny_result.apps}, manifest={})


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"seed": 0}, "'policy' is None"),
        ({"policy": "fifo", "seed": "0"}, "'seed' is '0'"),
        ({"policy": "fifo", "seed": True}, "'seed' is True"),
        ({"policy": "fifo", "seed": 0, "schema_version": 99}, "schema version 99"),
        ({"policy": "fifo", "seed": 0, "x": float("nan")}, "cannot be written as JSON"),
    ],
)
def test_an_incomplete_manifest_is_refused(
    tiny_result: Result, manifest: dict[str, object], message: str
) -> None:
    with pytest.raises(ThemisError, match=message):
        Result(frames=tiny_result.frames, manifest=manifest)


def test_a_result_is_frozen_and_pickles(tiny_result: Result) -> None:
    with pytest.raises(FrozenInstanceError):
        tiny_result.manifest = {}  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(tiny_result))  # noqa: S301 - our own bytes
    assert copy.summary() == tiny_result.summary()
    summary = tiny_result.summary()
    summary["apps"] = 99
    assert tiny_result.summary()["apps"] == 3


def test_repr_is_one_short_line_and_html_is_escaped(tiny_result: Result) -> None:
    assert repr(tiny_result) == (
        "Result(policy='themis', seed=0, apps=3, 1 unfinished, jobs=3, rho_max=2, makespan_s=210)"
    )
    evil = Result(
        frames=tiny_result.frames, manifest={**tiny_result.manifest, "policy": "<script>"}
    )
    assert "<script>" not in evil._repr_html_()
    assert "&lt;script&gt;" in evil._repr_html_()


def test_writing_and_loading_gives_the_same_result(tiny_result: Result, tmp_path: Path) -> None:
    directory = tiny_result.write(tmp_path / "deep" / "run")
    assert sorted(digest(directory)) == sorted(
        ["manifest.json", "summary.json", *(f"{name}.parquet" for name in TABLES)]
    )
    loaded = load_result(directory)
    for name in TABLES:
        assert_frame_equal(loaded.frames[name], tiny_result.frames[name])
    assert loaded.manifest == tiny_result.manifest
    assert loaded.summary() == tiny_result.summary()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]


def test_the_same_result_gives_the_same_bytes(tiny_result: Result, tmp_path: Path) -> None:
    first = digest(tiny_result.write(tmp_path / "one"))
    again = digest(load_result(tmp_path / "one").write(tmp_path / "two"))
    assert first == again


def test_every_file_carries_the_schema_version(tiny_result: Result, tmp_path: Path) -> None:
    directory = tiny_result.write(tmp_path / "run")
    for name in TABLES:
        metadata = pl.read_parquet_metadata(directory / f"{name}.parquet")
        assert metadata["themis.schema_version"] == str(RESULT_SCHEMA_VERSION)
    for name in ("manifest", "summary"):
        document = json.loads((directory / f"{name}.json").read_text())
        assert document["schema_version"] == RESULT_SCHEMA_VERSION


def test_an_earlier_result_is_replaced_and_foreign_files_are_not(
    tiny_result: Result, tmp_path: Path
) -> None:
    target = tmp_path / "run"
    tiny_result.write(target)
    (target / "summary.json").write_text("{}")
    tiny_result.write(target)
    assert load_result(target).summary() == tiny_result.summary()
    assert (target / "summary.json").read_text() != "{}"
    (target / "notes.txt").write_text("mine")
    with pytest.raises(ThemisError, match=r"holds 'notes\.txt', which Themis did not write"):
        tiny_result.write(target)
    assert (target / "notes.txt").read_text() == "mine"
    tiny_result.write(target, force=True)
    assert not (target / "notes.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_file_the_working_directory_and_the_home_are_never_replaced(
    tiny_result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ThemisError, match="is not a directory"):
        tiny_result.write(tmp_path / "file", force=True)
    (tmp_path / "work" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "inner")
    with pytest.raises(ThemisError, match="name a directory of its own"):
        tiny_result.write(tmp_path / "work", force=True)
    with pytest.raises(ThemisError, match="name a directory of its own"):
        tiny_result.write(Path.home(), force=True)


def test_a_failing_write_leaves_no_trace(
    tiny_result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tiny_result.write(tmp_path / "run")
    before = digest(target)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(ThemisError, match="run: cannot be written: No space left"):
        tiny_result.write(target)
    assert digest(target) == before
    with pytest.raises(ThemisError, match="No space left"):
        tiny_result.write(tmp_path / "new" / "deep" / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_damage_is_named_when_loading(tiny_result: Result, tmp_path: Path) -> None:
    with pytest.raises(ThemisError, match="nowhere: no such directory"):
        load_result(tmp_path / "nowhere")

    def broken(change: str, content: str | None) -> Path:
        directory = tiny_result.write(tmp_path / "run", force=True)
        path = directory / change
        path.unlink()
        if content is not None:
            path.write_text(content)
        return directory

    cases = [
        ("manifest.json", None, r"manifest\.json: no such file"),
        ("manifest.json", "{", r"manifest\.json: not valid JSON"),
        ("manifest.json", "[]", r"manifest\.json: expected a JSON object, found list"),
        ("manifest.json", "{}", r"manifest\.json: kind is None"),
        ("manifest.json", '{"kind": "result", "schema_version": 7}', "schema version 7"),
        ("manifest.json", '{"kind": "result", "schema_version": 4}', "field 'rows' is None"),
        ("leases.parquet", None, r"leases\.parquet: file is missing"),
        ("leases.parquet", "PAR1", r"leases\.parquet: not a readable Parquet file"),
    ]
    for name, content, message in cases:
        with pytest.raises(ThemisError, match=message):
            load_result(broken(name, content))


def test_wrong_tables_are_named_when_loading(tiny_result: Result, tmp_path: Path) -> None:
    directory = tiny_result.write(tmp_path / "run")
    version = {"themis.schema_version": str(RESULT_SCHEMA_VERSION)}
    tiny_result.usage.head(2).write_parquet(directory / "usage.parquet", metadata=version)
    with pytest.raises(ThemisError, match=r"usage\.parquet: 2 rows: the manifest says 7"):
        load_result(directory)
    tiny_result.usage.drop("at_s").write_parquet(directory / "usage.parquet", metadata=version)
    with pytest.raises(ThemisError, match=r"usage\.parquet: column 'at_s' is missing"):
        load_result(directory)
    tiny_result.usage.write_parquet(directory / "usage.parquet")
    with pytest.raises(ThemisError, match=r"usage\.parquet: schema version None"):
        load_result(directory)
