"""Of which runs a remark is true."""

from __future__ import annotations

from themis.results.remarks import remarks_of


def test_what_is_true_of_all_stands_alone_and_the_rest_has_names() -> None:
    read = {"notes": ["read"]}
    runs = [
        ("fifo", {"workload": read, "notes": ["a starved", "odd"]}),
        ("themis", {"workload": read, "notes": ["odd"]}),
        ("las", {"workload": read, "notes": ["a starved"]}),
    ]
    assert remarks_of(runs) == ["read", "fifo, las: a starved", "fifo, themis: odd"]
    assert remarks_of(runs[:1]) == ["read", "a starved", "odd"]
    assert remarks_of([("fifo", {}), ("las", {"notes": None, "workload": 3})]) == []
