"""Columns of a job file that are described by keys, and what [data] adds to them.

    age = "0:101:1"                                            in words
    age = { cells = { start = 0, stop = 101, width = 1 } }     by keys, as the explorer
    tract = { file = "tracts.gpkg", id = "GEOID", lon = "lon", lat = "lat" }

The first two state the same cells. The keys are those of the shipped description of a
table, as far as a release of one table has them, and those of a file of districts,
which holds their borders instead of the description. A job file refuses missing values
and values outside where nothing is said of them, as flags do; a description of a whole
table (`tables.py`) gives them cells, as the explorer does.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from typing import Any

from blowfish_fast.data.listed_items import written_item
from blowfish_fast.errors import InputError, nearest

from .shipped import part_of_table

CELLS = ("cells", "edges", "dates", "levels")
"""The ways to state the cells of a column, of which one is taken."""
FILE = "file"
"""The way that only a job file has: cells are the districts of a file."""
DISTRICTS: dict[str, dict[str, Any]] = {
    FILE: {
        "type": "string",
        "description": "A public file of polygons, such as tracts.gpkg: one cell each.",
    },
    "id": {
        "type": "string",
        "description": "The property of the file that names its districts.",
    },
    "lon": {
        "type": "string",
        "description": "The column of the records with longitudes, or x.",
    },
    "lat": {
        "type": "string",
        "description": "The column of the records with latitudes, or y.",
    },
    "system": {
        "type": "string",
        "description": "The reference system where the file states none: EPSG:2056.",
    },
    "step": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Borders are rounded to it, so that slivers vanish.",
    },
}
"""The keys of districts."""
OTHER_KEYS = ("outside", "missing", "extras_joined")
"""What else is said of a column in a job file."""


@cache
def column_schema() -> dict[str, Any]:
    """Return the JSON Schema of a described column of a job file.

    Examples
    --------
    >>> [*column_schema()["properties"]]
    ['cells', 'edges', 'dates', 'levels', 'file', 'id', 'lon', 'lat', 'system', 'step',
    'outside', 'missing', 'extras_joined']
    """
    keys = part_of_table("AttributeSpec")["properties"]
    cells = {**part_of_table("EqualCells"), "description": "Cells of equal width."}
    own = {key: dict(keys[key]) for key in CELLS}
    chosen = {**own, **DISTRICTS, **{key: dict(keys[key]) for key in OTHER_KEYS}}
    # What is left out is refused here, and has a default in the explorer.
    for key in OTHER_KEYS:
        chosen[key].pop("default", None)
    return {
        "type": "object",
        "description": "The cells of a column, in exactly one of five ways.",
        "properties": chosen | {"cells": cells},
        "oneOf": [
            *({"required": [way]} for way in CELLS),
            {"required": [FILE, "id"]},
        ],
        "dependentRequired": {
            **{key: [FILE] for key in DISTRICTS if key != FILE},
            "lon": [FILE, "lat"],
            "lat": [FILE, "lon"],
        },
        "additionalProperties": False,
    }


def check_keys(where: str, stated: Any, schema: Mapping[str, Any]) -> None:
    """Refuse keys that a schema does not have, and words that a key does not take.

    Parameters
    ----------
    where : str
        What is described, for the message: "'age' in [domain]".
    stated : mapping
        The description.
    schema : mapping
        The JSON Schema of such descriptions.

    Raises
    ------
    InputError
        If it is no table, or a key or a word is wrong; the message names it.
    """
    keys = schema["properties"]
    if not isinstance(stated, Mapping):
        raise InputError(
            f"the description of {where} is a table of {', '.join(keys)}; received "
            f"{stated!r}"
        )
    for key, value in stated.items():
        if key not in keys:
            raise InputError(
                f"the description of {where} has no {key!r}{nearest(key, keys)}; it "
                f"takes {', '.join(keys)}"
            )
        choices = keys[key].get("enum")
        if choices is not None and value not in choices:
            raise InputError(
                f"{key!r} of {where} is {' or '.join(choices)}; received {value!r}"
            )


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
    >>> described_cells("tract", {"file": "tracts.gpkg", "id": "GEOID"})
    'polygons:tracts.gpkg:GEOID'
    """
    check_keys(f"{name!r} in [domain]", stated, column_schema())
    ways = [way for way in (*CELLS, FILE) if way in stated]
    if len(ways) != 1:
        raise InputError(
            f"the cells of {name!r} in [domain] are stated by one of "
            f"{', '.join((*CELLS, FILE))}; received {', '.join(ways) or 'none of them'}"
        )
    (way,) = ways
    value = stated[way]
    of_districts = [key for key in DISTRICTS if key in stated]
    if way == FILE:
        return _districts(name, {key: stated[key] for key in of_districts})
    if of_districts:
        raise InputError(
            f"{of_districts[0]!r} of {name!r} in [domain] is said of districts, which "
            f"have a {FILE!r}",
            received=", ".join(stated),
        )
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
    names = part_of_table("EqualCells")["required"]
    whole = isinstance(stated, Mapping) and set(stated) == set(names)
    if not whole or not all(isinstance(stated[key], int | float) for key in names):
        raise InputError(
            f"'cells' of {name!r} in [domain] has the numbers {', '.join(names)}; "
            f"received {stated!r}"
        )
    return ":".join(str(stated[key]) for key in names)


def _districts(name: str, stated: Mapping[str, Any]) -> str:
    """Return the words of the districts of a file, which have an order of their own."""
    where = f"{name!r} in [domain]"
    if "id" not in stated or ("lon" in stated) != ("lat" in stated):
        raise InputError(
            f"districts of {where} have a file and an id, and lon and lat both or "
            "neither",
            received=", ".join(stated),
        )
    for key, value in stated.items():
        if key == "step":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{key!r} of {where} is a number; received {value!r}")
        elif not isinstance(value, str) or not value.strip():
            raise InputError(f"{key!r} of {where} is a text; received {value!r}")
        elif key in ("id", "lon", "lat") and set(value) & set(":,="):
            raise InputError(
                f"{key!r} of {where} names a column without colon, comma and equals "
                "sign",
                received=repr(value),
                way_out="Call the column otherwise, in a copy of its file",
            )
    words = ["polygons", stated[FILE], stated["id"]]
    if "lon" in stated:
        words.append(f"{stated['lon']},{stated['lat']}")
    if "system" in stated:
        words.append(stated["system"])
    if "step" in stated:
        words.append(f"step={stated['step']}")
    return ":".join(words)


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
        A rule for all columns, rules by column, or both in the words of a flag. What
        is said of a column goes before what is said of all.

    Examples
    --------
    >>> described_treatments("missing", "cell", {"age": {"missing": "none"}})
    'cell,age=refuse'
    """
    own = {
        name: "refuse" if cells[rule] == "none" else cells[rule]
        for name, cells in columns.items()
        if isinstance(cells, Mapping) and rule in cells
    }
    if not own:
        return stated
    if isinstance(stated, str):
        pairs = [f"{written_item(name)}={word}" for name, word in own.items()]
        return ",".join([stated, *pairs])
    return {**(stated or {}), **own}
