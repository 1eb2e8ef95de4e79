"""Schedules computed by hand on tiny clusters. Unless a case says more, switches cost nothing.

Times are seconds. ``a: 3 x 100`` in a comment means three GPUs for 100 s. `Job` is (id, submitted,
GPUs, GPU-seconds of work[, most GPUs, app, profile]).
"""

from __future__ import annotations

import pytest
from tests.differential.small import Job, play
from tests.golden.cases import TEN, Case, check

LATE = 1_000_000.0

FIFO = [
    # a: 2 x 100 ends just when b and c arrive: b (smaller id) takes its GPUs, then c.
    Case(
        "release before allocation, ties by id",
        "1x2",
        [Job("a", 0, 2, 200), Job("b", 100, 2, 100), Job("c", 100, 2, 100)],
        {"a": (0, 100), "b": (100, 150), "c": (150, 200)},
    ),
    # b needs 2 and 1 is free: it waits until a ends at 100, and c does not overtake it.
    Case(
        "nobody overtakes the head of the line",
        "1x4",
        [Job("a", 0, 3, 300), Job("b", 10, 2, 100), Job("c", 20, 1, 10)],
        {"a": (0, 100), "b": (100, 150), "c": (100, 110)},
    ),
    # 3 + 3 > 4: one after the other, never 2 + 2.
    Case(
        "gangs are whole",
        "1x4",
        [Job("a", 0, 3, 90), Job("b", 0, 3, 90)],
        {"a": (0, 30), "b": (30, 60)},
    ),
    # Three GPUs of two machines in a rack: vgg16 runs at 0.72 of 3: 216 / 2.16 = 100.
    Case("placement slows a gang", "2x2", [Job("a", 0, 3, 216, profile="vgg16")], {"a": (0, 100)}),
    # Rack 0 has 4 GPUs in slots of 2, rack 1 has 2. a: slot 0, 100 / 2 = 50. b: 2 of rack 0
    # and 1 of rack 1 at 0.5: 100 / 1.5 = 66.666667 (rounded up to a microsecond). c needs 4:
    # 3 are free at 50, 6 when b ends; machine 0 at 0.9: 90 / 3.6 = 25 more.
    Case(
        "each locality has its own slowdown",
        "1x(1x4/2)+1x(1x2)",
        [
            Job("a", 0, 2, 100, profile="network"),
            Job("b", 0, 3, 100, profile="network"),
            Job("c", 0, 4, 90, profile="network"),
        ],
        {"a": (0, 50), "b": (0, 66.666667), "c": (66.666667, 91.666667)},
    ),
    # a takes all 4 that it can use: 400 / 4 = 100. b waits for it, then 100 / 4 = 25.
    Case(
        "an elastic job takes what it can use",
        "1x4",
        [Job("a", 0, 1, 400, 4), Job("b", 50, 1, 100, 4)],
        {"a": (0, 100), "b": (100, 125)},
    ),
    # a has 3 of 4, so that b starts on the last one and keeps just that: 200 / 1.
    Case(
        "an elastic job keeps what it started with",
        "1x4",
        [Job("a", 0, 3, 300), Job("b", 0, 1, 200, 4)],
        {"a": (0, 100), "b": (0, 200)},
    ),
    # Four GPUs of two racks at 0.5 are worth two of one machine: a takes two, b the others.
    Case(
        "as fast with fewer GPUs",
        "2x(1x2)",
        [Job("a", 0, 1, 100, 4, profile="network"), Job("b", 0, 2, 100)],
        {"a": (0, 50), "b": (0, 50)},
    ),
    # Job by job: a1 and a2 at 0; a3 on the GPU of a2 at 30, before b; both GPUs free at 50.
    Case(
        "an app of many jobs",
        "1x2",
        [
            Job("a1", 0, 1, 50, app="a"),
            Job("a2", 0, 1, 30, app="a"),
            Job("a3", 0, 1, 20, app="a"),
            Job("b", 5, 2, 40),
        ],
        {"a1": (0, 50), "a2": (0, 30), "a3": (30, 50), "b": (50, 70)},
    ),
    # a2 ends app a at 30: a1 is killed then, and b has both GPUs.
    Case(
        "the first job ends its app",
        "1x2",
        [Job("a1", 0, 1, 50, app="a"), Job("a2", 0, 1, 30, app="a"), Job("b", 10, 2, 40)],
        {"a1": (0, 30), "a2": (0, 30), "b": (30, 50)},
        ("a",),
    ),
    # 9 GPUs never: no head of the line. z has no work, cpu takes no GPUs. c: 160 / 2 = 80.
    Case(
        "impossible, empty and CPU-only jobs block nobody",
        "2x4",
        [
            Job("huge", 0, 9, 90),
            Job("z", 0, 1, 0),
            Job("small", 1, 1, 10),
            Job("cpu", 5, 0, 50),
            Job("c", 10, 2, 160),
        ],
        {"huge": (None, None), "z": (0, 0), "small": (1, 11), "cpu": (5, 55), "c": (10, 90)},
    ),
    # The same as at 0: a: 2 x 100, b waits for a.
    Case(
        "a late first arrival",
        "1x2",
        [Job("a", LATE, 2, 200), Job("b", LATE + 50, 1, 10)],
        {"a": (LATE, LATE + 100), "b": (LATE + 100, LATE + 110)},
    ),
    # b has run for 50 of 100 s at the horizon; c arrives just then, d never.
    Case(
        "cut off by the horizon",
        "1x1",
        [Job("a", 0, 1, 100), Job("b", 10, 1, 100), Job("c", 150, 1, 1), Job("d", 200, 1, 1)],
        {"a": (0, 100), "b": (100, None), "c": (None, None), "d": (None, None)},
        settings={"horizon_s": 150.0},
    ),
    # 1 / 3 s, rounded up to a microsecond; b has all three GPUs only then.
    Case(
        "ends are whole microseconds",
        "1x3",
        [Job("a", 0, 3, 1), Job("b", 0, 3, 3)],
        {"a": (0, 0.333334), "b": (0.333334, 1.333334)},
    ),
]

