"""Cases of policies that divide GPUs step by step: gandiva, optimus, slaq, drf, static.

Leases of 10 s, switches cost nothing. All leases end together, so that at 10, 20, ... everything
is on offer again.
"""

from __future__ import annotations

from tests.differential.small import Job
from tests.golden.cases import ELASTIC, EQUAL, SPREAD, TURNS, Case

__all__ = ["SHARING"]

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

SHARING = {
    "slaq": SLAQ,
    "gandiva": GANDIVA,
    "optimus": OPTIMUS,
    "drf": DRF,
    "static": STATIC,
}
