"""Clusters from machine lists, and capacity by day."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from themis.cluster.cluster import Cluster
from themis.errors import ClusterError, TraceError
from themis.traces.capacity_tables import read_capacity
from themis.traces.machine_lists import MACHINE_FORMATS, read_cluster

LISTS = {
    "philly": (
        "machineId, number of GPUs, single GPU mem\nm2,8, 24GB\nm10,2, 12GB\nm1,8, 24GB\n",
        [("m10", 2, "12GB"), ("m1", 8, "24GB"), ("m2", 8, "24GB")],
    ),
    "pai": (
        "b2,T4,96,512,2\na1,CPU,96,512,0\nc3,MISC,96,512.5,8\na0,T4,96,512,2\n",
        [("c3", 8, "MISC"), ("a0", 2, "T4"), ("b2", 2, "T4")],
    ),
    "openb": (
        "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,0,\nn-1,1,1,8,G2\nn-2,1,1,2,T4\n",
        [("n-1", 8, "G2"), ("n-2", 2, "T4")],
    ),
    "alibaba-spot": (
        "gpu_model,gpu_capacity_num,cpu_num,node_name\nH800,8,192,27\nA10,1,128,2\n",
        [("2", 1, "A10"), ("27", 8, "H800")],
    ),
    "tiresias": (
        "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\r\n2,2,4,128,254\r\n",
        [("r0-m0", 4, "gpu"), ("r0-m1", 4, "gpu"), ("r1-m0", 4, "gpu"), ("r1-m1", 4, "gpu")],
    ),
    "helios": (
        "date,vcA,vcB,total\n2020-04-02,8,4,12\n2020-04-01,8,12,20\n2020-04-03,0,16,16\n",
        [("node-0002", 4, "gpu"), ("node-0000", 8, "gpu"), ("node-0001", 8, "gpu")],
    ),
    "native": (
        "machine,gpus,rack,slot_gpus\nx,4,r1,2\ny,8,r0,\n",
        [("y", 8, "gpu"), ("x", 4, "gpu")],
    ),
}


def test_every_format_has_a_sample() -> None:
    assert set(LISTS) == set(MACHINE_FORMATS) - {"toml"}


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_recognised_and_read(tmp_path: Path, name: str) -> None:
    text, machines = LISTS[name]
    for number, data in enumerate((text.encode(), gzip.compress(text.encode()))):
        path = tmp_path / f"list{number}"
        path.write_bytes(data)
        for format_name in (None, name):
            cluster = read_cluster(path, format_name)
            assert cluster.machines.select("machine", "gpus", "gpu_type").rows() == machines
    header, *rows = text.splitlines()
    lines = [header, *reversed(rows)] if name != "pai" else [*reversed(rows), header]
    path.write_text("\n".join(lines))
    assert read_cluster(path).machines.equals(cluster.machines)


def test_racks_slots_and_other_forms(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(LISTS["tiresias"][0])
    assert str(read_cluster(path)) == "2x(2x4)"
    path.write_text(LISTS["native"][0])
    native = read_cluster(path)
    assert native.machines.select("rack", "slot_gpus").rows() == [("r0", 8), ("r1", 2)]
    pl.read_csv(path).write_parquet(tmp_path / "list.parquet")
    assert read_cluster(tmp_path / "list.parquet").machines.equals(native.machines)
    toml = tmp_path / "cluster.toml"
    toml.write_text('spec = "2x(4x8)"\n')
    assert str(read_cluster(toml)) == str(Cluster.parse("2x(4x8)"))
    path.write_text("machine,gpu_type,cap_cpu,cap_mem,cap_gpu\nm,T4,96,512,2\n")
    assert str(read_cluster(path)) == "1x2:T4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sn,gpu,model\na,2,T4\nb,x,T4\n", r"line 3: not a number in column 'gpu': 'x'"),
        ("sn,gpu,model\na,2,T4\n,2,T4\n", r"line 3: missing value in column 'sn': None"),
        ("sn,gpu,model\na,2.5,T4\n", r"line 2: fraction of a GPU in column 'gpu': '2\.5'"),
        ("sn,gpu,model\na,-2,T4\n", r"line 2: negative number of GPUs in column 'gpu': '-2'"),
        ("sn,gpu,model\na,2\n", r"line 2: too few fields: 'a,2'"),
        ("sn,gpu,model\na,2,T4\na,2,T4\n", "machine 'a' stands 2 times"),
        ("sn,gpu,model\na,0,T4\n", "no machine with a GPU"),
        ("sn,gpu,model\n", "no rows after the header: expected machines"),
        ("apples,pears\n1,2\n", "no cluster and no machine list: found a text file"),
        ("", "the file is empty"),
        ("machine,gpus,slot_gpus\na,4,8\n", "slot_gpus is 8: expected 1 to its 4 GPUs"),
        ("num_switch,num_node_p_switch,num_gpu_p_node\n1,2,4\n1,2,4\n", "2 rows: expected one"),
        ("num_switch,num_node_p_switch,num_gpu_p_node\n0,2,4\n", "is 0: expected a whole number"),
        ("date,total\n2020-04-01,8\n2020-04-01,8\n", "line 2: repeated row in column 'date'"),
        ("date,total\nfirst,8\n", "line 2: unreadable time in column 'date': 'first'"),
        ("date,total\n", "no rows after the header"),
    ],
)
def test_bad_lists_are_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ClusterError, match=r"bad\.csv") as caught:
        read_cluster(path)
    assert caught.match(message)
    assert "\n" not in str(caught.value)


def test_wrong_names_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"format 'opnb' is unknown \(did you mean 'openb'"):
        read_cluster(tmp_path / "x", "opnb")
    with pytest.raises(ClusterError, match="none: no such file"):
        read_cluster(tmp_path / "none")
    (tmp_path / "x.csv").write_text("machine,cards\na,1\n")
    with pytest.raises(ClusterError, match="column 'gpus' is missing"):
        read_cluster(tmp_path / "x.csv", "native")


def test_philly_list_and_log_must_agree(tmp_path: Path) -> None:
    """Case 11: the list says 2 GPUs where jobs used 6."""
    path, log = tmp_path / "list.csv", tmp_path / "log.json"
    path.write_text(
        "machineId, number of GPUs, single GPU mem\nm7,2, 24GB\nm8,8, 24GB\nm9,2, 24GB\n"
    )

    def attempt(machine: str, *gpus: int) -> dict[str, object]:
        return {
            "start_time": "None",
            "end_time": "None",
            "detail": [{"ip": machine, "gpus": [f"gpu{gpu}" for gpu in gpus]}],
        }

    entries = [
        {"jobid": "a", "attempts": []},
        {"jobid": "b", "attempts": [attempt("m8", 0, 7), attempt("m7", 0, 1, 2, 3, 4, 5)]},
        {"jobid": "c", "attempts": [attempt("m7", 5), attempt("m1", 0)]},
        {"jobid": "d", "attempts": [attempt("m9", 2)]},
    ]
    log.write_text(json.dumps(entries))
    with pytest.raises(
        ClusterError, match=r"machine 'm7' has 2 GPUs, but entry 2 of .* uses 6; 2 "
    ):
        read_cluster(path, log=log)
    raised = read_cluster(path, log=log, more="raise")
    assert dict(raised.machines.select("machine", "gpus").rows()) == {"m7": 6, "m8": 8, "m9": 3}
    dropped = read_cluster(path, log=log, more="drop")
    assert dropped.machines["machine"].to_list() == ["m8"]
    with pytest.raises(ClusterError, match="option more is 'keep': expected one of stop"):
        read_cluster(path, log=log, more="keep")
    with pytest.raises(ClusterError, match="expected Philly's job log"):
        read_cluster(path, log=path)


def test_capacity_by_day_as_changes_of_machines(tmp_path: Path) -> None:
    path = tmp_path / "cluster_gpu_number.csv"
    path.write_text(LISTS["helios"][0])
    day = 86_400.0
    assert read_capacity(path).rows() == [
        ("node-0000", 0.0, 8),
        ("node-0001", 0.0, 8),
        ("node-0002", 0.0, 4),
        ("node-0001", day, 4),
        ("node-0002", day, 0),
        ("node-0001", 2 * day, 8),
    ]
    tenant = read_capacity(path, tenant="vcA", origin="2020-04-01T12:00:00")
    assert tenant.rows() == [("node-0000", -day / 2, 8), ("node-0000", 1.5 * day, 0)]
    frame = read_capacity(path)
    held: dict[str, int] = {}
    totals = []
    for _, changes in frame.group_by("at_s", maintain_order=True):
        held.update(changes.select("machine", "gpus").rows())
        totals.append(sum(held.values()))
    assert totals == [20, 12, 16]
    with pytest.raises(TraceError, match="no column 'vcZ' of GPUs by day"):
        read_capacity(path, tenant="vcZ")
    with pytest.raises(TraceError, match="no column 'date' of GPUs"):
        read_capacity(path, tenant="date")
    with pytest.raises(TraceError, match="origin is 'noon': expected an ISO time"):
        read_capacity(path, origin="noon")
