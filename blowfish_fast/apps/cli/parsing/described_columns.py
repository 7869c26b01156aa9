"""Columns of a job file that are described by the keys of the explorer's tables.

    age = "0:101:1"                                            in words
    age = { cells = { start = 0, stop = 101, width = 1 } }     by keys, as the explorer

Both state the same cells. The keys are those of ``explorer.AttributeSpec``, as far as a
release of one table has them; `COLUMN_SCHEMA` says what each takes, for editors and for
the messages here alike.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from blowfish_fast.data.listed_items import written_item
from blowfish_fast.errors import InputError, nearest

NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 2}
CELLS = ("cells", "edges", "dates", "levels")
"""The ways to state the cells of a column, of which one is taken."""

COLUMN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "The cells of a column, in exactly one of four ways.",
    "properties": {
        "cells": {
            "type": "object",
            "description": "Cells of equal width.",
            "properties": {
                "start": {"type": "number", "description": "The lowest edge."},
                "stop": {"type": "number", "description": "The highest edge."},
                "width": {"type": "number", "description": "The width of every cell."},
            },
            "required": ["start", "stop", "width"],
            "additionalProperties": False,
        },
        "edges": {**NUMBERS, "description": "The edges of the cells, rising."},
        "dates": {
            "type": "array",
            "items": {"type": "string", "format": "date"},
            "minItems": 2,
            "description": "The dates at which time is cut, rising.",
        },
        "levels": {
            "type": "array",
            "items": {"type": ["string", "number"]},
            "minItems": 1,
            "description": "The levels of a category.",
        },
        "outside": {
            "enum": ["clamp", "cell"],
            "description": "Where values outside the cells go: into the end cells, or "
            "into a cell of their own.",
        },
        "missing": {
            "enum": ["cell", "none"],
            "description": "A cell for missing values, or the promise that there are "
            "none.",
        },
    },
    "oneOf": [{"required": [way]} for way in CELLS],
    "additionalProperties": False,
}
"""The JSON Schema of a described column."""


def described_cells(name: str, stated: Mapping[str, Any]) -> str:
    """Return the cells of a described column in the words of ``--domain``.

    Parameters
    ----------
    name : str
        The column.
    stated : mapping
        Its description.

    Returns
    -------
    str
        The words behind the equals sign.

    Raises
    ------
    InputError
        If a key or a value is none of the schema's; the message names it.

    Examples
    --------
    >>> described_cells("age", {"cells": {"start": 0, "stop": 101, "width": 1}})
    '0:101:1'
    >>> described_cells("sex", {"levels": ["f", "m"], "missing": "cell"})
    'categories:f,m'
    """
    keys = COLUMN_SCHEMA["properties"]
    for key, value in stated.items():
        if key not in keys:
            raise InputError(
                f"the description of {name!r} in [domain] has no {key!r}"
                f"{nearest(key, keys)}; it takes {', '.join(keys)}"
            )
        choices = keys[key].get("enum")
        if choices is not None and value not in choices:
            raise InputError(
                f"{key!r} of {name!r} in [domain] is {' or '.join(choices)}; received "
                f"{value!r}"
            )
    ways = [way for way in CELLS if way in stated]
    if len(ways) != 1:
        raise InputError(
            f"the cells of {name!r} in [domain] are stated by one of "
            f"{', '.join(CELLS)}; received {', '.join(ways) or 'none of them'}"
        )
    (way,) = ways
    value = stated[way]
    if way == "cells":
        return _evenly(name, value)
    if not isinstance(value, list) or not value:
        raise InputError(
            f"{way!r} of {name!r} in [domain] is a list; received {value!r}"
        )
    if way == "levels":
        return f"categories:{','.join(written_item(str(level)) for level in value)}"
    kinds = (int, float) if way == "edges" else (datetime.date, str)
    if not all(isinstance(edge, kinds) for edge in value):
        what = "numbers" if way == "edges" else "dates"
        raise InputError(
            f"{way!r} of {name!r} in [domain] are {what}; received {value!r}"
        )
    return f"edges:{','.join(str(edge) for edge in value)}"


def _evenly(name: str, stated: Any) -> str:
    names = COLUMN_SCHEMA["properties"]["cells"]["required"]
    whole = isinstance(stated, Mapping) and set(stated) == set(names)
    if not whole or not all(isinstance(stated[key], int | float) for key in names):
        raise InputError(
            f"'cells' of {name!r} in [domain] has the numbers {', '.join(names)}; "
            f"received {stated!r}"
        )
    return ":".join(str(stated[key]) for key in names)


def described_treatments(
    rule: str,
    stated: str | Mapping[str, str] | None,
    columns: Mapping[str, Any],
) -> str | Mapping[str, str] | None:
    """Return where missing values, or values outside, go: as stated and as described.

    Parameters
    ----------
    rule : str
        "missing" or "outside".
    stated : str, mapping or None
        What [data] says.
    columns : mapping
        The table [domain].

    Returns
    -------
    str, mapping or None
        A rule for all columns, or rules by column.

    Raises
    ------
    InputError
        If [data] states one rule for all columns beside the rule of a described one.
    """
    own = {
        name: cells[rule]
        for name, cells in columns.items()
        if isinstance(cells, Mapping) and cells.get(rule, "none") != "none"
    }
    if not own:
        return stated
    if isinstance(stated, str):
        raise InputError(
            f"{rule!r} is stated for all columns in [data] and for "
            f"{', '.join(own)} in [domain]; state it for each column, or for all"
        )
    return {**(stated or {}), **own}