LAS = [
    # Served seconds at 10: a 10, b 0; at 20: 10, 10, the tie goes to a.
    Case(
        "two apps take turns",
        "1x1",
        [Job("a", 0, 1, 20), Job("b", 0, 1, 20)],
        {"a": (0, 30), "b": (10, 40)},
        settings=TEN,
    ),
    # b arrives at 12 and waits for the lease end at 20; a goes on when b ends at 25.
    Case(
        "a newcomer is served at the next lease end",
        "1x1",
        [Job("a", 0, 1, 25), Job("b", 12, 1, 5)],
        {"a": (0, 30), "b": (20, 25)},
        settings=TEN,
    ),
    # At 10 a ends, its lease ends, and c arrives; b and c have 0, b came earlier.
    Case(
        "an end, a lease end and an arrival at once",
        "1x1",
        [Job("a", 0, 1, 10), Job("b", 0, 1, 10), Job("c", 10, 1, 10)],
        {"a": (0, 10), "b": (10, 20), "c": (20, 30)},
        settings=TEN,
    ),
    # a: 2 x 10 = 20. b: 1 x 10 to 20, and again to 30, when both have 20: a by id, 2 x 10 more.
    # b has 20 of 30 by then: 40 to 50.
    Case(
        "service is GPU-seconds",
        "1x2",
        [Job("a", 0, 2, 40), Job("b", 0, 1, 30)],
        {"a": (0, 40), "b": (10, 50)},
        settings=TEN,
    ),
    # a has one GPU and g can't use the other. At 10 g has less: 2 x 10. Then a: 30 more.
    Case(
        "a gang waits for a lease end at most",
        "1x2",
        [Job("a", 0, 1, 40), Job("g", 0, 2, 20)],
        {"a": (0, 50), "g": (10, 20)},
        settings=TEN,
    ),
    # Each has 2 s left when it returns, and works again after 2 + 3 s: a 25 to 27, b 32 to 34.
    Case(
        "a switch costs a checkpoint and a restart",
        "1x1",
        [Job("a", 0, 1, 12), Job("b", 0, 1, 12)],
        {"a": (0, 27), "b": (10, 34)},
        settings={**TEN, "restart_s": 3.0, "checkpoint_s": 2.0},
    ),
    # At 20 b has 20, a 0; at 30 a 10: a again, without a switch, to 40. b: 5 s, then 10 left.
    Case(
        "a renewal costs nothing",
        "1x1",
        [Job("b", 0, 1, 30), Job("a", 15, 1, 20)],
        {"b": (0, 55), "a": (20, 40)},
        settings={**TEN, "restart_s": 3.0, "checkpoint_s": 2.0},
    ),
    # Leases: a 0 to 10, then c (0) to 20; b 4 to 14, then a (10 each, a came earlier).
    # c ends at 20: b goes on with 20 left; a has 20 left at 14.
    Case(
        "rolling leases end on their own clocks",
        "1x2",
        [Job("a", 0, 1, 30), Job("b", 4, 1, 30), Job("c", 6, 1, 10)],
        {"a": (0, 34), "b": (4, 40), "c": (10, 20)},
        settings={**TEN, "lease_mode": "rolling"},
    ),
    # App a: 2 x 10 = 20. b: 2 x 10 = 20. The tie goes to a, whose jobs end at 30.
    Case(
        "the app's service counts, not the job's",
        "1x2",
        [Job("a1", 0, 1, 20, app="a"), Job("a2", 0, 1, 20, app="a"), Job("b", 0, 2, 40)],
        {"a1": (0, 30), "a2": (0, 30), "b": (10, 40)},
        settings=TEN,
    ),
    # a2 ends app a at 5, in the middle of its leases: b need not wait for 10.
    Case(
        "the first job ends its app and frees its GPUs",
        "1x2",
        [Job("a1", 0, 1, 100, app="a"), Job("a2", 0, 1, 5, app="a"), Job("b", 0, 1, 10)],
        {"a1": (0, 5), "a2": (0, 5), "b": (5, 15)},
        ("a",),
        TEN,
    ),
    # Longest first: a2 and a3. The GPU of a3 passes to a1 at 6, for the rest of its lease.
    # At 10 b has 0; a2 keeps its GPU, nobody else wants it.
    Case(
        "an app passes GPUs on for the rest of a lease",
        "1x2",
        [
            Job("a1", 0, 1, 4, app="a"),
            Job("a2", 0, 1, 30, app="a"),
            Job("a3", 0, 1, 6, app="a"),
            Job("b", 0, 1, 5),
        ],
        {"a1": (6, 10), "a2": (0, 30), "a3": (0, 6), "b": (10, 15)},
        settings=TEN,
    ),
    # a: 4 x 10 = 40; b has 0 at 10 and takes 2; a does 20 with the others; then 4 x 5.
    Case(
        "an elastic app shrinks and grows",
        "1x4",
        [Job("a", 0, 1, 80, 4), Job("b", 5, 2, 20)],
        {"a": (0, 25), "b": (10, 20)},
        settings=TEN,
    ),
    # p, q on machine 0; r, s on machine 1. p and s end at 20, when g has 0: it takes machine 0
    # whole (40 / 2 = 20), and q goes on beside r without a break.
    Case(
        "a gang comes together and a neighbour moves",
        "2x(1x2)",
        [
            Job("p", 0, 1, 20),
            Job("q", 0, 1, 100),
            Job("r", 0, 1, 100),
            Job("s", 0, 1, 20),
            Job("g", 15, 2, 40, profile="network"),
        ],
        {"p": (0, 20), "q": (0, 100), "r": (0, 100), "s": (0, 20), "g": (20, 40)},
        settings=TEN,
    ),
    # The gang of the whole cluster sees it at 10: one lease end. Then the others, 5 each.
    Case(
        "a gang as large as the cluster does not starve",
        "1x4",
        [*(Job(f"s{k}", k, 1, 15) for k in range(4)), Job("w", 5, 4, 40)],
        {"s0": (0, 25), "s1": (1, 26), "s2": (2, 27), "s3": (3, 28), "w": (10, 20)},
        settings=TEN,
    ),
    # The lease that would end at 10 ends nobody: the horizon comes first.
    Case(
        "no decision at the horizon",
        "1x1",
        [Job("a", 0, 1, 20), Job("b", 0, 1, 20)],
        {"a": (0, None), "b": (None, None)},
        settings={**TEN, "horizon_s": 10.0},
    ),
]

