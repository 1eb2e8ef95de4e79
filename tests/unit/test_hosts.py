"""CPU cores and memory of clusters and workloads: how they are said, read, checked and audited."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from tests.differential.small import Job
from tests.golden.test_hosts import machines, needing, run

import themis
from themis import Cluster
from themis.cli.root import cli
from themis.errors import ClusterError, ScenarioError, TraceError
from themis.scenario.scenario import Scenario
from themis.schema.host import MAX_HOST, needed, there

TOML = """
[[machines]]
machine = "a"
gpus = 4
cpu_cores = 32
memory_gib = 100.5

[[machines]]
machine = "b"
gpus = 2
"""


def test_a_cluster_file_says_what_machines_have(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(TOML, encoding="utf-8")
    cluster = Cluster.from_toml(tmp_path / "c.toml")
    assert cluster.machines.select("cpu_cores", "memory_gib").rows() == [(32, 100.5), (None, None)]
    assert cluster.limits_host
    assert cluster.describe()["cpu_cores"] == 32
    assert there(cluster.machines).tolist() == [[32_000, 102_912], [-1, -1]]
    cluster.machines.write_csv(tmp_path / "list.csv")
    listed = themis.read_cluster(tmp_path / "list.csv").machines
    assert listed.sort("machine").equals(cluster.machines)


def test_short_forms_limit_nothing() -> None:
    cluster = Cluster.parse("2x4")
    assert not cluster.limits_host
    assert set(cluster.describe()) == {"spec", "gpus", "machines", "racks", "gpu_types"}
    bare = cluster.machines.drop("cpu_cores", "memory_gib")
    assert Cluster(bare).machines.equals(cluster.machines)


@pytest.mark.parametrize("cores", [-1.0, float("nan"), 2 * MAX_HOST])
def test_odd_amounts_of_machines_are_refused_by_name(cores: float) -> None:
    with pytest.raises(ClusterError, match=r"machine 'm0': cpu_cores is .*: expected 0 to 100000"):
        machines((4, cores, None))


def test_a_scenario_lists_what_its_machines_have(tmp_path: Path) -> None:
    text = """
        schema_version = 1
        workload.generate = "demo"
        cluster.machines = [{machine = "a", rack = "r", gpus = 8, cpu_cores = 16.5}]
    """
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    cluster = Scenario.load(tmp_path / "s.toml").build_cluster()
    assert cluster.machines.select("cpu_cores", "memory_gib").rows() == [(16.5, None)]
    (tmp_path / "s.toml").write_text(
        'schema_version = 1\nworkload.generate = "demo"\ncluster = {spec = "1x8", host = "keep"}',
        encoding="utf-8",
    )
    with pytest.raises(ScenarioError, match="host is 'keep': expected the file of a machine list"):
        Scenario.load(tmp_path / "s.toml")


def test_the_machine_lists_of_traces_limit_machines_on_request(tmp_path: Path) -> None:
    lists = {
        "openb": ("sn,cpu_milli,memory_mib,gpu,model\nm0,64000,262144,2,T4\n", (64, 256)),
        "alibaba-spot": (
            "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,m0\n",
            (128, None),
        ),
        "pai": ("m0,T4,96,512,2\n", (96, 512)),
        "tiresias": (
            "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,4,60,256\n",
            (60, 256),
        ),
    }
    path = tmp_path / "list.csv"
    for name, (text, has) in lists.items():
        path.write_text(text, encoding="utf-8")
        kept = themis.read_cluster(path, name, host="keep")
        assert kept.machines.select("cpu_cores", "memory_gib").rows() == [has]
        assert not themis.read_cluster(path, name).limits_host
    path.write_text("machineId, number of GPUs, single GPU mem\nm0, 2, 24GB\n", encoding="utf-8")
    with pytest.raises(ClusterError, match="host is 'keep': found neither CPU cores nor memory"):
        themis.read_cluster(path, host="keep")
    path.write_text(lists["openb"][0].replace("64000", "-1"), encoding="utf-8")
    with pytest.raises(ClusterError, match="line 2: negative amount in column 'cpu_milli': '-1'"):
        themis.read_cluster(path, host="keep")
    with pytest.raises(ClusterError, match="option host is 'all': expected one of leave_out, keep"):
        themis.read_cluster(path, host="all")


OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
deletion_time,scheduled_time
whole,12000,16384,2,1000,,LS,Running,0,100,0
half,6000,1024,1,500,,LS,Running,1,50,1
cpus,4000,2048,0,0,,LS,Running,2,50,2
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,\
queue
1,u,vc,4,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 01:00:00,3600,0
"""
SPOT = """\
job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,\
job_type
1,o,A10,12.0,0.5,3,0.0,100.0,HP
2,o,A10,8.0,2.0,3,0.0,100.0,HP
"""


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        (OPENB, [(None, None), (12, 2), (6, 8)]),
        (HELIOS, [(4, None)]),
        # Three workers with half a GPU each take a whole one each.
        (SPOT, [(12, None), (4, None)]),
    ],
)
def test_traces_say_what_gpus_take_on_request(
    tmp_path: Path, text: str, needs: list[tuple[float | None, float | None]]
) -> None:
    (tmp_path / "trace.csv").write_text(text, encoding="utf-8")
    kept = themis.read_trace(tmp_path / "trace.csv", host="keep")
    columns = ["cpu_cores_per_gpu", "memory_gib_per_gpu"]
    assert kept.jobs.sort("job_id").select(columns).rows() == needs
    left = themis.read_trace(tmp_path / "trace.csv")
    assert left.jobs.select(pl.col(columns).null_count()).row(0) == (left.jobs.height,) * 2
    assert kept.jobs.drop(columns).equals(left.jobs.drop(columns))
    with pytest.raises(TraceError, match="option host is 'yes': expected one of leave_out, keep"):
        themis.read_trace(tmp_path / "trace.csv", host="yes")


