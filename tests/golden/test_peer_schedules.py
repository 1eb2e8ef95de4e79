"""Schedules of the peers' policies, computed by hand, and where two policies must differ.

Leases of 10 s, switches cost nothing. All leases end together, so that at 10, 20, ... everything
is on offer again.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.small import Job, play, spans
from tests.golden.cases import TEN, Case, check

import themis
from themis.result import Result

EQUAL = [Job("a", 0, 1, 20), Job("b", 0, 1, 20)]
SPREAD = [Job("a", 0, 3, 30, profile="network"), Job("b", 0, 2, 40)]
TURNS: dict[str, tuple[float | None, float | None]] = {"a": (0, 30), "b": (10, 40)}
ELASTIC = [Job("a", 0, 1, 40, 4), Job("b", 0, 1, 40, 4)]

GANDIVA = [
    # a would span both racks (0.5), b fits a machine (1): b first, again at 10. a: 3 x 0.5.
    Case("the best placed goes first", "2x(1x2)", SPREAD, {"a": (20, 40), "b": (0, 20)}),
    # All score 1. One GPU each, then a2: with one GPU a and b tie.
    Case(
        "a tie goes to the app with the fewest GPUs",
        "1x4",
        [
            Job("a1", 0, 1, 10, app="a"),
            Job("a2", 0, 1, 10, app="a"),
            Job("b1", 0, 1, 10, app="b"),
            Job("b2", 0, 1, 10, app="b"),
            Job("c", 0, 1, 10),
        ],
        {"a1": (0, 10), "a2": (0, 10), "b1": (0, 10), "b2": (10, 20), "c": (0, 10)},
    ),
    # At 10 and 30 a had the GPU, at 20 b.
    Case("then to the app that had the fewest", "1x1", EQUAL, TURNS),
    # Four GPUs of two racks are worth two of one machine.
    Case(
        "an elastic job claims GPUs that are close together",
        "2x(1x2)",
        [Job("a", 0, 1, 40, 4, profile="network"), Job("b", 0, 2, 20)],
        {"a": (0, 20), "b": (0, 10)},
    ),
    # a and c fill a slot each (1). b would span the slots (0.9) and waits until c ends.
    Case(
        "a gang over two slots waits for gangs of one",
        "1x4/2",
        [
            Job("a", 0, 2, 20, profile="network"),
            Job("b", 0, 3, 27, profile="network"),
            Job("c", 0, 2, 40, profile="network"),
        ],
        {"a": (0, 10), "b": (20, 30), "c": (0, 20)},
    ),
]

OPTIMUS = [
    # One each (unbounded), then 2/1 each, a first; then 3/2 for a and 2/1 for b: 2 and 2.
    Case("equals share", "1x4", ELASTIC, {"a": (0, 20), "b": (0, 20)}),
    # With two GPUs of a slot each, a third brings a 2.7 / 2 and b 3 / 2.
    Case(
        "the larger ratio takes the last GPU",
        "1x5/2",
        [Job("a", 0, 2, 40, 3, profile="network"), Job("b", 0, 2, 60, 3)],
        {"a": (0, 20), "b": (0, 20)},
    ),
    # a: one GPU of the machine that b left, then its neighbour. A third would be in the other
    # rack: 3 x 0.5 < 2.
    Case(
        "no GPU that does not help",
        "2x(1x2)",
        [Job("a", 0, 1, 40, 4, profile="network"), Job("b", 0, 2, 20)],
        {"a": (0, 20), "b": (0, 10)},
    ),
    # Both have nothing: a takes one step, one GPU, and the gang gets its two. At 10 a has 20
    # left and all three.
    Case(
        "a gang is one step",
        "1x3",
        [Job("a", 0, 1, 30, 3), Job("g", 0, 2, 20)],
        {"a": (0, 16.666667), "g": (0, 10)},
    ),
    # At 0 a came first; at 10 it had the GPU.
    Case("unbounded ratios take turns", "1x1", EQUAL, TURNS),
    # a1, b; then both would double, a first: a2. From 10 on b has two.
    Case(
        "the throughput of the app counts",
        "1x3",
        [Job("a1", 0, 1, 10, app="a"), Job("a2", 0, 1, 10, app="a"), Job("b", 0, 1, 20, 2)],
        {"a1": (0, 10), "a2": (0, 10), "b": (0, 15)},
    ),
]

TIME_OR_SERVICE = [Job("a", 0, 1, 20), Job("b", 0, 2, 30)]

SRTF = [
    # b: 15 s on two GPUs, a: 20 s on one.
    Case("the shortest time goes first", "1x2", TIME_OR_SERVICE, {"a": (15, 35), "b": (0, 15)}),
    # At 10 a has 10 left.
    Case("a tie goes to the earlier app", "1x1", EQUAL, {"a": (0, 20), "b": (20, 40)}),
    # At 10: 5 < 30.
    Case(
        "a shorter newcomer takes over at the lease end",
        "1x1",
        [Job("a", 0, 1, 40), Job("b", 3, 1, 5)],
        {"a": (0, 45), "b": (10, 15)},
    ),
    # a over two racks: 30 / 1.5 = 20 s, although its work is less. b: 17 s.
    Case(
        "the placement on offer counts",
        "2x(1x2)",
        [Job("a", 0, 3, 30, profile="network"), Job("b", 0, 2, 34)],
        {"a": (17, 37), "b": (0, 17)},
    ),
    # b: 9 s (a: 10 s with all four). Then one GPU is left: a would take 40 s, c 20 s. a has
    # three from 9 on; at 10 it would take 37 / 4, c 10 s: a takes four.
    Case(
        "what is left counts",
        "1x4",
        [Job("a", 0, 1, 40, 4), Job("b", 0, 3, 27), Job("c", 0, 1, 20)],
        {"a": (9, 19.25), "b": (0, 9), "c": (0, 29.25)},
    ),
]

SRSF = [
    # a: 20 GPU-s, b: 30.
    Case("the least work goes first", "1x2", TIME_OR_SERVICE, {"a": (0, 20), "b": (20, 35)}),
    # App a: 20 in all, b: 15.
    Case(
        "the work of the whole app counts",
        "1x1",
        [Job("a1", 0, 1, 10, app="a"), Job("a2", 0, 1, 10, app="a"), Job("b", 0, 1, 15)],
        {"a1": (15, 25), "a2": (25, 35), "b": (0, 15)},
    ),
    Case("a tie goes to the earlier app", "1x1", EQUAL, {"a": (0, 20), "b": (20, 40)}),
    # At 20 a has 20 left, less than b's 25.
    Case(
        "what is left counts, not the whole",
        "1x1",
        [Job("a", 0, 1, 40), Job("b", 12, 1, 25)],
        {"a": (0, 40), "b": (40, 65)},
    ),
    # a: 3 x 10. b can't use the last GPU, c can. At 10 both fit.
    Case(
        "who can't use what is left is passed over",
        "1x4",
        [Job("a", 0, 3, 30), Job("b", 0, 2, 40), Job("c", 0, 1, 50)],
        {"a": (0, 10), "b": (10, 30), "c": (0, 50)},
    ),
    # a needs 10 GPU-s more to its end, b 20.
    Case(
        "the job that ends the app counts",
        "1x1",
        [Job("a1", 0, 1, 100, app="a"), Job("a2", 0, 1, 10, app="a"), Job("b", 0, 1, 20)],
        {"a1": (None, 10), "a2": (0, 10), "b": (10, 30)},
        ("a",),
    ),
]

DRF = [
    # a1; b, with nothing, its gang; a2, since 1 < 2.
    Case(
        "the smallest share goes first",
        "1x4",
        [*(Job(f"a{k}", 0, 1, 10, app="a") for k in (1, 2, 3)), Job("b", 0, 2, 20)],
        {"a1": (0, 10), "a2": (0, 10), "a3": (10, 20), "b": (0, 10)},
    ),
    Case("equals share", "1x4", ELASTIC, {"a": (0, 20), "b": (0, 20)}),
    Case("equals take turns", "1x1", EQUAL, TURNS),
    # With two each a tie: a takes the last GPU, 2.7 a second. At 5 b has 50 left and three.
    Case(
        "a tie goes to the earlier app",
        "1x5/2",
        [Job("a", 0, 2, 13.5, 3, profile="network"), Job("b", 0, 2, 60, 3)],
        {"a": (0, 5), "b": (0, 21.666667)},
    ),
    # a has 20 GPU-s at 20 and b none, but only the last lease counts: b, a, b, a.
    Case(
        "service long past counts for nothing",
        "1x1",
        [Job("a", 0, 1, 40), Job("b", 12, 1, 20)],
        {"a": (0, 60), "b": (20, 50)},
    ),
    # a's gang; b's does not fit, c takes the last GPU. At 10 b and c.
    Case(
        "a gang that does not fit is passed over",
        "1x3",
        [Job("a", 0, 2, 20), Job("b", 0, 2, 20), Job("c", 0, 1, 30)],
        {"a": (0, 10), "b": (10, 20), "c": (0, 30)},
    ),
]

STATIC = [
    Case("halves", "1x4", ELASTIC, {"a": (0, 20), "b": (0, 20)}),
    # a uses one GPU of its two; b does not get the other.
    Case(
        "an unused share stands idle",
        "1x4",
        [Job("a", 0, 1, 40), Job("b", 0, 1, 80, 4)],
        {"a": (0, 40), "b": (0, 40)},
    ),
    # From 10 on b is alone: 40 left on four.
    Case(
        "shares grow when an app ends",
        "1x4",
        [Job("a", 0, 1, 20, 4), Job("b", 0, 1, 60, 4)],
        {"a": (0, 10), "b": (0, 20)},
    ),
    # A share is two GPUs. b takes its one, then a gets its gang of what is left.
    Case(
        "a gang beyond its share runs where there is room",
        "1x4",
        [Job("a", 0, 3, 30), Job("b", 0, 1, 40)],
        {"a": (0, 10), "b": (0, 40)},
    ),
    # Two GPUs, three apps: one each for the first two. At 10 c had none, and a comes next.
    Case(
        "more apps than GPUs take turns",
        "1x2",
        [*EQUAL, Job("c", 0, 1, 20)],
        {"a": (0, 20), "b": (0, 30), "c": (10, 30)},
    ),
    # Two of a's jobs fit its share, one GPU stands idle until b ends at 10.
    Case(
        "a share is for all jobs of an app",
        "1x4",
        [*(Job(f"a{k}", 0, 1, 10, app="a") for k in range(4)), Job("b", 0, 1, 10)],
        {"a0": (0, 10), "a1": (0, 10), "a2": (10, 20), "a3": (10, 20), "b": (0, 10)},
    ),
]

OPEN = {"fairness_knob": 0.0, "payment": "none"}
"""All apps see an auction, so that themis shares where these do not."""
GROWING = [Job("0c", 0, 1, 5), Job("a", 0, 1, 40, 2), Job("b", 1, 1, 100)]

SLACK = [
    # (elapsed + left) / (work x 2). At 0: 20/40 = 40/80, a. At 10: a 20/40, b 50/80: b. At 20:
    # a 30/40, b 50/80.
    Case(
        "the worst best case goes first",
        "1x1",
        [Job("a", 0, 1, 20), Job("b", 0, 1, 40)],
        {"a": (0, 30), "b": (10, 60)},
    ),
    # At 10: a 20/40, b 30/40. At 20: 30/40 both, a came first.
    Case("a tie goes to the earlier app", "1x1", EQUAL, {"a": (0, 30), "b": (10, 40)}),
    # At 10: a (10 + 90) / (100 x 1.8), b (8 + 10) / (10 x 2).
    Case(
        "a short newcomer has little to lose",
        "1x1",
        [Job("a", 0, 1, 100), Job("b", 2, 1, 10)],
        {"a": (0, 110), "b": (10, 20)},
    ),
    Case(
        "it takes all that it can use, whatever f is",
        "1x4",
        ELASTIC,
        {"a": (0, 10), "b": (10, 20)},
        settings=OPEN,
    ),
    # At 5 a GPU is free: a (5 + 17.5) / (20 x 2.8), b (4 + 100) / (100 x 3): a. At 10 again
    # 22.5 / (20 x 2.4) > 109 / (100 x 2.44). At 20 a has 5 left: 22.5 / (20 x 2.2) <
    # 119 / (100 x 2.21).
    Case(
        "what an app holds counts for nothing",
        "1x2",
        GROWING,
        {"0c": (0, 5), "a": (0, 25), "b": (20, 120)},
    ),
]

MAX_RHO = [
    # (10 + 10) / (20 x 2) = 20/40 at 10 for a, 50/80 for b: as under slack.
    Case(
        "the worst best case goes first",
        "1x1",
        [Job("a", 0, 1, 20), Job("b", 0, 1, 40)],
        {"a": (0, 30), "b": (10, 60)},
    ),
    # As under slack.
    Case(
        "it takes all that it can use, whatever f is",
        "1x4",
        ELASTIC,
        {"a": (0, 10), "b": (10, 20)},
        settings=OPEN,
    ),
    # a: 30 / 1.5 = 20 s over two racks, of 20; b: 20 of 40. At 10: a 20/20, b 30/40.
    Case(
        "bad placement makes an app worse off, and it goes first",
        "2x(1x2)",
        SPREAD,
        {"a": (0, 20), "b": (20, 40)},
    ),
    # At 10: a (10 + 90) / (100 x 1.8), b (8 + 10) / (10 x 2).
    Case(
        "a short newcomer has little to lose",
        "1x1",
        [Job("a", 0, 1, 100), Job("b", 2, 1, 10)],
        {"a": (0, 110), "b": (10, 20)},
    ),
    # At 5 b has nothing, which is unbounded, and takes the GPU. At 10 both have nothing: as
    # under slack.
    Case(
        "without GPUs an app is worst off, by holdings",
        "1x2",
        GROWING,
        {"0c": (0, 5), "a": (0, 25), "b": (5, 120)},
        settings={"filter_key": "holdings"},
    ),
    Case("one app alone", "1x2", [Job("a", 0, 2, 40)], {"a": (0, 20)}),
]

TRUE_TIMES = {"request_factor": 1.0}
RUNNING = Job("a", 0, 3, 300)

BACKFILL = [
    # a asks for 200 s, so that b is promised 200. c asks for 20 s: over by 40.
    Case(
        "a short job behind starts",
        "1x4",
        [RUNNING, Job("b", 10, 2, 100), Job("c", 20, 1, 10)],
        {"a": (0, 100), "b": (100, 150), "c": (20, 30)},
    ),
    # The same all at once.
    Case(
        "what starts now counts as running",
        "1x4",
        [RUNNING, Job("b", 0, 2, 100), Job("c", 0, 1, 10)],
        {"a": (0, 100), "b": (100, 150), "c": (0, 10)},
    ),
    # c asks for 170 s, over by 190 < 200. It takes 85 s: b waits 5 s longer than for a.
    Case(
        "requested times may deceive",
        "1x4",
        [RUNNING, Job("b", 10, 4, 100), Job("c", 20, 1, 85)],
        {"a": (0, 100), "b": (105, 130), "c": (20, 105)},
    ),
    # b is promised 100, c would end at 105.
    Case(
        "with true times nobody delays the head",
        "1x4",
        [RUNNING, Job("b", 10, 4, 100), Job("c", 20, 1, 85)],
        {"a": (0, 100), "b": (100, 125), "c": (125, 210)},
        settings=TRUE_TIMES,
    ),
    # At 200 five GPUs for b's four: c may have the fifth for as long as it likes, d has none.
    Case(
        "a GPU that the head will not need",
        "1x5",
        [RUNNING, Job("b", 10, 4, 200), Job("c", 20, 1, 1000), Job("d", 30, 1, 1000)],
        {"a": (0, 100), "b": (100, 150), "c": (20, 1020), "d": (150, 1150)},
    ),
    # Two are free, one is left over: c takes one.
    Case(
        "an elastic job behind takes no more than that",
        "1x5",
        [RUNNING, Job("b", 10, 4, 200), Job("c", 20, 1, 1000, 4)],
        {"a": (0, 100), "b": (100, 150), "c": (20, 1020)},
    ),
    # a: 3 x 0.5 over two racks takes 100 s and asks for 50. c at 20 is over by 40 < 50; d at 60
    # can't be over before a, which is expected to end any moment. b: 4 / 1.3 a second.
    Case(
        "a job that overruns its request may end any moment",
        "2x(1x2)",
        [
            Job("a", 0, 3, 150, profile="network"),
            Job("b", 10, 4, 40),
            Job("c", 20, 1, 20),
            Job("d", 60, 1, 30),
        ],
        {"a": (0, 100), "b": (100, 113), "c": (20, 40), "d": (113, 143)},
        settings=TRUE_TIMES,
    ),
]

FSP = [
    # Shared: b ends at 20, a at 30.
    Case(
        "the first to end in equal shares goes first",
        "1x1",
        [Job("a", 0, 1, 20), Job("b", 0, 1, 10)],
        {"a": (10, 30), "b": (0, 10)},
    ),
    Case("a tie goes to the earlier app", "1x1", EQUAL, {"a": (0, 20), "b": (20, 40)}),
    # Shared: at 10 a, b and c have 15 left each, and end at 55. In the run b has 20 left at
    # 20, but c is no further ahead for that.
    Case(
        "a newcomer does not overtake its equals",
        "1x1",
        [*EQUAL, Job("c", 10, 1, 15)],
        {"a": (0, 20), "b": (20, 40), "c": (40, 55)},
    ),
    # Shared: a has one of its two GPUs' worth, 20 s; b has two, 18 s.
    Case(
        "a share is worth no more than the demand",
        "1x4",
        [Job("a", 0, 1, 20), Job("b", 0, 4, 36)],
        {"a": (9, 29), "b": (0, 9)},
    ),
    # Shared: at 10 a has 20 left, b 12: b ends at 34, a at 42.
    Case(
        "a shorter newcomer overtakes",
        "1x1",
        [Job("a", 0, 1, 30), Job("b", 10, 1, 12)],
        {"a": (0, 42), "b": (10, 22)},
    ),
    # Shared: at 10 a1 and b have had 5 each. Then a has 25 left, b 19: b goes first.
    Case(
        "work that is submitted later counts",
        "1x1",
        [Job("a1", 0, 1, 10, app="a"), Job("a2", 5, 1, 20, app="a"), Job("b", 0, 1, 24)],
        {"a1": (0, 10), "a2": (34, 54), "b": (10, 34)},
    ),
]


def learning(name: str, gpus: int, work: float, a: float, profile: str | None = None) -> Job:
    """Return a job whose loss is 1 / (a k + 1) after k GPU-seconds."""
    return Job(name, 0, gpus, work, profile=profile, iterations=work, loss=(a, 1.0, 0.0))


SLAQ = [
    # Over 10 s: a 1 - 1/1.1 = .091, b 1 - 1/11 = .909. At 10: b 1/11 - 1/21 = .043, a. At 20: a
    # 1/1.1 - 1/1.2 = .076, still.
    Case(
        "the largest decrease goes first",
        "1x1",
        [learning("a", 1, 20, 0.01), learning("b", 1, 20, 1.0)],
        {"a": (10, 30), "b": (0, 40)},
    ),
    Case(
        "a job without a curve comes last",
        "1x1",
        [Job("a", 0, 1, 20), learning("b", 1, 20, 1.0)],
        {"a": (20, 40), "b": (0, 20)},
    ),
    Case("a tie goes to the earlier app", "1x1", EQUAL, {"a": (0, 20), "b": (20, 40)}),
    # Over 10 s: a 1 - 1/11, b with two GPUs 1 - 1/21. At 10: b .023, a. At 20: a .043, still.
    Case(
        "GPUs speed the decrease up",
        "1x2",
        [learning("a", 1, 20, 1.0), learning("b", 2, 40, 1.0)],
        {"a": (10, 30), "b": (0, 40)},
    ),
    # Over 10 s: a does 15 over two racks, 1 - 1/2.5; b 20 in one machine, 1 - 1/3. At 10: b
    # 1/3 - 1/5 < .6, a. At 20: a 1/2.5 - 1/4 = .15 > .133, still.
    Case(
        "bad placement slows it down",
        "2x(1x2)",
        [
            learning("a", 3, 30, 0.1, profile="network"),
            learning("b", 2, 40, 0.1, profile="network"),
        ],
        {"a": (10, 30), "b": (0, 40)},
    ),
    # a's work is over after 2 s and 1/3: 1 - 1/3 < 1 - 1/11.
    Case(
        "no decrease beyond the end",
        "1x1",
        [learning("a", 1, 2, 1.0), learning("b", 1, 10, 1.0)],
        {"a": (10, 12), "b": (0, 10)},
    ),
]

PEERS = {
    "fifo_backfill": BACKFILL,
    "fsp": FSP,
    "slaq": SLAQ,
    "gandiva": GANDIVA,
    "optimus": OPTIMUS,
    "srtf": SRTF,
    "srsf": SRSF,
    "drf": DRF,
    "static": STATIC,
    "slack": SLACK,
    "max_rho": MAX_RHO,
}


@pytest.mark.parametrize(
    ("policy", "case"),
    [
        pytest.param(policy, case, id=f"{policy}-{case.name.replace(' ', '-')}")
        for policy, cases in PEERS.items()
        for case in cases
    ],
)
def test_schedules_computed_by_hand(policy: str, case: Case) -> None:
    check(policy, case._replace(settings={**TEN, **case.settings}))


def test_five_or_more_each() -> None:
    assert min(map(len, PEERS.values())) >= 5


def played(policy: str, case: Case, **settings: Any) -> Result:  # noqa: ANN401 - as in play
    return play(case.cluster, case.jobs, policy, first=case.first, **{**TEN, **settings})


def starts(policy: str, case: Case, **settings: Any) -> dict[str, float | None]:  # noqa: ANN401
    return {job: start for job, (start, _) in spans(played(policy, case, **settings)).items()}


def case_of(policy: str, name: str) -> Case:
    return next(case for case in PEERS[policy] if case.name == name)


@pytest.mark.parametrize(
    ("policy", "name", "other", "differs"),
    [
        # Placement, or service: a came first and has had as little as b.
        ("gandiva", "the best placed goes first", "tiresias", {"a": 0, "b": 10}),
        # Fewest held, or all to the first: a1, a2, b1, b2.
        ("gandiva", "a tie goes to the app with the fewest GPUs", "tiresias", {"b2": 0, "c": 10}),
        # Equal shares at every instant, or all to the first.
        ("drf", "equals share", "tiresias", {"b": 10}),
        # Placement, or need.
        ("gandiva", "the best placed goes first", "slack", {"a": 0, "b": 20}),
        # Time, or GPU time.
        ("srtf", "the shortest time goes first", "srsf", {"a": 0, "b": 20}),
        ("srtf", "the placement on offer counts", "srsf", {"a": 0}),
        # Work left, or service attained: b's turn at 20.
        ("srsf", "what is left counts, not the whole", "tiresias", {"b": 20}),
        # A step each, or all to the first.
        ("optimus", "equals share", "srtf", {"b": 10}),
        ("static", "halves", "slack", {"b": 10}),
        # A short job behind a gang waits, or not.
        ("fifo_backfill", "a short job behind starts", "fifo", {"c": 100}),
        # There is a line, or not.
        ("fifo_backfill", "a GPU that the head will not need", "drf", {"d": 30}),
        # Work left in equal shares, or in the run: c has 15 left at 20, b 20.
        ("fsp", "a newcomer does not overtake its equals", "srsf", {"b": 35, "c": 20}),
        ("fsp", "a share is worth no more than the demand", "srsf", {"a": 0, "b": 20}),
        ("fsp", "the first to end in equal shares goes first", "tiresias", {"a": 0}),
        # Learning, or throughput, time, work.
        ("slaq", "the largest decrease goes first", "optimus", {"a": 0, "b": 10}),
        ("slaq", "no decrease beyond the end", "srtf", {"a": 0, "b": 2}),
    ],
)
def test_where_two_policies_must_differ(
    policy: str, name: str, other: str, differs: dict[str, float]
) -> None:
    case = case_of(policy, name)
    mine, theirs = starts(policy, case), starts(other, case)
    assert {job: theirs[job] for job in differs} == differs
    assert all(mine[job] != theirs[job] for job in differs)


def test_optimus_looks_at_speed_where_drf_counts_gpus() -> None:
    case = case_of("optimus", "the larger ratio takes the last GPU")
    optimus, drf = (played(name, case) for name in ("optimus", "drf"))
    held = [dict(one.apps.select("app_id", "gpu_s").iter_rows()) for one in (optimus, drf)]
    assert held[0] == {"a": 40, "b": 60}
    assert held[1]["a"] > 40


def test_a_static_share_stays_idle_where_drf_gives_it_away() -> None:
    case = case_of("static", "an unused share stands idle")
    ends = {name: spans(played(name, case))["b"][1] for name in ("static", "drf")}
    # Three GPUs of the four: 80 / 3.
    assert ends == {"static": 40, "drf": 26.666667}


def test_slack_is_max_rho_without_an_eye_on_holdings() -> None:
    case = case_of("slack", "what an app holds counts for nothing")
    assert starts("max_rho", case) == starts("slack", case)
    assert starts("slack", case, filter_key="holdings")["b"] == 20


ALIKE = {frozenset(("slack", "max_rho"))}
"""Policies that differ by settings only."""


@pytest.mark.parametrize("policy", PEERS)
def test_every_other_policy_differs_in_a_case_known_by_hand(policy: str) -> None:
    others = {one.name for one in themis.POLICIES if {one.name, policy} not in ALIKE} - {policy}
    for case in PEERS[policy]:
        others = {other for other in others
                  if spans(played(other, case, **case.settings)) == case.expected}  # fmt: skip
    assert others == set()
