"""Cases of policies that serve one app after another: srtf, srsf, fsp, slack, max_rho, backfill.

Leases of 10 s, switches cost nothing. All leases end together, so that at 10, 20, ... everything
is on offer again.
"""

from __future__ import annotations

from tests.differential.small import Job
from tests.golden.cases import ELASTIC, EQUAL, SPREAD, Case

__all__ = ["SERVING"]

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

SERVING = {
    "fifo_backfill": BACKFILL,
    "fsp": FSP,
    "srtf": SRTF,
    "srsf": SRSF,
    "slack": SLACK,
    "max_rho": MAX_RHO,
}