THEMIS = [
    # Nobody else: two GPUs do 40 in 20.
    Case("one app alone", "1x2", [Job("a", 0, 2, 40)], {"a": (0, 20)}, settings=TEN),
    # With f = 0.8 one of two bids, the worst off: the same order as max_rho's.
    Case(
        "one GPU goes to the worst off",
        "1x1",
        [Job("a", 0, 1, 20), Job("b", 0, 1, 40)],
        {"a": (0, 30), "b": (10, 60)},
        settings=TEN,
    ),
    # f = 0.8: only a (tie, earlier id) bids, for all 4: 40 / 4 = 10. Then b.
    Case(
        "the only bidder takes what it can use",
        "1x4",
        [Job("a", 0, 1, 40, 4), Job("b", 0, 1, 40, 4)],
        {"a": (0, 10), "b": (10, 20)},
        settings=TEN,
    ),
    # f = 0: both bid, V is proportional to the GPUs: x (4 - x) is largest at 2 and 2, again
    # at 10: 40 / 2 = 20.
    Case(
        "equal bidders share",
        "1x4",
        [Job("a", 0, 1, 40, 4), Job("b", 0, 1, 40, 4)],
        {"a": (0, 20), "b": (0, 20)},
        settings={**TEN, "fairness_knob": 0.0, "payment": "none"},
    ),
    # f = 0, gangs of 2 on 4 GPUs: both fit.
    Case(
        "nobody waits when there is enough",
        "1x4",
        [Job("a", 0, 2, 40), Job("b", 0, 2, 20)],
        {"a": (0, 20), "b": (0, 10)},
        settings={**TEN, "fairness_knob": 0.0, "payment": "none"},
    ),
]

