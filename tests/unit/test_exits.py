from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import click
import pytest

from themis.cli.exits import ExitCode, exit_code
from themis.errors import ClusterError, PolicyError, ScenarioError, ThemisError, TraceError


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def call() -> NoReturn:
        raise error

    return call


class Panic(BaseException):
    """Stands for the extension's panic, which is no Exception."""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ThemisError("a"), ExitCode.BAD_INPUT, "themis: error: a\n"),
        (TraceError("a: b"), ExitCode.BAD_INPUT, "themis: error: a: b\n"),
        (ScenarioError("a"), ExitCode.BAD_INPUT, "themis: error: a\n"),
        (ClusterError("a"), ExitCode.BAD_INPUT, "themis: error: a\n"),
        (PolicyError("a"), ExitCode.BAD_INPUT, "themis: error: a\n"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "themis: interrupted\n"),
        (click.Abort(), ExitCode.INTERRUPTED, "themis: interrupted\n"),
        (OSError(28, "No space", "f"), ExitCode.RUN_FAILED, "themis: error: f: No space\n"),
        (KeyError("k"), ExitCode.RUN_FAILED, "themis: internal error: KeyError: 'k'\n"),
        (RuntimeError("a\nb"), ExitCode.RUN_FAILED, "themis: internal error: RuntimeError: a\n"),
        (MemoryError(), ExitCode.RUN_FAILED,
         "themis: internal error: MemoryError: out of memory\n"),
        (Panic("p"), ExitCode.RUN_FAILED, "themis: internal error: Panic: p\n"),
    ],
)  # fmt: skip
def test_every_error_has_its_code_and_one_message(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(raising(error)) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", message)


@pytest.mark.parametrize(("value", "code"), [(None, 0), (4, 4), ("text", 0)])
def test_a_call_that_returns_is_done_or_names_its_code(value: object, code: int) -> None:
    assert exit_code(lambda: value) == code


def test_where_an_internal_error_came_from_is_shown_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THEMIS_DEBUG", "1")
    assert exit_code(raising(KeyError("k"))) == ExitCode.RUN_FAILED
    assert "Traceback" in capsys.readouterr().err


def test_the_codes_are_the_documented_ones() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0,
        "RUN_FAILED": 1,
        "USAGE": 2,
        "BAD_INPUT": 3,
        "CHECK_FAILED": 4,
        "INTERRUPTED": 130,
    }
