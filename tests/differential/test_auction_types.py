"""Auctions of several GPU types against plain enumeration of every allocation."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.differential.conftest import Key, Reference
from tests.differential.small_auctions import random_mid_auction, random_offer, random_state

from themis import AppState, Bid, ScenarioError, clear_auction

CLOSE = 1e-9
CLOSE_TO_PROGRAM = 1e-6
Types = Mapping[int | str, str]


class TypedReference(Reference):
    """What bundles are worth where machines have types: the slowest GPU sets the pace."""

    def __init__(self, types: Types) -> None:
        self.types = types

    def speeds(self, app: AppState) -> dict[str, float]:
        words = set(self.types.values()) if app.gpu_types is None else app.gpu_types.split("|")
        return {kind: app.speeds.get(kind, 1.0) for kind in set(self.types.values()) & set(words)}

    def rate(self, app: AppState, held: Mapping[Key, int]) -> float:
        used = {self.types[key[1]] for key, gpus in held.items() if gpus}
        speeds = self.speeds(app)
        if not used or not used <= speeds.keys() or (len(used) > 1 and not app.mixes_types):
            return 0.0
        return super().rate(app, held) * min(speeds[kind] for kind in used)

    def rho(self, app: AppState, rates: list[float]) -> float:  # type: ignore[override]
        rate = sum(rates)
        if rate == 0:
            return math.inf
        alone = app.max_gpus // app.jobs * max(self.speeds(app).values())
        longest_s = app.work_left_s / app.jobs / alone
        return (app.elapsed_s + max(longest_s, app.work_left_s / rate)) / app.t_id_s

    def rho_empty(self, app: AppState, lease_s: float = 600.0) -> float:
        held = self.rate(app, app.held)
        if held:
            return self.rho(app, [held])
        worst = app.slowdowns()[0 if app.gang_size == 1 else 3]
        rate = app.gang_size / worst * min(self.speeds(app).values())
        return self.rho(replace(app, elapsed_s=app.elapsed_s + lease_s), [rate])


def random_typed(rng: random.Random) -> tuple[dict[Key, int], list[Bid | AppState], Types]:
    """One to four bidders on machines of two types; some are bound to one, some mix none."""
    offer = random_offer(rng)
    types: dict[int | str, str] = {key[1]: rng.choice("ab") for key in offer}
    types.setdefault(100, "a")
    types.setdefault(107, "b")
    bids: list[Bid | AppState] = []
    for name in range(rng.randint(1, 4)):
        app = random_state(rng, f"app{name}", offer)
        bound = rng.choice([None, None, "a", "b", "a|c"])
        speeds = {kind: rng.choice([0.25, 0.5, 1, 1, 2]) for kind in "ab" if rng.random() < 0.8}
        near = rng.choice(sorted(set(types.values()) if bound is None else {bound[0]}))
        held = {key: gpus for key, gpus in app.held.items() if types[key[1]] == near}
        mixes = rng.random() < 0.8
        bids.append(replace(app, held=held, gpu_types=bound, speeds=speeds, mixes_types=mixes))
        if rng.random() < 0.1:
            rows = [(tuple(rng.randint(0, n) for n in offer.values()), rng.uniform(0.5, 9))]
            bids[-1] = Bid(f"app{name}", rng.uniform(5, 15), rows)
    used = {key[1] for key in offer} | {
        key[1] for bid in bids if isinstance(bid, AppState) for key in bid.held
    }
    here = {machine: kind for machine, kind in types.items() if machine in used}
    kinds = set(here.values())
    ours = [bid for bid in bids if isinstance(bid, Bid) or bid.gpu_types is None
            or set(bid.gpu_types.split("|")) & kinds]  # fmt: skip
    return offer, ours, here


@pytest.mark.parametrize("solver", ["prices", "greedy"])
@pytest.mark.parametrize("batch", range(6))
def test_no_allocation_beats_the_bound_and_the_solver_is_near(batch: int, solver: str) -> None:
    off = []
    for seed in range(batch * 100, (batch + 1) * 100):
        offer, bids, types = random_typed(random.Random(seed))  # noqa: S311 - draws an instance
        if not bids:
            continue
        outcome = clear_auction(offer, bids, "none", gpu_types=types, solver=solver)  # type: ignore[arg-type]
        best = TypedReference(types).optimum(bids, offer)
        assert outcome.objective <= best + CLOSE, seed
        assert outcome.upper_bound >= best - CLOSE, seed
        off.append(math.expm1((best - outcome.objective) / len(bids)))
    if solver == "prices":
        assert sum(gap < CLOSE for gap in off) / len(off) >= 0.9
        assert sum(off) / len(off) <= 0.02


@pytest.mark.parametrize("batch", range(4))
def test_the_integer_program_finds_the_best_of_all_allocations(batch: int) -> None:
    pytest.importorskip("highspy")
    of_two = 0
    for seed in range(batch * 50, (batch + 1) * 50):
        offer, bids, types = random_typed(random.Random(seed))  # noqa: S311 - draws an instance
        if not bids:
            continue
        outcome = clear_auction(offer, bids, "none", gpu_types=types, solver="milp")
        best = TypedReference(types).optimum(bids, offer)
        assert outcome.objective == pytest.approx(best, abs=1e-6), seed
        of_two += len(set(types.values())) > 1
    assert of_two > 10


# docs/auction.md states these figures.
def test_the_usual_solver_is_near_the_integer_program() -> None:
    pytest.importorskip("highspy")
    short, errors = [], []
    for seed in range(60):
        offer, bids, types = random_mid_typed(random.Random(seed))  # noqa: S311 - an instance
        usual = clear_auction(offer, bids, "none", gpu_types=types)
        exact = clear_auction(offer, bids, "none", gpu_types=types, solver="milp")
        assert usual.objective <= exact.objective + CLOSE_TO_PROGRAM, seed
        assert usual.upper_bound >= exact.objective - CLOSE_TO_PROGRAM, seed
        short.append(math.expm1((exact.objective - usual.objective) / len(bids)))
        if short[-1] < CLOSE_TO_PROGRAM:
            both = usual.winners.join(exact.payments, on="app_id")
            errors += [abs(c - best) for c, best in both.select("c", "c_right").iter_rows()]
    assert sum(gap < CLOSE_TO_PROGRAM for gap in short) / len(short) >= 0.6
    assert sum(short) / len(short) <= 0.02
    assert sum(errors) / len(errors) <= 0.03


def random_mid_typed(rng: random.Random) -> tuple[dict[Key, int], list[AppState], Types]:
    """Three to seven apps on two to six machines of two types."""
    offer, bids = random_mid_auction(rng)
    machines = {key[1]: rng.choice("ab") for key in offer}
    machines |= {100: "a", 107: "b"}
    apps = []
    for app in bids:
        assert isinstance(app, AppState)
        near = {key: gpus for key, gpus in app.held.items() if machines[key[1]] == "a"}
        speeds = {"a": rng.choice([1.0, 2.0]), "b": rng.choice([0.5, 1.0, 3.0])}
        apps.append(replace(app, held=near, speeds=speeds, mixes_types=rng.random() < 0.8))
    used = {key[1] for key in offer} | {key[1] for app in apps for key in app.held}
    return offer, apps, {machine: kind for machine, kind in machines.items() if machine in used}


@pytest.mark.parametrize("payment", ["lottery", "lease", "gpus", "gpus_random", "none"])
def test_nobody_gets_a_type_that_it_may_not_use_and_nothing_useful_idles(payment: str) -> None:
    for seed in range(200):
        offer, bids, types = random_typed(random.Random(seed))  # noqa: S311 - draws an instance
        outcome = clear_auction(offer, bids, payment, seed, gpu_types=types)  # type: ignore[arg-type]
        reference = TypedReference(types)
        free = dict(offer)
        for bid in bids:
            rows = outcome.allocation.filter(app_id=bid.app_id)
            rows = rows.select("rack", "machine", "slot", "gpus")
            for *key, gpus in rows.iter_rows():
                free[tuple(key)] -= gpus
                if isinstance(bid, AppState):
                    assert types[key[1]] in reference.speeds(bid), seed
        assert min(free.values()) >= 0
        for bid in bids:
            if isinstance(bid, AppState) and bid.jobs == 1 and not bid.held:
                got = outcome.allocation.filter(app_id=bid.app_id).height
                kinds = reference.speeds(bid)
                room = [sum(n for key, n in free.items() if types[key[1]] == k) for k in kinds]
                room += [sum(room)] if bid.mixes_types else []
                assert got or max(room) < bid.gang_size, seed


def test_two_apps_of_two_speeds_swap_types() -> None:
    """x is four times as fast on a, y hardly: x has a, y has b, whoever comes first."""
    offer: dict[Key, int] = {(0, "m", 0): 2, (0, "n", 0): 2}
    for names in (("x", "y"), ("y", "x")):
        bids = [
            AppState(name, 0, 1000, 2, 2, 100, speeds={"a": 4.0 if name == "x" else 1.2})
            for name in names
        ]
        outcome = clear_auction(offer, bids, "none", gpu_types={"m": "a", "n": "b"})
        won = dict(outcome.allocation.select("app_id", "machine").iter_rows())
        assert won == {"x": "m", "y": "n"}
        # 1000 / 8 and 1000 / 2 seconds of 100.
        assert outcome.objective == pytest.approx(-math.log(1.25) - math.log(5))
        # Without x, y has a: rho 1000 / 2.4 / 100. Without y nothing changes for x.
        c = dict(outcome.payments.select("app_id", "c").iter_rows())
        assert c == pytest.approx({"x": 1 / 1.2, "y": 1.0})


@pytest.mark.parametrize("seed", range(60))
def test_names_of_types_and_units_of_speed_decide_nothing(seed: int) -> None:
    offer, bids, types = random_typed(random.Random(seed))  # noqa: S311 - draws an instance
    other = {"a": "z", "b": "a", "c": "c"}
    swapped = [
        replace(
            bid,
            work_left_s=bid.work_left_s * 4,
            gpu_types=bid.gpu_types and "|".join(other[kind] for kind in bid.gpu_types.split("|")),
            speeds={other[kind]: 4 * bid.speeds.get(kind, 1.0) for kind in "ab"},
        )
        if isinstance(bid, AppState)
        else bid
        for bid in bids
    ]
    renamed = {machine: other[kind] for machine, kind in types.items()}
    before = clear_auction(offer, bids, "lease", seed, gpu_types=types)
    after = clear_auction(offer, swapped, "lease", seed, gpu_types=renamed)
    best = TypedReference(types).optimum(bids, offer)
    assert TypedReference(renamed).optimum(swapped, offer) == pytest.approx(best)
    assert min(before.upper_bound, after.upper_bound) >= best - CLOSE


def test_one_named_type_is_no_type() -> None:
    for seed in range(40):
        offer, bids, _ = random_typed(random.Random(seed))  # noqa: S311 - draws an instance
        states = [
            replace(bid, held={}, gpu_types=None, speeds={})
            for bid in bids
            if isinstance(bid, AppState)
        ]
        machines = {key[1]: "h100" for key in offer}
        plain = clear_auction(offer, states, seed=seed)
        named = clear_auction(offer, states, seed=seed, gpu_types=machines)
        assert plain.allocation.equals(named.allocation)
        assert (plain.objective, plain.upper_bound) == (named.objective, named.upper_bound)


def test_types_are_checked() -> None:
    app = AppState("x", 0, 10, 1, 1, 10)
    offer: dict[Key, int] = {(0, 0, 0): 1, (0, 1, 0): 1}
    with pytest.raises(ScenarioError, match="machine '7' is neither on offer nor held"):
        clear_auction(offer, [app], gpu_types={7: "a"})
    with pytest.raises(ScenarioError, match="machine 0 is 3: expected a type's name"):
        clear_auction(offer, [app], gpu_types={0: 3})  # type: ignore[dict-item]
    with pytest.raises(ScenarioError, match="speed on 'a' is -1"):
        replace(app, speeds={"a": -1})
