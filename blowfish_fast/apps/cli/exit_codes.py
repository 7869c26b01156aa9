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

from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    MissingExtraError,
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
    if isinstance(problem, BlowfishError):
        if isinstance(problem, MissingExtraError):
            return "missing", MISSING, reword(problem)
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


ONE_POLICY_PER_COLUMN = (
    "State one policy per column, such as --policy product:line,full (in a job file, "
    'kind = "product" and factors = ["line", "full"]), or one for all, such as full or '
    "threshold:5"
)
LARGER_CELLS = (
    "Use fewer, larger cells, or --policy full, which protects at least as much"
)
OTHER_MECHANISM = "Choose another --mechanism, such as laplace, or leave it out"

WORDINGS = {
    "unknown_treatment": Wording(
        rule="--{option} takes refuse, clamp or cell, or COLUMN=cell for one column; a "
        "record is never dropped"
    ),
    "several_problems": Wording(rule="several problems:{problems}"),
    "values_not_numbers": Wording(
        received="",
        way_out="State categories as NAME=categories:A,B, dates as NAME=FROM:TO:month",
    ),
    "fractions_of_cells": Wording(
        rule="a column without LOW:HIGH:WIDTH holds cell numbers, and some values are "
        "none",
        way_out="State its cells as NAME=LOW:HIGH:WIDTH to sort other values into them",
    ),
    "missing_values": Wording(
        way_out="State --missing cell to give them one that the policy covers"
    ),
    "unknown_levels": Wording(
        rule="records hold values that are no category of {column}, letter by letter "
        "(capitals and leading zeros count)",
        way_out="List them, too, or state --outside cell to give them a cell",
    ),
    "values_outside": Wording(
        way_out="Widen its cells, or state --outside clamp to put them into the end "
        "cells, or --outside cell to give them one of their own"
    ),
    "csv_encoding": Wording(
        way_out="Save it as CSV (UTF-8), or state how it was saved: encoding = "
        '"cp1252" under [data], or --encoding cp1252, for older Windows programs. '
        "Nothing was charged"
    ),
    "counts_of_another_shape": Wording(
        way_out="Save them in the shape of the cells, or state --cells of their shape"
    ),
    "counts_not_numbers": Wording(way_out="Count the records of each cell first"),
    "policy_needs_one_attribute": Wording(
        rule="this policy orders the cells of one column",
        received="{attributes} columns",
        way_out=ONE_POLICY_PER_COLUMN,
    ),
    "value_units_need_one_attribute": Wording(
        rule="threshold:THETA:value measures along one column",
        received="",
        way_out="State theta in cells, threshold:THETA, or one policy per column: "
        "product:threshold:A:value,threshold:B:value",
    ),
    "value_units_need_edges": Wording(
        rule="threshold:THETA:value needs a column of numbers between edges, and this "
        "one has none",
        way_out="State its cells as NAME=LOW:HIGH:WIDTH, or theta in cells, "
        "threshold:THETA",
    ),
    "theta_below_one_cell": Wording(
        way_out="Below that no two cells are joined; threshold:THETA:value measures by "
        "the edges of the domain"
    ),
    "too_many_edges_to_list": Wording(way_out=LARGER_CELLS),
    "quotient_too_large": Wording(way_out=LARGER_CELLS),
    "too_many_edges_for_extra_cells": Wording(
        way_out="Use fewer, larger cells, --policy full, or clamp such values with "
        "--missing clamp and --outside clamp"
    ),
    "l2_search_too_long": Wording(
        way_out="Use the distances :l1 or :linf, as in threshold:THETA:l1"
    ),
    "absent_in_one_factor": Wording(
        rule="part {factor} of the product hides whether someone is there at all, but "
        "a person is absent as a whole, not in one column",
        way_out="Use another policy for that column, or --policy add_remove for all",
    ),
    "edges_not_pairs": Wording(
        rule="a file of edges has two cells per line", way_out="One edge is 0,1"
    ),
    "edge_outside_domain": Wording(
        way_out="Cells are numbered from 0, the last column fastest"
    ),
    "workload_needs_one_attribute": Wording(
        rule="ranges, prefixes and all_ranges run along one column",
        received="{attributes} columns",
        way_out="State --workload rectangles:NUMBER, marginals:COLUMN or identity",
    ),
    "cells_without_value": Wording(
        rule="the selection holds the cells {extras} of {column}, which have no value",
        way_out="Select its values first: --where {column}=LOW:HIGH",
    ),
    "levels_have_no_sum": Wording(
        rule="{column} has categories, which have no sum",
        way_out="Count them, or break down by them, --by {column}",
    ),
    "not_vouched": Wording(
        way_out="State --vouched, or vouched = true under [mechanism], if its privacy "
        "is proved. Nothing was charged"
    ),
    "nothing_selected": Wording(
        rule="{condition} selects no part of any cell; {extent}"
    ),
    "range_runs_backwards": Wording(
        rule="a range LOW:HIGH must start before it ends", received="{condition}"
    ),
    "no_single_cell": Wording(
        rule="{condition} is no cell of width 1; {extent}",
        way_out="Ask for a range of values: {column}=LOW:HIGH",
    ),
    "not_a_date": Wording(rule="dates read like 2024-05-31 or 2024-05"),
    "too_few_edges": Wording(
        rule="--by {column}=A,B,C needs at least two edges", received="{edges}"
    ),
    "too_many_edges_to_measure": Wording(way_out=OTHER_MECHANISM),
    "too_many_cells_in_queries": Wording(way_out=OTHER_MECHANISM),
    "fractional_queries": Wording(way_out=OTHER_MECHANISM),
    "noise_on_edges_too_large": Wording(
        way_out="Raise --epsilon, or choose another --mechanism"
    ),
}
"""By the code of an error, what its fields read here; data stand in braces."""


def reword(problem: BlowfishError) -> dict[str, str | None]:
    """Return the fields of an error, and its message, in words that can be typed."""
    return problem.to_dict(WORDINGS, _as_typed)


def _as_typed(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, slice):
        return f"{_as_typed(value.start)}:{_as_typed(value.stop)}"
    if isinstance(value, BlowfishError):
        return f"\n  {reword(value)['message']}"
    if isinstance(value, list | tuple):
        errors = any(isinstance(one, BlowfishError) for one in value)
        return ("" if errors else ",").join(_as_typed(one) for one in value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)
