"""Fair shares by weight, by hand."""

from __future__ import annotations

import pytest
from tests.differential.small import Job, ends, play
from tests.golden.test_ideal_times import figures

from themis.policies.catalogue import POLICIES

HEAVY = {"heavy": 3.0}
PAIR = [Job("heavy", 0, 1, 40, 4), Job("light", 0, 1, 40, 4)]
"""On four GPUs, each app can use them all."""


def test_a_static_partition_goes_by_weight_and_so_does_rho() -> None:
    # heavy has 3 of 4 GPUs, its fair share for as long as it lives: rho is 1. light has 1 until
    # heavy ends at 40 / 3, then all: (40 - 40 / 3) / 4 more, 20. N_avg: 4 for 40 / 3 of 20 s, then
    # 1.
    result = play("1x4", PAIR, "static", weights=HEAVY, lease_s=10.0)
    assert ends(result) == pytest.approx({"heavy": 40 / 3, "light": 20}, abs=2e-6)
    found = figures(result)
    assert found["heavy"] == pytest.approx((4 / 3, 40 / 3, 1, 10 / (40 / 3)))
    assert found["light"] == pytest.approx((3, 30, 20 / 30, 10 / 30))


def test_drf_divides_the_share_by_the_weight() -> None:
    # Steps of one GPU: heavy holds three before it has as much of its share as light with one.
    jobs = [Job(f"{app}{k}", 0, 1, 10, app=app) for app in ("heavy", "light") for k in range(4)]
    result = play("1x4", jobs, "drf", weights=HEAVY, lease_s=10.0)
    assert ends(result) == {
        **{f"heavy{k}": 10 for k in range(3)},
        "heavy3": 20,
        "light0": 10,
        "light1": 20,
        "light2": 20,
        "light3": 20,
    }


def test_max_rho_serves_the_app_with_the_larger_share_first() -> None:
    # Both arrive at 0 and need 20 s alone; the later name has the weight. Its ideal is 20 x 4 / 3,
    # that of the other 20 x 4.
    jobs = [Job("a", 0, 1, 20), Job("b", 0, 1, 20)]
    result = play("1x1", jobs, "max_rho", weights={"b": 3.0}, lease_s=600.0)
    assert ends(result) == {"a": 40, "b": 20}
    assert figures(result)["b"][:3] == pytest.approx((4 / 3, 80 / 3, 0.75))


def test_fsp_follows_the_ends_of_weighted_shares() -> None:
    # Shared by weight: a has 3/4 until it ends at 20 x 4 / 3; b has done 20 / 3 then and ends at
    # 30. By halves b would end first, at 20.
    jobs = [Job("a", 0, 1, 20), Job("b", 0, 1, 10)]
    assert ends(play("1x1", jobs, "fsp", weights={"a": 3.0})) == {"a": 20, "b": 30}
    assert ends(play("1x1", jobs, "fsp", weights={"a": 1.5})) == {"a": 30, "b": 10}


def test_fsp_follows_the_ends_of_shares_by_tenant() -> None:
    # x has 3/4 for a and y 1/4 for b and c together: a ends at 20 x 4 / 3. b and c have done 10 / 3
    # each then, and b ends 2 x 5 / 3 later, at 30. By thirds b would end first, at 15.
    jobs = [Job("a", 0, 1, 20), Job("b", 0, 1, 5), Job("c", 0, 1, 30)]
    owners = {"a": "x", "b": "y", "c": "y"}
    for x in ({"weight": 3.0}, {"guaranteed": 0.5, "weight": 1.0}):
        shares = {"x": x, "y": {"weight": 1.0}}
        result = play("1x1", jobs, "fsp", owners=owners, tenants=shares)
        assert ends(result) == {"a": 20, "b": 25, "c": 55}
    assert ends(play("1x1", jobs, "fsp", owners=owners)) == {"a": 25, "b": 5, "c": 55}


@pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])
@pytest.mark.parametrize("unit", [1e-9, 0.3, 1e9])
def test_only_ratios_count(policy: str, unit: float) -> None:
    jobs = [*PAIR, Job("late", 7, 2, 30), Job("later", 13, 1, 5, 3)]
    weights = dict.fromkeys((job.job_id for job in jobs), unit)
    alike = play("1x4", jobs, policy, lease_s=10.0)
    result = play("1x4", jobs, policy, weights=weights, lease_s=10.0, audit=True)
    assert ends(result) == ends(alike)
    assert result.apps["rho"].to_list() == pytest.approx(alike.apps["rho"].to_list(), rel=1e-12)


def test_far_apart_weights_leave_their_mark() -> None:
    # A weight is never rounded to nothing, and leaves nothing behind.
    jobs = [Job("tiny", 0, 1, 100), Job("huge", 10, 1, 50)]
    found = figures(play("1x2", jobs, "fifo", weights={"tiny": 1e-9, "huge": 1e9}, audit=True))
    # 50 of its 100 s alone, 50 s as one of 1e18 + 1.
    assert found["tiny"][0] == pytest.approx((50 + 50 * (1e18 + 1)) / 100, rel=1e-15)
    assert found["huge"][0] == 1


def test_a_weight_changes_no_schedule_that_does_not_ask_for_it() -> None:
    for policy in ("fifo", "tiresias", "srtf"):
        alike = play("1x4", PAIR, policy, lease_s=10.0)
        assert ends(play("1x4", PAIR, policy, weights=HEAVY, lease_s=10.0)) == ends(alike)
