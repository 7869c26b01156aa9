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


def told(problem: Exception, *, as_json: bool) -> int:
    """Tell on the error output what went wrong; return the code that says which."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(problem)
    word, message, code = _verdict(problem)
    message = _sentences([message, *getattr(problem, "__notes__", [])])
    if as_json:
        kind = type(problem).__name__
        line = json.dumps({"error": message, "kind": kind, "code": code})
        sys.stderr.write(line + "\n")
        return code
    from .printing import remark

    remark(message, word=word)
    return code


def say_interrupted(stop: KeyboardInterrupt) -> None:
    """Tell that Ctrl-C was heard, with what was noted on the way up."""
    message = _sentences(["interrupted", *getattr(stop, "__notes__", [])])
    sys.stderr.write(message + "\n")


def _sentences(parts: list[str]) -> str:
    """Join a message and what was noted on its way up; the last keeps its end."""
    ended = [one if one.endswith((".", "?", "!")) else f"{one}." for one in parts[:-1]]
    return " ".join([*ended, parts[-1]])


def _verdict(problem: Any) -> tuple[str, str, int]:
    """Return a word, a message and a code for an error."""
    if isinstance(problem, BudgetError):
        return "refused", str(problem), EXHAUSTED
    if isinstance(problem, MissingExtraError):
        return "missing", str(problem), MISSING
    if isinstance(problem, BlowfishError):
        from .plain_words import in_plain_words

        return "refused", in_plain_words(str(problem)), REFUSED
    if hasattr(problem, "format_message"):
        return "refused", problem.format_message(), REFUSED
    if isinstance(problem, OSError):
        where = "" if problem.filename is None else f"{problem.filename}: "
        return "refused", f"{where}{problem.strerror or problem}", REFUSED
    if isinstance(problem, MemoryError):
        few = "there is not enough memory for this; use fewer, larger cells"
        return "refused", few, REFUSED
    return (
        "fault",
        f"{type(problem).__name__}: {problem}. This is a fault of blowfish_fast, not "
        f"of your input; {TRACEBACK}=1 shows where it arose. Please report it with "
        "what `blowfish version --json` prints",
        FAULT,
    )
