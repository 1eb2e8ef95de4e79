"""Clusters: short forms, machine lists, files, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from themis import Cluster, ClusterError


def rows(cluster: Cluster) -> list[tuple[Any, ...]]:
    return cluster.machines.select("rack", "gpu_type", "gpus", "slot_gpus").rows()


def test_uniform_machines_are_spread_over_racks() -> None:
    cluster = Cluster.uniform(machines=5, gpus_per_machine=8, racks=2, slot_gpus=4, gpu_type="v100")
    assert rows(cluster) == [("r0", "v100", 8, 4)] * 3 + [("r1", "v100", 8, 4)] * 2
    assert cluster.machines.get_column("machine").to_list() == [
        "r0-m0", "r0-m1", "r0-m2", "r1-m0", "r1-m1",
    ]  # fmt: skip
    assert (cluster.gpus, cluster.racks, cluster.gpu_types) == (40, 2, ("v100",))


@pytest.mark.parametrize(
    ("text", "machines"),
    [
        ("32x8", [("r0", "gpu", 8, 8)] * 32),
        ("2x(2x4)", [("r0", "gpu", 4, 4)] * 2 + [("r1", "gpu", 4, 4)] * 2),
        ("1x(2x4+1x2/1)", [("r0", "gpu", 4, 4)] * 2 + [("r0", "gpu", 2, 1)]),
        ("2X( 1 x 8 : a100 / 4 )", [("r0", "a100", 8, 4), ("r1", "a100", 8, 4)]),
        ("1x(1x4)+1x2+3x1", [("r0", "gpu", 4, 4), ("r1", "gpu", 2, 2)] + [("r1", "gpu", 1, 1)] * 3),
    ],
)
def test_short_forms(text: str, machines: list[tuple[Any, ...]]) -> None:
    cluster = Cluster.parse(text)
    assert rows(cluster) == machines
    assert Cluster.parse(str(cluster)).machines.equals(cluster.machines)


@pytest.mark.parametrize(
    "text",
    ["", "8", "x8", "0x8", "8x0", "2x(8x8", "2x8)", "2x()", "8x8/9", "8x8/0", "2x(2x(8x8))",
     "8x8,", "-1x8", "8x8+", "1.5x8", "99999999x1", "4000x(4000x8)"],
)  # fmt: skip
def test_bad_short_forms_are_refused(text: str) -> None:
    with pytest.raises(ClusterError, match="cluster ") as caught:
        Cluster.parse(text)
    assert repr(text) in str(caught.value)


def test_a_slot_larger_than_what_is_left_takes_the_remainder() -> None:
    assert str(Cluster.parse("1x7/4")) == "1x7/4"
    assert Cluster.parse("1x7/4").gpus == 7


@pytest.mark.parametrize(
    "arguments",
    [
        {"machines": 0},
        {"machines": -1},
        {"machines": 2.0},
        {"machines": True},
        {"gpus_per_machine": 0},
        {"gpus_per_machine": 2**30},
        {"racks": 0},
        {"racks": 3},
        {"slot_gpus": 0},
        {"slot_gpus": 9},
        {"slot_gpus": 2.5},
        {"slot_gpus": "2"},
        {"machines": 2**24},
    ],
)
def test_bad_counts_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ClusterError, match="expected"):
        Cluster.uniform(**{"machines": 2, "gpus_per_machine": 8, **arguments})


def test_a_machine_list_in_any_order() -> None:
    frame = pl.DataFrame(
        {"machine": ["b", "a", "c"], "gpus": [4, 8, 2], "rack": ["r2", "r1", "r2"]}
    )
    cluster = Cluster.from_frame(frame)
    assert cluster.machines.get_column("machine").to_list() == ["a", "b", "c"]
    assert rows(cluster) == [("r1", "gpu", 8, 8), ("r2", "gpu", 4, 4), ("r2", "gpu", 2, 2)]
    assert Cluster.from_frame(frame.reverse()).machines.equals(cluster.machines)


def test_nulls_in_a_machine_list_have_their_defaults() -> None:
    frame = pl.DataFrame(
        {
            "machine": ["a", "b"],
            "gpus": [4.0, 8.0],
            "rack": [None, "r0"],
            "gpu_type": [None, "a100"],
            "slot_gpus": [None, 4],
        }
    )
    assert rows(Cluster.from_frame(frame)) == [("r0", "gpu", 4, 4), ("r0", "a100", 8, 4)]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"machine": ["a"]}, "'gpus' is missing"),
        ({"gpus": [4]}, "'machine' is missing"),
        ({"machine": ["a"], "gpus": [4], "cores": [8]}, "'cores' is unknown"),
        ({"machine": ["a", "a"], "gpus": [4, 4]}, "'a' stands 2 times"),
        ({"machine": ["a", ""], "gpus": [4, 4]}, "has no name"),
        ({"machine": ["a", None], "gpus": [4, 4]}, "row .* machine is missing"),
        ({"machine": ["a"], "gpus": [None]}, "gpus is missing"),
        ({"machine": ["a"], "gpus": [0]}, "gpus is 0"),
        ({"machine": ["a"], "gpus": [-4]}, "gpus is -4"),
        ({"machine": ["a"], "gpus": [2.5]}, "gpus is 2.5"),
        ({"machine": ["a"], "gpus": [float("nan")]}, "gpus is NaN"),
        ({"machine": ["a"], "gpus": [float("inf")]}, "gpus is inf"),
        ({"machine": ["a"], "gpus": [1e19]}, "gpus"),
        ({"machine": ["a"], "gpus": [True]}, "gpus is a truth value"),
        ({"machine": ["a"], "gpus": ["four"]}, "gpus"),
        ({"machine": ["a"], "gpus": [4], "slot_gpus": [5]}, "slot_gpus is 5"),
        ({"machine": ["a", "b"], "gpus": [2**24, 1]}, "the cluster has 16777217 GPUs"),
    ],
)
def test_bad_machine_lists_are_refused(columns: dict[str, list[Any]], says: str) -> None:
    with pytest.raises(ClusterError, match=f"(?i){says}"):
        Cluster.from_frame(pl.DataFrame(columns, strict=False))


def test_an_empty_cluster_is_refused() -> None:
    empty = Cluster.parse("1x1").machines.clear()
    with pytest.raises(ClusterError, match="no machine"):
        Cluster(empty)


def test_racks_that_alternate_are_still_two() -> None:
    machines = Cluster.parse("1x(2x2)+1x(1x2)").machines
    mixed = Cluster(machines[[0, 2, 1]])
    assert str(mixed) == "1x(2x2)+1x(1x2)"
    assert mixed.describe()["racks"] == 2


def test_toml_files(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('spec = "2x(4x8)"\n', encoding="utf-8")
    assert str(Cluster.from_toml(file)) == "2x(4x8)"
    file.write_text(
        '[[machines]]\nmachine = "a"\ngpus = 4\n\n[[machines]]\nmachine = "b"\ngpus = 8\n'
        'slot_gpus = 4\nrack = "r1"\n',
        encoding="utf-8",
    )
    assert rows(Cluster.from_toml(str(file))) == [("r0", "gpu", 4, 4), ("r1", "gpu", 8, 4)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected either spec"),
        ("spec = 4\n", "expected either spec"),
        ('spec = "2x8"\n[[machines]]\nmachine = "a"\ngpus = 4\n', "expected either spec"),
        ('spec = "2y8"\n', "'2y8'"),
        ("machines = []\n", "expected either spec"),
        ("machines = [1, 2]\n", "expected tables"),
        ('[[machines]]\nmachine = "a"\ngpus = "x"\n', "gpus"),
        ('[[machines]]\nmachine = "a"\ngpus = 2.5\n', "gpus is 2.5"),
        ('[[machines]]\nmachine = "a"\ngpus = 4\ncolour = "red"\n', "'colour' is unknown"),
        ("cluster = 1\n", "'cluster' is unknown"),
        ("spec = \n", "not valid TOML"),
    ],
)
def test_bad_toml_files_name_themselves(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ClusterError, match=says) as caught:
        Cluster.from_toml(file)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"none\.toml: no such file"):
        Cluster.from_toml(tmp_path / "none.toml")
    with pytest.raises(ClusterError, match="a directory: expected a file"):
        Cluster.from_toml(tmp_path)


def test_clusters_describe_themselves_and_errors_travel() -> None:
    assert Cluster.parse("2x(4x8:a100/4)").describe() == {
        "spec": "2x(4x8:a100/4)",
        "gpus": 64,
        "machines": 8,
        "racks": 2,
        "gpu_types": ["a100"],
    }
    with pytest.raises(ClusterError) as caught:
        Cluster.parse("?")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("name", "gpus", "by_size"),
    [
        ("nsdi20-testbed", 64, {2: 8, 4: 12}),
        ("nsdi20-sim", 256, {8: 16, 4: 28, 1: 16}),
        ("nsdi20-authors", 256, {4: 48, 2: 24, 1: 16}),
        ("nsdi20-lying", 64, {8: 1, 2: 28}),
    ],
)
def test_the_papers_clusters(name: str, gpus: int, by_size: dict[int, int]) -> None:
    cluster = Cluster.preset(name)
    assert cluster.machines.equals(Cluster.parse(name).machines)
    assert cluster.gpus == gpus
    assert dict(cluster.machines["gpus"].value_counts().iter_rows()) == by_size


def test_a_mistyped_preset_is_named() -> None:
    with pytest.raises(ClusterError, match=r"did you mean 'nsdi20-sim'\?"):
        Cluster.preset("nsdi20-sin")
    with pytest.raises(ClusterError, match=r"did you mean 'nsdi20-sim'\?"):
        Cluster.parse("nsdi20-sin")
