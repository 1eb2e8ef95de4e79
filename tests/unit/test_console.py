from __future__ import annotations

import json
import math

import pytest

from themis.cli.console import Table, note, number, print_json, print_table
from themis.cli.results import Summary, metric_table, over_seeds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (True, "yes"),
        (82247, "82,247"),
        (0.123456, "0.1235"),
        (12.3456, "12.35"),
        (123456.7, "123,457"),
        (-12345.6, "-12,346"),
        (0.0, "0"),
        (1e300, "1e+300"),
        ("fifo", "fifo"),
    ],
)
def test_cells(value: str | float | None, text: str) -> None:
    assert number(value) == text


def test_a_table_off_the_terminal_is_plain_and_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("longest name", 1), ("b", None), ("c", 1234)]
    print_table(Table(title="title", columns=("what", "value"), rows=rows))
    assert capsys.readouterr().out.splitlines() == [
        "title",
        "what          value",
        "longest name      1",
        "b               n/a",
        "c             1,234",
    ]


def test_notes_go_to_standard_error_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    note("said")
    note("unsaid", quiet=True)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "themis: said\n")


def test_notes_steer_no_terminal_and_stay_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    note("name\x1b[31m\nthemis: forged\r\u202e\n  a line of ours")
    assert capsys.readouterr().err == (
        "themis: name\\x1b[31m\\nthemis: forged\\r\\u202e\n  a line of ours\n"
    )
    note("x" * 100_000)
    assert capsys.readouterr().err == f"themis: {'x' * 4000} ... (100,000 characters)\n"


def test_json_is_one_document_and_never_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": None, "b": 0.1})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": 0.1}
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"a": math.nan})
    assert capsys.readouterr().out == ""


def test_metrics_become_rows_in_hours_and_undefined_ones_are_left_out() -> None:
    summary = {"rho_max": 1.5, "makespan_s": 7200.0, "gpu_s": 3600.0, "jain": None}
    table = metric_table("t", {"themis": summary, "fifo": {**summary, "makespan_s": None}})
    assert list(table.columns) == ["", "themis", "fifo"]
    assert [list(row) for row in table.rows] == [
        ["Worst rho", 1.5, 1.5],
        ["Makespan (h)", 2.0, None],
        ["GPU time held (GPU-h)", 1.0, 1.0],
    ]


def test_seeds_are_condensed_to_medians_a_policy() -> None:
    runs: list[tuple[str, Summary]] = [
        ("a", {"x": 1.0, "y": None}),
        ("b", {"x": 5.0}),
        ("a", {"x": 2.0, "y": 4.0}),
        ("a", {"x": 9.0, "y": None}),
    ]
    assert over_seeds(runs) == {"a": {"x": 2.0, "y": 4.0}, "b": {"x": 5.0}}