def test_the_tasks_that_take_gpus_say_what_pai_jobs_need(tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text("j,i,u,Terminated,10,110\n", encoding="utf-8")
    tasks = [
        "j,worker,2,Terminated,10.0,110.0,600.0,29.0,50.0,T4",
        "j,ps,4,Terminated,10.0,110.0,300.0,10.0,,CPU",
    ]
    (tmp_path / "task.csv").write_text("\n".join(tasks) + "\n", encoding="utf-8")
    kept = themis.read_trace(tmp_path, format="pai", host="keep")
    # Two workers with a whole GPU each, rounded up from halves.
    columns = ["gang_size", "cpu_cores_per_gpu", "memory_gib_per_gpu"]
    assert kept.jobs.select(columns).rows() == [(2, 6, 29)]
    assert themis.read_trace(tmp_path, format="pai").jobs["cpu_cores_per_gpu"].to_list() == [None]


def test_a_native_workload_comes_back_with_its_needs(tmp_path: Path) -> None:
    load = needing([Job("a", 0, 1, 10), Job("b", 0, 2, 10)], {"a": (1.5, None), "b": (0, 64)})
    for form in ("parquet", "csv"):
        load.write(tmp_path / form, form=form)
        again = themis.read_trace(tmp_path / form)
        assert again.jobs.equals(load.jobs)
    bursts = load.group_into_apps(keys=["user"])
    assert bursts.jobs.sort("job_id")["cpu_cores_per_gpu"].to_list() == [1.5, 0]
    table = "id,submit,gpus,duration,cpu_cores_per_gpu\nx,0,1,10,-2\ny,0,1,10,3\n"
    (tmp_path / "jobs.csv").write_text(table, encoding="utf-8")
    report = themis.read_trace(tmp_path / "jobs.csv").check()
    assert [problem.name for problem in report.problems] == [
        "cpu_cores_per_gpu not from 0 to 100000"
    ]
    with pytest.raises(TraceError, match=r"job_id 'a': memory_gib_per_gpu is -1\.0: expected 0 to"):
        needing([Job("a", 0, 1, 10)], {"a": (None, -1)})


def test_needs_are_rounded_down_to_thousandths_of_a_core_and_mib() -> None:
    load = needing([Job("a", 0, 1, 10)], {"a": (0.57, 1 / 3)})
    assert needed(load.jobs).tolist() == [[570, 341]]


def test_what_is_asked_of_cores_and_memory_is_told_before_a_run() -> None:
    load = needing([Job("a", 0, 2, 60), Job("b", 30, 1, 30)], {"a": (4, None), "b": (2, None)})
    report = load.check(machines((4, 8, None), (4, 2, None)))
    assert report.load is not None
    # 60 GPU-seconds with 4 cores and 30 with 2 in a window of 60 s.
    (cores,) = report.load.host
    assert (cores.resource, cores.there, cores.load) == ("cpu_cores", 10, 300 / 600)
    assert "offered load, cpu_cores (10): 0.50" in report.to_text()
    assert report.to_dict()["load"]["host"] == [  # type: ignore[index]
        {"resource": "cpu_cores", "there": 10, "load": 0.5}
    ]
    assert load.check(Cluster.parse("2x4")).load.host == ()  # type: ignore[union-attr]


def test_an_audit_finds_leases_that_take_more_than_a_machine_has() -> None:
    jobs = [Job("a", 0, 1, 10), Job("b", 0, 2, 20), Job("c", 15, 2, 20)]
    needs = {"a": (4, None), "b": (3, 2), "c": (5, None)}
    rule = "machines_have_what_their_gpus_take"
    result = run(jobs, needs, machines((4, 10, None)), "tiresias")
    load = needing(jobs, needs)
    # The same leases on a machine of fewer cores, of which a and b take 10 at once and c 10 alone.
    report = themis.audit(result, load, machines((4, 9, None)))
    (finding,) = [finding for finding in report.findings if finding.rule == rule]
    assert finding.rows == 2
    assert {row["at_us"] for row in finding.examples} == {0, 15_000_000}
    assert {row["resource"] for row in finding.examples} == {"cpu_cores"}
    short = themis.audit(result, load, machines((4, 10, 3)))
    (finding,) = [finding for finding in short.findings if finding.rule == rule]
    assert [row["resource"] for row in finding.examples] == ["memory_gib"]
    assert themis.audit(result, load, machines((4, 10, 4))).passed


def test_the_check_on_the_command_line_tells_the_load_of_cores(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(OPENB, encoding="utf-8")
    text = "sn,cpu_milli,memory_mib,gpu,model\nm0,64000,262144,2,T4\n"
    (tmp_path / "nodes.csv").write_text(text, encoding="utf-8")
    files = [str(tmp_path / "pods.csv"), "--cluster", str(tmp_path / "nodes.csv")]
    told = CliRunner().invoke(cli, ["check", *files, "--option", "host=keep"]).stdout
    assert "offered load, cpu_cores (64): " in told
    assert "offered load, memory_gib (256): " in told
    assert "cpu_cores" not in CliRunner().invoke(cli, ["check", *files]).stdout