CASES = [
    pytest.param(policy, case, id=f"{policy}-{case.name.replace(' ', '-')}")
    for policy, cases in (
        ("fifo", FIFO),
        ("tiresias", LAS),
        ("themis", THEMIS),
    )
    for case in cases
]


@pytest.mark.parametrize(("policy", "case"), CASES)
def test_schedules_computed_by_hand(policy: str, case: Case) -> None:
    check(policy, case)


def test_each_of_fifo_and_las_has_ten_or_more() -> None:
    assert min(len(FIFO), len(LAS)) >= 10


def test_states_reasons_and_gpu_seconds_of_odd_jobs() -> None:
    case = next(case for case in FIFO if case.name.startswith("impossible"))
    jobs = {row["job_id"]: row for row in play(case.cluster, case.jobs, "fifo").jobs.to_dicts()}
    assert {name: row["state"] for name, row in jobs.items() if row["state"] != "done"} == {
        "huge": "infeasible"
    }
    assert jobs["huge"]["reason"] == "needs 9 GPUs, the cluster has 8"
    # z does nothing, cpu holds no GPU; the others hold their work.
    gpu_s = {name: row["gpu_s"] for name, row in jobs.items()}
    assert gpu_s == {"huge": 0, "z": 0, "small": 10, "cpu": 0, "c": 160}


def test_what_is_cut_off_at_the_horizon_is_counted_up_to_it() -> None:
    case = next(case for case in FIFO if case.name.startswith("cut off"))
    result = play(case.cluster, case.jobs, "fifo", **case.settings)
    jobs = {row["job_id"]: row for row in result.jobs.to_dicts()}
    assert [jobs[name]["state"] for name in "abcd"] == ["done", *["unfinished"] * 3]
    assert [jobs[name]["gpu_s"] for name in "abcd"] == [100, 50, 0, 0]
    assert [jobs[name]["work_gpu_s"] for name in "abcd"] == [100, 50, 0, 0]
    assert result.leases.rows(named=True)[-1]["ended_by"] == "horizon"


def test_switches_take_gpu_time_and_are_counted() -> None:
    case = next(case for case in LAS if case.name.startswith("a switch costs"))
    apps = play(case.cluster, case.jobs, "tiresias", **case.settings).apps.to_dicts()
    # a holds 0 to 10 and 20 to 27, b 10 to 20 and 27 to 34: 12 of work and 5 of a switch each.
    for app in apps:
        parts = [app[f"{part}_gpu_s"] for part in ("useful", "slowed", "switching", "idle")]
        assert parts == [12, 0, 5, 0]
        assert (app["gpu_s"], app["preemptions"], app["migrations"]) == (17, 1, 0)


def test_renewals_are_leases_of_their_own() -> None:
    case = next(case for case in LAS if case.name.startswith("a renewal"))
    leases = play(case.cluster, case.jobs, "tiresias", **case.settings).leases
    rows = leases.select("app_id", "start_s", "end_s", "cause", "renewals", "ended_by").rows()
    # b is not renewed while nobody waits: its first lease goes on over 10, to 20.
    assert rows == [
        ("b", 0, 20, "policy", 0, "expired"),
        ("a", 20, 30, "policy", 0, "renewal"),
        ("a", 30, 40, "renewal", 1, "job_end"),
        ("b", 40, 55, "policy", 0, "job_end"),
    ]


def test_placement_takes_gpu_time_and_shows_in_the_score() -> None:
    case = next(case for case in FIFO if case.name.startswith("placement"))
    app = play(case.cluster, case.jobs, "fifo").apps.to_dicts()[0]
    # 3 x 100 held for 216 of work: score 0.72.
    assert app["gpu_s"] == 300
    assert app["useful_gpu_s"] == pytest.approx(216)
    assert app["slowed_gpu_s"] == pytest.approx(84)
    assert app["placement_score"] == pytest.approx(0.72)


def test_use_of_the_cluster_by_time() -> None:
    case = next(case for case in FIFO if case.name.startswith("nobody overtakes"))
    usage = play(case.cluster, case.jobs, "fifo").usage
    # (at, GPUs, used, working, active apps, of these without GPUs)
    assert usage.rows() == [
        (0, 4, 3, 3, 1, 0),
        (10, 4, 3, 3, 2, 1),
        (20, 4, 3, 3, 3, 2),
        (100, 4, 3, 3, 2, 0),
        (110, 4, 2, 2, 1, 0),
        (150, 4, 0, 0, 0, 0),
    ]
