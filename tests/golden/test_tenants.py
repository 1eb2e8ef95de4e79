"""What tenants are owed, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.small import Job, ends, play
from tests.golden.test_ideal_times import figures

LONG = [Job(name, 0, 1, 100, 10) for name in ("a", "b", "c")]
OWNERS = {"a": "x", "b": "x", "c": "y"}


def contention(**given: Any) -> dict[str, float]:  # noqa: ANN401 - each has its own type
    """N_avg while all three are active: up to the first end, which is the horizon."""
    result = play("1x10", LONG, "static", lease_s=10.0, horizon_s=5.0, audit=True, **given)
    return {app: row[0] for app, row in figures(result).items()}


@pytest.mark.parametrize(
    ("tenants", "shares"),
    [
        # All of one: a third each.
        (None, (1 / 3, 1 / 3, 1 / 3)),
        # Two tenants, half each; x has two apps.
        ({"x": {}}, (1 / 4, 1 / 4, 1 / 2)),
        ({"x": {"weight": 4}}, (0.4, 0.4, 0.2)),
        # 0.2 for y, and half of the other 0.8.
        ({"y": {"guaranteed": 0.2}}, (0.2, 0.2, 0.6)),
        # All is guaranteed: weights count for nothing.
        ({"x": {"guaranteed": 0.9, "weight": 1}, "y": {"guaranteed": 0.1}}, (0.45, 0.45, 0.1)),
        # z has no apps: its guaranteed share is the others' meanwhile.
        ({"y": {"guaranteed": 0.2}, "z": {"guaranteed": 0.5}}, (0.2, 0.2, 0.6)),
    ],
)
def test_a_tenant_has_its_guaranteed_share_and_a_part_of_the_rest(
    tenants: object, shares: tuple[float, float, float]
) -> None:
    found = contention(owners=OWNERS, tenants=tenants)
    assert found == pytest.approx(dict(zip("abc", (1 / share for share in shares), strict=True)))


def test_apps_divide_what_their_tenant_has_by_weight() -> None:
    found = contention(owners=OWNERS, tenants={"x": {}}, weights={"a": 3.0})
    assert found == pytest.approx({"a": 1 / (3 / 8), "b": 8, "c": 2})


def test_apps_without_a_tenant_are_of_one() -> None:
    found = contention(owners={"c": "y"}, tenants={"y": {"weight": 3}})
    assert found == pytest.approx({"a": 8, "b": 8, "c": 4 / 3})


def test_a_guaranteed_share_is_what_a_static_partition_gives() -> None:
    # y's share is 0.6 of 10 GPUs, those of x 2 each. c ends at 100 / 6 s; then x has 5 each, and
    # a and b do the rest: (100 - 2 x 100 / 6) / 5 s more.
    tenants = {"y": {"guaranteed": 0.2}}
    result = play("1x10", LONG, "static", lease_s=100 / 6, owners=OWNERS, tenants=tenants)
    first = 100 / 6
    later = first + (100 - 2 * first) / 5
    assert ends(result) == pytest.approx({"a": later, "b": later, "c": first}, abs=1e-5)


def test_who_comes_and_goes_changes_what_others_are_owed() -> None:
    # One GPU each. y is active from 10 to 30: N of a is 1, then 1 / 0.2, then 1 again.
    jobs = [Job("a", 0, 1, 40), Job("c", 10, 1, 20)]
    tenants = {"y": {"guaranteed": 0.6}}
    found = figures(play("1x2", jobs, "fifo", owners={"a": "x", "c": "y"}, tenants=tenants))
    assert found["a"][0] == pytest.approx((20 * 1 + 20 / 0.2) / 40)
    assert found["c"][0] == pytest.approx(1 / 0.8)
