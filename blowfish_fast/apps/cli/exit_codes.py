"""How a command ends: a code for programs, a line for people, never a traceback.

0    done
1    a check found something: audit, ledger verify
2    refused: words, input or files that break a rule
3    the budget does not suffice; nothing was drawn
4    an optional package is missing
5    a fault of blowfish_fast itself, or of a mechanism of your own: the line says whose
130  interrupted by Ctrl-C
141  whoever read the output stopped reading
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Any

from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    MissingExtraError,
    PlugInError,
    Wording,
)

DONE = 0
FOUND = 1
REFUSED = 2
EXHAUSTED = 3
MISSING = 4
FAULT = 5
INTERRUPTED = 130
PIPE_CLOSED = 141

TRACEBACK = "BLOWFISH_TRACEBACK"
"""Environment variable: set to 1, every error also prints where it arose."""


def report_error(problem: Exception, *, as_json: bool) -> int:
    """Print what went wrong on the error output; return the exit code for it.

    Parameters
    ----------
    problem : Exception
        What ended the command.
    as_json : bool
        Whether it is printed as one line of JSON.

    Returns
    -------
    int
        The exit code, from the list at the top of this file.
    """
    if os.environ.get(TRACEBACK):
        traceback.print_exception(problem)
    word, code, fields = _verdict(problem)
    notes = getattr(problem, "__notes__", [])
    message = _sentences([fields["message"] or "", *notes])
    if as_json:
        line = json.dumps({"error": {**fields, "message": message}, "exit_code": code})
        sys.stderr.write(line + "\n")
        return code
    from .printing import remark

    remark(message, word=word)
    return code


def report_interruption(stop: KeyboardInterrupt) -> None:
    """Print that Ctrl-C was heard, with what was noted on the way up."""
    message = _sentences(["interrupted", *getattr(stop, "__notes__", [])])
    sys.stderr.write(message + "\n")


def _sentences(parts: list[str]) -> str:
    """Join a message and what was noted on its way up; the last keeps its end."""
    ended = [
        part if part.endswith((".", "?", "!")) else f"{part}." for part in parts[:-1]
    ]
    return " ".join([*ended, parts[-1]])


def _verdict(problem: Any) -> tuple[str, int, dict[str, str | None]]:
    if isinstance(problem, BlowfishError):
        if isinstance(problem, MissingExtraError):
            return "missing", MISSING, reword(problem)
        if isinstance(problem, PlugInError):
            return "fault", FAULT, reword(problem)
        spent = isinstance(problem, BudgetError)
        return "refused", EXHAUSTED if spent else REFUSED, reword(problem)
    word, code = "refused", REFUSED
    if hasattr(problem, "format_message"):
        message = problem.format_message()
    elif isinstance(problem, OSError):
        where = "" if problem.filename is None else f"{problem.filename}: "
        message = f"{where}{problem.strerror or problem}"
    elif isinstance(problem, MemoryError):
        message = "there is not enough memory for this; use fewer, larger cells"
    else:
        word, code = "fault", FAULT
        message = (
            f"{type(problem).__name__}: {problem}. This is a fault of blowfish_fast, "
            f"not of your input; {TRACEBACK}=1 shows where it arose. Please report it "
            "with what `blowfish version --json` prints"
        )
    fields, kind = BlowfishError(message).to_dict(), type(problem).__name__
    return word, code, fields | {"kind": kind, "code": kind}


@cache
def wordings() -> dict[str, Wording]:
    """Return what the fields of an error read here, by its code."""
    import tomllib

    text = Path(__file__).with_name("wordings.toml").read_text("utf-8")
    return {code: Wording(**fields) for code, fields in tomllib.loads(text).items()}


def reword(problem: BlowfishError) -> dict[str, str | None]:
    """Return the fields of an error, and its message, in words that can be typed."""
    return problem.to_dict(wordings(), _as_typed)


def _as_typed(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, slice):
        return f"{_as_typed(value.start)}:{_as_typed(value.stop)}"
    if isinstance(value, BlowfishError):
        return f"\n  {reword(value)['message']}"
    if isinstance(value, list | tuple):
        errors = any(isinstance(item, BlowfishError) for item in value)
        return ("" if errors else ",").join(_as_typed(item) for item in value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)
