"""Slots are numbered by rack, machine and slot, numbers before text; clashes are refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis import ScenarioError
from themis.auction.slots import Label, Numbering, SlotKey

LABELS = st.one_of(st.integers(-3, 12), st.sampled_from(["", "-1", "a", "b", "07", "7", "é"]))
NAMED = st.lists(st.tuples(LABELS, LABELS, LABELS), max_size=12)


def place(key: SlotKey) -> list[tuple[bool, int, str]]:
    """What slots are ordered by, rule for rule."""
    return [(True, 0, label) if isinstance(label, str) else (False, label, "") for label in key]


def clashes(named: list[SlotKey]) -> bool:
    """Whether a machine is in two racks, or two labels of a kind read the same."""
    racks = {(machine, rack) for rack, machine, _ in named}
    kinds: list[set[Label]] = [set(labels) for labels in zip(*named, strict=True)]
    return len({machine for machine, _ in racks}) < len(racks) or any(
        a != b and str(a) == str(b)
        for labels in kinds
        for a, b in itertools.combinations(labels, 2)
    )


@given(NAMED)
def test_numbers_follow_the_written_order(named: list[SlotKey]) -> None:
    if clashes(named):
        with pytest.raises(ScenarioError, match=r"^slot \d+: (machine|labels) .* (one|same)$"):
            Numbering.of(named, "slot {}".format)
        return
    numbering = Numbering.of(named, "slot {}".format)
    assert numbering.keys == sorted(set(named), key=place)
    assert [numbering.keys[number] for number in numbering.number] == named
    for labels, numbers in (
        ([key[0] for key in numbering.keys], numbering.rack.tolist()),
        ([key[1] for key in numbering.keys], numbering.machine.tolist()),
    ):
        pairs = set(zip(labels, numbers, strict=True))
        assert len(pairs) == len(set(labels)) == len(set(numbers)), "one number a label"
        assert numbers == sorted(numbers), "those of a rack, of a machine together"


def test_a_clash_says_where_it_was_named() -> None:
    in_two_racks: list[SlotKey] = [("a", 1, 0), ("a", 1, 1), ("b", 1, 2)]
    with pytest.raises(ScenarioError, match=r"^2: machine 1 is in rack 'b', and in rack 'a' else"):
        Numbering.of(in_two_racks, str)
    alike: list[SlotKey] = [(0, 1, "5"), (0, 1, 5), (0, 1, "5")]
    with pytest.raises(ScenarioError, match=r"^0: labels 5 and '5' read the same"):
        Numbering.of(alike, str)
