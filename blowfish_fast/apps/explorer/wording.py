"""What is wrong with plain data, field by field, in the words of those who wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

FIELDS = {
    "alpha": "the largest error (alpha)",
    "beta": "the probability of more (beta)",
    "q": "the parts",
    "width": "cells per bin",
    "cells.width": "the width of a cell",
    "granularity": "cells per bin",
    "ranges": "stretches",
    "rectangles": "boxes",
    "why": "the reason",
    "at_most": "records of a person that count (at_most)",
    "cost": "the error or the cost",
    "kind": "the kind",
}
"""What people call a field, where its name is another."""
FORMS = {
    "dates": "must be dates, such as 2024-01-31",
    "levels": "must be texts or whole numbers",
    "presence": 'must be false, true, a number or "only"',
    "ranges": "must be pairs of values, such as [20, 40]",
    "rectangles": "must be pairs of values, one for each attribute",
}
"""What is wanted of fields that take several types."""
WORDS = {
    "missing": "must be stated",
    "json_invalid": "must be JSON",
    "extra_forbidden": "is not known here",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "too_short": "must list at least {min_length}",
    "too_long": "must list at most {max_length}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_type": "must be a text",
    "literal_error": "must be one of {expected}",
    "union_tag_not_found": "must be stated",
    "model_attributes_type": "must be an object with fields",
    "model_type": "must be an object with fields",
    "union_tag_invalid": "must be one of {expected_tags}",
    **dict.fromkeys(
        ("float_type", "float_parsing", "finite_number"), "must be a number"
    ),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float"), "must be a whole number"
    ),
}
"""By the validator's word for what is wrong."""
OWN = "Value error, "
"""Before the messages of the package's own checks."""


def field_messages(problems: Iterable[Any], data: Any) -> list[dict[str, str]]:
    """Return each field of `data` that is wrong, of which attribute, and a sentence.

    Parameters
    ----------
    problems : iterable of mappings
        What pydantic found, as ``ValidationError.errors()`` returns it.
    data : object
        The plain data that was checked.

    Returns
    -------
    list of dict
        The "field", the attribute that it is "of" where there is one, and a
        "message". Several problems of one field are one message.
    """
    grouped: dict[_Place, list[Any]] = {}
    for problem in problems:
        grouped.setdefault(_place(problem, data), []).append(problem)
    messages = []
    for (way, owner), wrong in grouped.items():
        names = [step for step in way if isinstance(step, str)]
        first, field = wrong[0], names[-1] if names else ""
        about = {"field": field, **({"of": owner} if owner else {})}
        if first["msg"].startswith(OWN):
            messages.append({**about, "message": first["msg"].removeprefix(OWN)})
            continue
        template = WORDS.get(first["type"])
        words = (
            first["msg"]
            if template is None
            else template.format_map(first.get("ctx", {}))
        )
        if len(wrong) > 1 or (way and isinstance(way[-1], int)):
            words = FORMS.get(field, words)
        label = FIELDS.get(".".join(names[-2:])) or FIELDS.get(field, field or "this")
        told = f"{label} of {owner!r} {words}" if owner else f"{label} {words}"
        messages.append({**about, "message": told})
    return messages


def plain_errors(problem: ValidationError, data: Any) -> str:
    """Say what is wrong, without repeating values.

    Parameters
    ----------
    problem : ValidationError
        What pydantic raised.
    data : object
        The plain data that was checked.

    Returns
    -------
    str
        The messages of all fields, joined by semicolons.
    """
    messages = field_messages(problem.errors(include_url=False), data)
    return "; ".join(dict.fromkeys(message["message"] for message in messages))


class _Place(NamedTuple):
    """The steps to a value, and the name of the attribute that it is about."""

    way: tuple[str | int, ...]
    owner: str | None


def _place(problem: Mapping[str, Any], data: Any) -> _Place:
    """Return where a problem is; names of alternatives are no steps."""
    way, here, owner, told = [], data, None, False
    for step in problem["loc"]:
        if isinstance(here, Mapping) and "table" in here and step == here.get("kind"):
            # The kind of a question comes first, and may be the name of a field too.
            told_before, told = told, True
            if not told_before:
                continue
        if isinstance(here, Mapping) and step in here:
            way.append(step)
            here = here[step]
        elif isinstance(here, list | tuple) and isinstance(step, int):
            way.append(step)
            here = here[step] if step < len(here) else None
            if isinstance(here, Mapping):
                owner = here.get("name", here.get("attribute"))
    if problem["type"] == "missing" or not way:
        way += [step for step in problem["loc"][-1:] if isinstance(step, str)]
    if problem["type"].startswith("union_tag"):
        way.append("kind")
    return _Place(tuple(way), owner if isinstance(owner, str) else None)
