"""Runs the command that words name, whatever happens on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from .exit_codes import DONE, INTERRUPTED, PIPE_CLOSED, report_error, say_interrupted


def ended(words: Sequence[str]) -> int:
    """Run the command that the words name, and return its exit code."""
    as_json = "--json" in words
    _take_named_shell(words)
    try:
        from .application import application

        # For programs, wrong words are told as JSON here; for people, in typer's box.
        code = application(
            args=list(words), prog_name="blowfish", standalone_mode=not as_json
        )
        sys.stdout.flush()
    except SystemExit as end:
        # typer turns a closed pipe into the code of a failed check.
        if isinstance(end.__context__, BrokenPipeError):
            _discard_output()
            return PIPE_CLOSED
        # While words are read, typer hears Ctrl-C itself, and says nothing.
        unsaid = getattr(end.__context__, "__cause__", None)
        if isinstance(unsaid, KeyboardInterrupt):
            say_interrupted(unsaid)
            return INTERRUPTED
        return _flushed(end.code if isinstance(end.code, int) else DONE)
    except KeyboardInterrupt as stop:
        say_interrupted(stop)
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except Exception as problem:
        return report_error(problem, as_json=as_json)
    return code if isinstance(code, int) else DONE


def _take_named_shell(words: Sequence[str]) -> None:
    """Let a shell that is named count; typer would look for one above the process.

    There is none in a container, in a timed job or behind a service.
    """
    asked = ("--install-completion", "--show-completion")
    for option, shell in pairwise(words):
        if option in asked and not shell.startswith("-"):
            os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    return code


def _discard_output() -> None:
    """Point the output nowhere, so that the interpreter's last flush is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
