"""Audits as users meet them: in Python, on stored results, and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.differential.small import Job, play, workload

import themis
from themis.auditing.rules import RULES
from themis.cli import run as cli_run
from themis.cli.exits import ExitCode, exit_code
from themis.cli.root import cli
from themis.cluster.cluster import Cluster
from themis.results.result import Result

JOBS = [Job("a", 0, 2, 60), Job("b", 5, 3, 30, profile="vgg16"), Job("c", 5, 1, 40, 2)]
FLAGS = (
    *[
        "--generate",
        "demo",
        "--set",
        "workload.params.apps=3",
        "--cluster",
        "1x4",
        "--quiet",
        "--audit",
    ],
)


def sound() -> Result:
    return play("2x2", JOBS, "themis", lease_s=10.0)


def forged(result: Result) -> Result:
    later = result.jobs.with_columns(start_s=pl.col("start_s") - 100)
    return Result(frames={**result.frames, "jobs": later}, manifest=result.manifest)


def test_a_stored_result_is_audited_without_its_inputs(tmp_path: Path) -> None:
    sound().write(tmp_path / "run")
    report = themis.audit(themis.load_result(tmp_path / "run"))
    assert report.passed
    assert report.skipped == (
        "leases_name_gpus_that_exist",
        "apps_stay_below_their_caps",
        "machines_have_what_their_gpus_take",
        "work_is_neither_lost_nor_invented",
        "lone_jobs_did_the_work_of_their_leases",
    )
    assert "not checked (workload or cluster unknown, or agents): leases_name" in report.to_text()


def test_jobs_to_come_count_where_they_could_run() -> None:
    # At 100 there are two GPUs for x's gang of three: x never had work for GPUs.
    gone = pl.DataFrame({"machine": ["r0-m1"], "at_s": [60.0], "gpus": [0]})
    jobs = [*JOBS, Job("x1", 0, 5, 10, app="x"), Job("x2", 100, 3, 30, app="x")]
    result = play(Cluster.parse("2x2").with_capacity(gone), jobs, "themis", horizon_s=50.0)
    assert dict(result.apps.select("app_id", "n_avg").rows())["x"] is None
    report = themis.audit(result)
    assert (report.findings, report.skipped) == ((), ())
    alone = themis.audit(Result(result.frames, result.manifest))
    assert alone.passed
    assert {"contention_is_that_of_the_lives", "rho_is_its_definition"} <= set(alone.skipped)
    there = Result(result.frames, result.manifest)
    found = themis.audit(there, workload(jobs), Cluster.parse("2x2")).findings
    assert "contention_is_that_of_the_lives" in {one.rule for one in found}


def test_a_report_names_the_rule_and_the_rows() -> None:
    report = themis.audit(forged(sound()), workload(JOBS), Cluster.parse("2x2"))
    assert not report.passed
    told = {found.rule: found for found in report.findings}
    assert set(told) == {"jobs_have_one_final_state", "jobs_start_with_their_gang"}
    found = told["jobs_have_one_final_state"]
    assert (found.rows, found.says[:23]) == (3, "A job ends in one known")
    assert found.examples[0]["problem"] == "starts before it is submitted"
    text = report.to_text()
    assert text.startswith(f"audit: 2 of {len(RULES)} rules are broken\n")
    assert "job_id a, app_id a, state done, submit_us 0, start_us -100000000" in text
    listed = json.loads(json.dumps(report.to_json(), allow_nan=False))["findings"]
    assert [one["rule"] for one in listed] == list(told)


def test_profiles_of_the_run_are_needed_to_replay_it() -> None:
    slow = {"mine": (1.0, 0.5, 0.25, 0.125)}
    jobs = [Job("a", 0, 2, 60, profile="mine")]
    cluster = Cluster.parse("1x2/1")
    result = themis.simulate(workload(jobs), cluster, policy="fifo", profiles=slow, audit=True)
    assert result.jobs["end_s"].to_list() == [60.0]
    stored = Result(frames=result.frames, manifest=result.manifest)
    [found] = themis.audit(stored, workload(jobs), cluster).findings
    assert found.rule == "lone_jobs_did_the_work_of_their_leases"
    assert themis.audit(stored, workload(jobs), cluster, profiles=slow).passed
    assert themis.audit(result).passed


@pytest.mark.parametrize("policy", ["themis", "tiresias", "fifo"])
def test_types_of_other_speeds_are_audited(policy: str) -> None:
    speeds = {"resnet50": {"speeds": {"a": 2.0, "b": 0.5}}, "inception3": {"speeds": {"b": 3.0}}}
    result = themis.simulate(
        themis.generate("demo", seed=0, apps=6),
        Cluster.parse("1x(2x2:a)+1x(2x2:b)"),
        policy=policy,
        profiles=speeds,  # type: ignore[arg-type] # tables of speeds alone
    )
    report = themis.audit(result)
    assert (report.findings, report.skipped) == ((), ())
    faster = result.jobs.with_columns(pl.col("work_gpu_s") * 1.01)
    frames = {**result.frames, "jobs": faster}
    found = themis.audit(Result(frames, result.manifest, result.inputs)).findings
    assert "work_is_neither_lost_nor_invented" in {one.rule for one in found}


def test_simulate_raises_what_an_audit_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert themis.simulate(workload(JOBS), Cluster.parse("2x2"), audit=True).policy == "themis"
    monkeypatch.setattr(
        "themis.simulation.simulate.Result",
        lambda frames, manifest, inputs: forged(Result(frames, manifest, inputs)),
    )
    with pytest.raises(themis.AuditError, match="jobs_have_one_final_state: A job ends in"):
        themis.simulate(workload(JOBS), Cluster.parse("2x2"), audit=True)


def test_a_run_is_audited_on_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*flags: str) -> int:
        return exit_code(lambda: cli.main(["run", *FLAGS, *flags], standalone_mode=False))

    assert call() == ExitCode.DONE
    assert capsys.readouterr().out.endswith(f"audit: {len(RULES)} rules hold\n")
    assert call("--json") == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["audit"]["passed"] is True
    honest = cli_run.play
    monkeypatch.setattr(cli_run, "play", lambda *args, **kwargs: forged(honest(*args, **kwargs)))
    assert call() == ExitCode.CHECK_FAILED
    assert "jobs_have_one_final_state: A job ends in one" in capsys.readouterr().out
    assert call("--json") == ExitCode.CHECK_FAILED
    assert json.loads(capsys.readouterr().out)["audit"]["passed"] is False
