"""Transformations as data: what texts mean, what is refused, how scenarios list them."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import themis as package
from themis.cluster.cluster import Cluster
from themis.errors import ScenarioError, ThemisError, TraceError
from themis.scenario.scenario import Scenario
from themis.synthetic import generate
from themis.workload.transforms import apply_transforms, parse_transforms, transform_table

CLUSTER = Cluster.parse("2x4")
API: Any = package
DEMO: Any = generate("demo", apps=2)
Themis = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("rigid", {"kind": "rigid"}),
        ("rigid:", {"kind": "rigid"}),
        ("window: start_s = 1 , end_s=2.5", {"kind": "window", "start_s": 1, "end_s": 2.5}),
        ("g:keys=[user, 'a,b']", {"kind": "g", "keys": ["user", "a,b"]}),
        ("f:where=user IN ('a', 'b')", {"kind": "f", "where": "user IN ('a', 'b')"}),
        ("f:where=a = 'x, y=z',n=1", {"kind": "f", "where": "a = 'x, y=z'", "n": 1}),
        ("p:mix={a = 1, b = 2},seed=3", {"kind": "p", "mix": {"a": 1, "b": 2}, "seed": 3}),
    ],
)
def test_a_text_is_a_table(text: str, table: dict[str, object]) -> None:
    assert transform_table(text) == table


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("windw:end_s=1", ["kind 'windw' is unknown", "did you mean 'window'?", "scale"]),
        ("", ["kind '' is unknown", "window"]),
        ("window:end=1", ["window.end: unknown key", "did you mean 'end_s'?"]),
        ("window:end_s", ["'end_s' is not of the form key=value"]),
        ("window:=3", ["'=3' is not of the form key=value"]),
        ("window:end_s=1,end_s=2", ["key 'end_s' stands twice"]),
        ("window:end_s=soon", ["window.end_s = 'soon': expected a number"]),
        ("scale:load=0", ["scale.load = 0", "must be > 0"]),
        ("scale:load=inf", ["scale.load = inf", "finite"]),
        ("scale", ["scale.load: is missing"]),
        ("sample:by=usr,n=1", ["expected one of app, user or tenant"]),
        ("sample:n=0", ["must be >= 1"]),
        ("sample:n=1,seed=18446744073709551616", ["seed", "must be <"]),
        ("elastic:min_factor=2", ["must be <= 1"]),
        ("assign_profiles:mix=vgg16", ["mix = 'vgg16': expected a table"]),
        ("filter:where=3", ["where = 3: expected text"]),
    ],
)
def test_a_bad_text_is_refused_with_what_was_expected(text: str, words: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_transforms([text])
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("scale", {"load": "2"}, "scale: load is '2': expected a positive number"),
        ("scale", {"load": True}, "scale: load is True: expected a positive number"),
        ("window", {"end_s": "x"}, "window: end_s is 'x': expected a number of seconds"),
        ("window", {"start_s": math.nan}, "window: start_s is nan: expected a number of seconds"),
        ("sample", {}, "sample: expected exactly one of fraction and n, found none of them"),
        ("sample", {"fraction": 0.5, "n": 3}, "sample: expected exactly one of fraction and n"),
        ("sample", {"n": 99}, "sample: n is 99: expected 1 to 24, the apps"),
        ("sample", {"n": 1, "by": "usr"}, "sample: by is 'usr': expected one of app, user"),
        ("sample", {"n": 1, "seed": -1}, "sample: seed is -1: expected a whole number from 0"),
        ("sample", {"n": 1, "seed": None}, "sample: seed is None: expected a whole number"),
        ("filter", {"where": 3}, "filter: where is 3: expected a condition such as"),
        ("filter", {"where": "gang_size +"}, "not a condition in SQL"),
        ("filter", {"where": "gang = 1"}, "column 'gang' is unknown (did you mean 'gang_size'?)"),
        ("filter", {"where": "gang_size"}, "filter: gang_size: filter predicate must be of type"),
        ("filter", {"where": "user > 1"}, "filter: user > 1: "),
        ("filter", {"where": "gang_size > 99"}, "filter(gang_size > 99): none of the"),
        ("elastic", {"min_factor": 0}, "elastic: min_factor is 0: expected more than 0, at most 1"),
        ("elastic", {"max_factor": 0.5}, "elastic: max_factor is 0.5: expected 1 or more"),
        ("assign_profiles", {}, "expected exactly one of mix and models, found none of them"),
        ("assign_profiles", {"mix": {}}, "mix is {}: expected shares by profile"),
        ("assign_profiles", {"mix": {"a": -1}}, "share of a is -1: expected 0 or more"),
        ("assign_profiles", {"mix": {"a": 0}}, "all shares are 0"),
        ("assign_profiles", {"models": {"a": 1}}, "expected profiles by model"),
        ("group_into_apps", {"gap_s": "60"}, "group_into_apps: gap_s is '60': expected 0 or more"),
        ("group_into_apps", {"max_jobs": 1.5}, "group_into_apps: max_jobs is 1.5: expected 1 or"),
        ("group_into_apps", {"keys": "user"}, "group_into_apps: keys is 'user': expected a list"),
    ],
)
def test_a_bad_argument_is_a_trace_error(
    method: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(TraceError) as caught:
        getattr(generate("demo"), method)(**arguments)
    assert message in str(caught.value)


def test_draws_of_a_mix_follow_its_shares() -> None:
    workload = generate("demo", apps=2000, jobs_max=1)
    drawn = workload.assign_profiles(mix={"vgg16": 1, "resnet50": 3}, seed=1)
    share = (drawn.apps["profile"] == "resnet50").mean()
    assert share == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / 2000))
    assert drawn.equals(workload.assign_profiles(mix={"resnet50": 0.75, "vgg16": 0.25}, seed=1))
    assert not drawn.equals(workload.assign_profiles(mix={"vgg16": 1, "resnet50": 3}, seed=2))


SCENARIO = """
seed = 7
[cluster]
spec = "2x4"
[workload]
generate = "demo"
window = {end_s = 9000}
sample = 0.9
load = 2
[[workload.transform]]
kind = "elastic"
[[workload.transform]]
kind = "sample"
n = 3
"""


def test_a_scenario_lists_transformations_in_order(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    scenario = Scenario.load(path)
    path.write_text(scenario.to_toml())
    assert Scenario.load(path) == scenario
    workload = generate("demo", 7).window(end_s=9000).sample(fraction=0.9, seed=7).scale(load=2)
    workload = workload.elastic().sample(n=3, seed=7)
    built = scenario.build().workload
    assert built.equals(workload)
    assert built.notes == workload.notes


def test_a_load_on_the_cluster_needs_a_cluster() -> None:
    steps = parse_transforms(["scale:load=0.5,on_cluster=true"])
    workload = generate("demo")
    with pytest.raises(ScenarioError, match="on_cluster is true: expected a cluster"):
        apply_transforms(workload, steps, cluster=None, seed=0)
    cluster = Cluster.parse("2x8")
    after = apply_transforms(workload, steps, cluster=cluster, seed=0)
    assert after.equals(workload.scale(load=0.5, cluster=cluster))


@pytest.mark.parametrize("command", ["check", "run", "compare"])
def test_flags_lay_transformations_over_the_workload(
    command: str, themis: Themis, trace: Path
) -> None:
    source = (str(trace),) if command == "check" else ("--trace", str(trace))
    done = themis(
        command,
        *source,
        *("--cluster", "2x4", "--json"),
        *("--transform", "window:end_s=1000", "--transform", "filter:where=user <> 'dee'"),
    )
    assert done.returncode == 0, done.stderr
    assert "window(start_s=0, end_s=1000): 4 apps of 5; 5 jobs of 6" in done.stdout + done.stderr
    assert "filter(user <> 'dee'): 3 apps of 4; 4 jobs of 5" in done.stdout + done.stderr
    bad = themis(command, *source, "--cluster", "2x4", "--transform", "window:end=1")
    assert (bad.returncode, bad.stdout) == (3, "")
    assert "transform[0].window.end: unknown key (did you mean 'end_s'?)" in bad.stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: API.simulate("x", CLUSTER), "workload is 'x': expected a Workload"),
        (lambda: API.simulate(DEMO, "2x4"), "cluster is '2x4': expected a Cluster"),
        (lambda: DEMO.check("2x4"), "cluster is '2x4': expected a Cluster"),
        (lambda: API.generate(3), "workload 3 is unknown"),
        (lambda: API.generate([]), r"workload \[\] is unknown"),
        (lambda: API.read_trace("x.csv", format=3), "format 3 is unknown"),
        (lambda: API.Cluster.parse(3), "cluster is 3: expected a text"),
        (lambda: API.compare(DEMO, CLUSTER, policies=3), "policies is 3: expected a list"),
        (
            lambda: API.compare(DEMO, CLUSTER, policies=["fifo"], seeds=3),
            "seeds is 3: expected a list",
        ),
    ],
)
def test_a_wrong_type_is_an_error_of_themis(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ThemisError, match=message):
        call()


def test_small_slips_get_a_hint(themis: Themis, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id;submit;gpus;duration\na;0;1;10\n")
    for named in ((), ("--format", "native")):
        done = themis("check", "s.csv", *named)
        assert done.returncode == 3
        assert "id;submit;gpus;duration (separated by semicolons: expected commas)" in done.stderr
    done = themis("report", "s.csv")
    assert (done.returncode, done.stderr.rstrip()) == (
        3,
        "themis: error: s.csv: a file: expected the directory of a result",
    )
    done = themis("run", "--generate", "demo", "--cluster", "1x4", "--out", "n" * 300)
    assert (done.returncode, done.stdout) == (3, "")
