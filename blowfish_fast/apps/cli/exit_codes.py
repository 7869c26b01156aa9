"""How a command ends: a code for programs, a line for people, never a traceback.

0    done
1    a check found something: audit, ledger verify
2    refused: words, input or files that break a rule
3    the budget does not suffice; nothing was drawn
4    an optional package is missing
5    a fault of blowfish_fast itself
130  interrupted by Ctrl-C
141  whoever read the output stopped reading
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from blowfish_fast.errors import BlowfishError, BudgetError, MissingExtraError

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
    """Print what went wrong on the error output; return the exit code for it."""
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
    ended = [one if one.endswith((".", "?", "!")) else f"{one}." for one in parts[:-1]]
    return " ".join([*ended, parts[-1]])


def _verdict(problem: Any) -> tuple[str, int, dict[str, str | None]]:
    """Return a word, an exit code and the fields of an error."""
    if isinstance(problem, BlowfishError):
        from .wording import reword

        if isinstance(problem, MissingExtraError):
            return "missing", MISSING, reword(problem)
        spent = isinstance(problem, BudgetError)
        return "refused", EXHAUSTED if spent else REFUSED, reword(problem)
    if hasattr(problem, "format_message"):
        return "refused", REFUSED, _plain_fields(problem, problem.format_message())
    if isinstance(problem, OSError):
        where = "" if problem.filename is None else f"{problem.filename}: "
        message = f"{where}{problem.strerror or problem}"
        return "refused", REFUSED, _plain_fields(problem, message)
    if isinstance(problem, MemoryError):
        few = "there is not enough memory for this; use fewer, larger cells"
        return "refused", REFUSED, _plain_fields(problem, few)
    message = (
        f"{type(problem).__name__}: {problem}. This is a fault of blowfish_fast, not "
        f"of your input; {TRACEBACK}=1 shows where it arose. Please report it with "
        "what `blowfish version --json` prints"
    )
    return "fault", FAULT, _plain_fields(problem, message)


def _plain_fields(problem: Exception, message: str) -> dict[str, str | None]:
    """Return the fields of an error that is not the library's own."""
    fields = BlowfishError(message).to_dict()
    kind = type(problem).__name__
    return fields | {"kind": kind, "code": kind}
