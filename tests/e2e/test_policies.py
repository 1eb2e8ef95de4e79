"""`themis policies` lists what `themis.POLICIES` and the engine have."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from themis import POLICIES, _core

Themis = Callable[..., subprocess.CompletedProcess[str]]


def test_the_list_is_complete_and_says_everything(themis: Themis) -> None:
    text = themis("policies").stdout
    listed = json.loads(themis("policies", "--json").stdout)["policies"]
    assert [one["name"] for one in listed] == [policy.name for policy in POLICIES]
    for one in listed:
        assert all(one[key] for key in ("description", "source", "needs", "optimises"))
        assert all(word in text for word in (one["name"], *one["aliases"], one["source"]))
        assert set(one) == {"name", "aliases", "description", "source", "needs", "optimises"}


def test_every_policy_of_the_engine_is_listed_once() -> None:
    names = [word for policy in POLICIES for word in (policy.name, *policy.aliases)]
    assert len(set(names)) == len(names)
    assert sorted(policy.name for policy in POLICIES) == sorted(_core.build_info()["policies"])
