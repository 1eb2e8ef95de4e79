"""What a notebook shows: one well-formed table for each kind of object, every name escaped."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import polars as pl
import pytest

import themis
from themis.notebook import fact_table, grid

EVIL = '"><script>alert(1)</script>&'


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """One of each kind, with hostile names where names go."""
    workload = themis.generate("demo", apps=3)
    first = workload.apps["app_id"][0]
    apps, jobs = (
        frame.with_columns(pl.col("app_id").replace(first, EVIL))
        for frame in (workload.apps, workload.jobs)
    )
    workload = replace(workload, apps=apps, jobs=jobs, notes=(EVIL,))
    machines = pl.DataFrame({"machine": ["m0", "m1"], "gpus": [4, 4], "gpu_type": [EVIL, EVIL]})
    cluster = themis.Cluster.from_frame(machines)
    compared = themis.compare(workload, cluster, policies=["themis", "fifo"], seeds=[0, 1])
    result = compared.results["themis", 0]
    outcome = themis.clear_auction(
        {("r0", "m0", 0): 4}, [themis.Bid(EVIL, 4.0, [([2], 2.0)]), themis.Bid("b", 2.0, [])]
    )
    scenario = {"cluster": {"spec": "1x4"}, "workload": {"generate": "demo", "params": {"apps": 2}}}
    swept = themis.sweep(
        scenario, {"lease_s": [300, 600]}, workers=1, out=tmp_path_factory.mktemp("sweep") / "out"
    )
    return {
        "workload": workload,
        "cluster": cluster,
        "result": result,
        "comparison": compared,
        "outcome": outcome,
        "sweep": swept,
        "explanation": themis.explain(result, app_id=EVIL, what_if=False),
    }


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("workload", ["GPU-hours of work", "&lt;script&gt;"]),
        ("cluster", ["8 GPUs", "&lt;script&gt;"]),
        ("result", ["rho_max"]),
        ("comparison", ["Worst rho", "median of 2 seeds", "fifo"]),
        ("outcome", ["gpus_kept", "&lt;script&gt;"]),
        ("sweep", ["lease_s", "rho_max", "done"]),
        ("explanation", ["arrived", "&lt;script&gt;"]),
    ],
)
def test_every_object_has_an_escaped_table(
    objects: dict[str, object], kind: str, shown: list[str]
) -> None:
    html = objects[kind]._repr_html_()  # type: ignore[attr-defined]
    ET.fromstring(f"<div>{html}</div>")  # noqa: S314 - our own table, to see that it is well formed
    assert "<script" not in html
    assert [text for text in shown if text not in html] == []
    assert len(repr(objects[kind])) > 10


def test_cells_are_short_numbers_and_escaped_text() -> None:
    html = grid("a<b", ["x", "y"], [["n", 12345.678], ["<i>", None], ["k", 1234567]])
    assert "<caption>a&lt;b</caption>" in html
    for cell in ("1.235e+04", "n/a", "1,234,567", "&lt;i&gt;"):
        assert f">{cell}<" in html
    assert "<ul><li>&lt;b&gt;</li></ul>" in fact_table("", [("a", 1)], remarks=["<b>"])


def test_a_loaded_sweep_looks_as_before(objects: dict[str, object]) -> None:
    swept = objects["sweep"]
    assert isinstance(swept, themis.Sweep)
    assert themis.load_sweep(swept.directory)._repr_html_() == swept._repr_html_()
