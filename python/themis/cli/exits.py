"""Exit codes, and how what was raised becomes one of them and one message."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum

import click

from themis.cli.console import note
from themis.errors import PolicyAnswerError, ThemisError

__all__ = ["ExitCode", "exit_code"]


class ExitCode(IntEnum):
    """What the exit code of the command line means."""

    DONE = 0
    RUN_FAILED = 1
    USAGE = 2
    BAD_INPUT = 3
    CHECK_FAILED = 4
    INTERRUPTED = 130


_BAD_NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)
"""Errors of the system that say that a path cannot be one."""


def exit_code(call: Callable[[], object]) -> int:
    """Run ``call`` and return the exit code; what went wrong is said on standard error.

    An integer that ``call`` returns is the exit code. With ``THEMIS_DEBUG`` set, unexpected
    errors show where they came from.
    """
    try:
        code = call()
        sys.stdout.flush()
    except SystemExit:
        return _silent()  # click's own answer to a reader that has gone away
    except BaseException as error:  # noqa: BLE001 - the extension's panics are no Exception
        return _said(error)
    return code if isinstance(code, int) else ExitCode.DONE


def _said(error: BaseException) -> int:
    if isinstance(error, BrokenPipeError):
        return _silent()
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        note("interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, ThemisError):
        note(f"error: {error}")
        failed = isinstance(error, PolicyAnswerError)
        return ExitCode.RUN_FAILED if failed else ExitCode.BAD_INPUT
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        note(f"error: {where}{error.strerror or error}")
        return ExitCode.BAD_INPUT if error.errno in _BAD_NAMES else ExitCode.RUN_FAILED
    if os.environ.get("THEMIS_DEBUG", "") not in {"", "0"}:
        traceback.print_exception(error)
    silent = "out of memory" if isinstance(error, MemoryError) else "(no message)"
    lines = str(error).splitlines() or [silent]
    note(f"internal error: {type(error).__name__}: {lines[0]}")
    return ExitCode.RUN_FAILED


def _silent() -> int:
    """Point standard output nowhere, so that the interpreter's last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
    return ExitCode.DONE
