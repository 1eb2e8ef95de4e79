"""Arguments of a wrong type are named in one line of a typed error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import themis
from themis.errors import ThemisError

WRONG: list[Any] = [None, 3, 2.5, b"x", [], {}, True, ""]


def native(folder: Path) -> themis.Workload:
    path = folder / "a.csv"
    path.write_text("id,submit,gpus,duration\na,0,1,5\n")
    return themis.read_trace(path)


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize(
    "read",
    [
        themis.read_trace,
        themis.read_cluster,
        themis.read_capacity,
        themis.load_result,
        themis.Cluster.from_toml,
    ],
)
def test_what_is_no_path_is_named(read: Callable[[Any], object], value: object) -> None:
    with pytest.raises(ThemisError, match="expected a path") as caught:
        read(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [*WRONG[:-1], pl.DataFrame().lazy()], ids=lambda v: str(type(v)))
def test_what_is_no_table_is_named(value: Any, tmp_path: Path) -> None:  # noqa: ANN401 - anything
    with pytest.raises(themis.TraceError, match=r"table 'apps' is a .*: expected a polars"):
        themis.Workload(apps=value, jobs=value)
    with pytest.raises(themis.ClusterError, match=r"machine list is .*: expected a polars"):
        themis.Cluster.from_frame(value)
    with pytest.raises(themis.TraceError, match="expected a path"):
        native(tmp_path).write("" if isinstance(value, pl.LazyFrame) else value)


def test_other_arguments_of_traces(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    native(tmp_path)
    for value in (WRONG[1], WRONG[4], WRONG[5]):
        with pytest.raises(themis.TraceError, match=r"a\.csv: format .* is unknown"):
            themis.read_trace(path, value)
        with pytest.raises(themis.TraceError, match=r"keys is .*: expected a list of columns"):
            native(tmp_path).group_into_apps(gap_s=1, keys=value or "user")
    with pytest.raises(themis.TraceError, match="File name too long"):
        themis.read_trace("x" * 5000)
