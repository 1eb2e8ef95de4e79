"""Explanations of small runs that can be followed by hand, and of larger ones against tables."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.explanations.spans import Span, minus, union
from themis.scenario.scenario import Scenario

TWO = "id,submit_s,gpus,duration,user,app_id\na1,0,4,900,ann,a\nb1,60,4,900,bob,b\n"


@pytest.fixture
def queue(tmp_path: Path) -> themis.Workload:
    """App a holds all four GPUs for 900 s; b asks for them at 60 s."""
    path = tmp_path / "two.csv"
    path.write_text(TWO, encoding="utf-8")
    return themis.read_trace(path)


@pytest.fixture(scope="module")
def demo() -> themis.Result:
    cluster = themis.Cluster.parse("2x(2x4)")
    return themis.simulate(themis.generate("demo"), cluster, policy="themis")


def changes_of(explanation: themis.Explanation) -> dict[str, float | None]:
    assert explanation.changes is not None
    return dict(explanation.changes.select("change", "start_s").iter_rows())


def test_a_wait_behind_one_job_is_told_as_it_was(queue: themis.Workload) -> None:
    run = themis.simulate(queue, themis.Cluster.parse("1x4"), policy="fifo", restart_s=0)
    found = themis.explain(run, app_id="b")
    assert found.waits.rows() == [(60.0, 900.0, 840.0)]
    assert found.holders.select("app_id", "gpu_s", "gpus_mean", "share").rows() == [
        ("a", 840.0 * 4, 4.0, 1.0)
    ]
    assert found.at_s == 900.0
    assert found.winners.rows() == [("b", 4, "policy")]
    assert found.timeline.select("at_s", "event", "gpus").rows() == [
        (60.0, "arrived", 0),
        (60.0, "waits", 0),
        (900.0, "got GPUs", 4),
        (1800.0, "released", 0),
        (1800.0, "ended", 0),
    ]
    assert found.bids is None
    assert found.auction is None


def test_one_more_machine_is_what_helps_behind_one_job(queue: themis.Workload) -> None:
    run = themis.simulate(queue, themis.Cluster.parse("1x4"), policy="fifo", restart_s=0)
    found = themis.explain(run, job_id="b1")
    tried = changes_of(found)
    assert tried["submitted 60.0 s earlier"] is None  # a comes first in the order of ids
    assert tried["gangs of half the size"] is None  # a holds all
    assert tried["one more machine (4 GPUs)"] == 60.0
    assert found.smallest_change is not None
    assert found.smallest_change["kind"] == "machine"
    assert found.smallest_change["sooner_s"] == 840.0


def test_half_a_gang_helps_where_a_part_is_free(tmp_path: Path) -> None:
    path = tmp_path / "part.csv"
    path.write_text(TWO.replace("a1,0,4", "a1,0,2"), encoding="utf-8")
    run = themis.simulate(themis.read_trace(path), themis.Cluster.parse("1x4"), policy="fifo")
    assert changes_of(themis.explain(run, app_id="b"))["gangs of half the size"] == 60.0


def test_another_gpu_type_helps_where_one_is_free(queue: themis.Workload) -> None:
    cluster = themis.Cluster.parse("1x(1x4:a100)+1x(1x4:v100)")
    bound = queue.apps.with_columns(gpu_types=pl.lit("a100"))
    run = themis.simulate(replace(queue, apps=bound), cluster, policy="fifo")
    tried = changes_of(themis.explain(run, app_id="b"))
    assert tried["any GPU type"] == 60.0
    assert tried["one more machine of type a100 (4 GPUs)"] == 60.0
    assert tried["one more machine of type v100 (4 GPUs)"] is None


def test_twice_the_weight_helps_where_a_policy_goes_by_rho(tmp_path: Path) -> None:
    # Both want the one GPU at 0 and need 20 s: alike, a goes first; b is owed more by weight.
    path = tmp_path / "pair.csv"
    path.write_text("id,submit_s,gpus,duration\na,0,1,20\nb,0,1,20\n", encoding="utf-8")
    run = themis.simulate(themis.read_trace(path), themis.Cluster.parse("1x1"), policy="max_rho")
    tried = changes_of(themis.explain(run, app_id="b"))
    assert tried["twice the weight"] == 0.0


def test_a_wait_for_ones_own_tenant_ends_without_its_quota(tmp_path: Path) -> None:
    path = tmp_path / "pair.csv"
    path.write_text("id,submit_s,gpus,duration,tenant\na,0,1,20,x\nb,0,1,20,x\n", encoding="utf-8")
    run = themis.simulate(
        *(themis.read_trace(path), themis.Cluster.parse("1x2")),
        policy="fifo",
        tenants={"x": {"quota_gpus": 1}},
    )
    found = themis.explain(run, app_id="b")
    assert changes_of(found)["no quota for its tenant"] == 0.0
    assert found.smallest_change is not None
    assert found.smallest_change["kind"] == "quota"
    assert "Tenant 'x' then held 1 GPU of a quota of 1." in found.why


def test_who_starts_at_once_has_nothing_to_gain(queue: themis.Workload) -> None:
    run = themis.simulate(queue, themis.Cluster.parse("1x4"), policy="fifo")
    found = themis.explain(run, app_id="a")
    assert found.waits.is_empty()
    assert found.changes is None
    assert "It never waited." in found.why


def test_what_the_replay_sees_is_what_the_tables_recorded(demo: themis.Result) -> None:
    app_id = demo.apps.sort("queue_s", "app_id", descending=True).get_column("app_id")[0]
    found = themis.explain(demo, app_id=app_id, what_if=False)
    assert found.auction is not None
    assert found.bids is not None
    row = demo.auctions.filter(pl.col("at_s") == found.at_s).row(0, named=True)
    assert found.auction.objective == row["objective"]
    assert found.auction.upper_bound == row["upper_bound"]
    assert found.auction.winners.height == row["winners"]
    kept = found.auction.winners.get_column("gpus_kept").sum()
    assert kept == row["offered_gpus"] - row["leftover_gpus"]
    assert set(found.bids["at_s"]) <= set(demo.auctions["at_s"])
    begun = demo.leases.filter((pl.col("app_id") == app_id) & (pl.col("cause") == "auction"))
    kept_at = found.bids.filter(pl.col("kept_gpus") > 0).get_column("at_s")
    assert set(begun["start_s"]) <= set(kept_at)
    assert found.bids.get_column("c").is_between(0, 1).all()


def test_every_wait_is_between_arrival_and_end_without_a_lease(demo: themis.Result) -> None:
    for app_id in demo.apps["app_id"]:
        found = themis.explain(demo, app_id=app_id, what_if=False)
        leases = demo.leases.filter(pl.col("app_id") == app_id)
        first = [wait for wait in found.waits.rows() if wait[0] == found.app["arrival_s"]]
        assert [wait[2] for wait in first] == [q for q in [found.app["queue_s"]] if q > 0]
        for from_s, to_s, _ in found.waits.rows():
            assert leases.filter((pl.col("start_s") < to_s) & (pl.col("end_s") > from_s)).is_empty()


def test_the_decision_at_an_instant_is_the_last_before_it(demo: themis.Result) -> None:
    app_id = demo.apps["app_id"][3]
    at_s = demo.auctions["at_s"]
    between = (at_s[20] + at_s[21]) / 2
    found = themis.explain(demo, app_id=app_id, at_s=between, what_if=False)
    assert found.at_s == at_s[20]
    assert themis.explain(demo, app_id=app_id, at_s=-1, what_if=False).at_s is None
    with pytest.raises(themis.ThemisError, match="at_s is nan"):
        themis.explain(demo, app_id=app_id, at_s=float("nan"))


def test_an_explanation_is_json_and_escaped_html(queue: themis.Workload) -> None:
    apps, jobs = (
        frame.with_columns(pl.col("app_id").replace("b", "<b&>"))
        for frame in (queue.apps, queue.jobs)
    )
    odd = replace(queue, apps=apps, jobs=jobs)
    run = themis.simulate(odd, themis.Cluster.parse("1x4"), policy="themis")
    found = themis.explain(run, app_id="<b&>")
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["app"]["app_id"] == "<b&>"
    assert again["auction"]["winners"]
    assert "<b&>" not in found._repr_html_()
    assert "app '<b&>'" in repr(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"app_id": "app-99"}, "app 'app-99' is not in the result (did you mean"),
        ({"job_id": "x"}, "job 'x' is not in the result: 275 jobs"),
        ({}, "either an app or a job to explain, found neither"),
        ({"app_id": "a", "job_id": "b"}, "found both"),
    ],
)
def test_who_is_not_there_is_refused(
    demo: themis.Result, given: dict[str, str], message: str
) -> None:
    with pytest.raises(themis.ThemisError) as caught:
        themis.explain(demo, **given)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_stored_result_is_played_again_from_its_scenario(
    queue: themis.Workload, tmp_path: Path
) -> None:
    trace = str(tmp_path / "two.csv")
    scenario = Scenario.parse(
        {"cluster": {"spec": "1x4"}, "workload": {"trace": trace}}, directory=tmp_path
    )
    run = themis.simulate(queue, themis.Cluster.parse("1x4"), policy="themis")
    place = run.with_scenario(scenario).write(tmp_path / "result")
    kept, stored = themis.explain(run, app_id="b"), themis.explain(place, app_id="b")
    assert kept.to_dict() == stored.to_dict()
    Path(trace).write_text(TWO.replace("900", "901"), encoding="utf-8")
    changed = themis.explain(place, app_id="b")
    assert (changed.bids, changed.changes) == (None, None)
    assert "has changed since" in changed.notes[0]
    assert changed.waits.equals(kept.waits)
    assert changed.winners.equals(kept.winners)
    Path(trace).unlink()
    assert "no such file" in themis.explain(place, app_id="b").notes[0]


def test_a_result_without_a_scenario_takes_its_inputs_by_hand(
    queue: themis.Workload, tmp_path: Path
) -> None:
    cluster = themis.Cluster.parse("1x4")
    run = themis.simulate(queue, cluster, policy="fifo")
    place = run.write(tmp_path / "result")
    assert "no scenario" in themis.explain(place, app_id="b").notes[0]
    given = themis.explain(place, app_id="b", workload=queue, cluster=cluster)
    assert given.to_dict() == themis.explain(run, app_id="b").to_dict()
    other = themis.explain(place, app_id="b", workload=queue, cluster=themis.Cluster.parse("2x4"))
    assert "the result has another one" in other.notes[0]


def test_runs_of_other_seeds_are_pinned_to_the_workload_that_was_played(tmp_path: Path) -> None:
    scenario = Scenario.parse(
        {
            "seed": 3,
            "cluster": {"spec": "1x4"},
            "workload": {"generate": "demo", "sample": 0.9, "load": 2.0},
        },
        directory=tmp_path,
    )
    other = Scenario.parse(scenario.of_run("fifo", 8).document(), directory=tmp_path)
    assert (other.seed, other.policy.name) == (8, "fifo")
    assert other.build().workload.equals(scenario.build().workload)
    assert not replace_seed(scenario, 8).build().workload.equals(scenario.build().workload)


def replace_seed(scenario: Scenario, seed: int) -> Scenario:
    return scenario.model_copy(update={"seed": seed})


SPANS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: Span(*map(float, pair))),
    max_size=6,
)


def covered(spans: list[Span]) -> set[int]:
    return {at for span in spans for at in range(int(span.from_s), int(span.to_s))}


@given(SPANS, SPANS)
def test_spans_are_sets_of_instants(spans: list[Span], others: list[Span]) -> None:
    assert covered(union(spans)) == covered(spans)
    assert covered(minus(spans, others)) == covered(spans) - covered(others)
    merged = union(spans)
    assert all(a.to_s < b.from_s for a, b in pairwise(merged))
