"""Descriptions of whole tables, read by the command line as the explorer reads them.

A file that ``serve --tables`` takes also says what ``release`` and ``ledger create``
need: the columns with their cells, where stray values go, the policy, and whose record
a row is. `job_of_table` puts that into the tables of a job file, with the explorer's
defaults written out: a cell for missing values, and one for values outside a category.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blowfish_fast.errors import InputError

from .columns import CELLS, OTHER_KEYS, check_keys
from .policies import described_policies
from .shipped import part_of_table, shipped_schema


def read_description(path: Path, name: str | None = None) -> Mapping[str, Any]:
    """Return the description of one table from a file.

    Parameters
    ----------
    path : Path
        JSON: a description, or a list of them.
    name : str, optional
        Which of several; where the file holds one table, it need not be said.

    Returns
    -------
    mapping
        The description, with the keys of the shipped schema.

    Raises
    ------
    InputError
        If the file is none, holds no table of that name, or a key is wrong.
    """
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{path} must hold JSON, a description of a table or a list of them "
            f"({problem}); `blowfish schema table` says what it may state"
        ) from None
    tables = listed if isinstance(listed, list) else [listed]
    schema = shipped_schema("table")
    for table in tables:
        called = table.get("name") if isinstance(table, Mapping) else None
        check_keys(f"the table {called!r} in {path.name}", table, schema)
    names = [str(table.get("name")) for table in tables]
    chosen = [
        table
        for table, own in zip(tables, names, strict=True)
        if name is None or own == name
    ]
    if len(chosen) != 1:
        raise InputError(
            f"{path.name} describes {', '.join(names) or 'no table'}",
            received="no name of a table" if name is None else repr(name),
            way_out="Name one of them",
        )
    return dict(chosen[0])


def job_of_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a job file would state about a described table.

    Parameters
    ----------
    table : mapping
        The description of a table.

    Returns
    -------
    dict
        The tables [domain], [data] and [policy] of a job file, and [sample] where it
        is stated. Columns are called as in the records, ``column`` where that differs
        from ``name``.

    Raises
    ------
    InputError
        If the table is one of a population, an attribute has cells that no release
        has, or a key is wrong.

    Examples
    --------
    >>> ages = {"name": "age", "cells": {"start": 0, "stop": 9, "width": 3}}
    >>> stated = job_of_table({"name": "people", "attributes": [ages]})
    >>> stated["policy"], stated["domain"]["age"]["missing"]
    ({'kind': 'full'}, 'cell')
    """
    if table.get("population") is not None:
        raise InputError(
            f"{table.get('name')!r} shares the budget of a population with other "
            "tables, which the explorer keeps; a second budget for the same people "
            "would add up",
            way_out="Ask the explorer, or describe the table without a population",
        )
    columns, called = {}, {}
    for attribute in table.get("attributes", ()):
        check_keys("an attribute", attribute, part_of_table("AttributeSpec"))
        if "words" in attribute:
            raise InputError(
                f"{attribute.get('name')!r} holds words that nobody listed, which the "
                "explorer alone counts from a description",
                way_out="State --domain NAME=letters:LONGEST instead",
            )
        name = attribute.get("column") or attribute.get("name")
        called[attribute.get("name")] = name
        if not isinstance(name, str) or name in columns:
            raise InputError(
                "every attribute has a name, and a column of its own",
                received=repr(attribute.get("name")),
            )
        columns[name] = _column(attribute)
    policies = {
        called.get(name, name): stated
        for name, stated in table.get("policies", {}).items()
    }
    words = described_policies(policies, columns, table.get("presence", False))
    data = {key: table[key] for key in ("person", "record", "at_most") if key in table}
    # Only `described_policies` has to know it: the words of the policy hold it now.
    for column in columns.values():
        column.pop("extras_joined", None)
    sample = {} if table.get("sample") is None else {"sample": dict(table["sample"])}
    if sample and "column" in sample["sample"]:
        column = sample["sample"]["column"]
        sample["sample"]["column"] = called.get(column, column)
    return {"domain": columns, "data": data, "policy": {"kind": words}, **sample}


def _column(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a column, with the explorer's defaults written out."""
    column = {
        key: attribute[key]
        for key in (*CELLS, *OTHER_KEYS)
        if attribute.get(key) is not None
    }
    if "districts" in attribute and not any(way in column for way in CELLS):
        column["levels"] = _ids(attribute.get("name"), attribute["districts"])
    column.setdefault("missing", "cell")
    column.setdefault("outside", "cell" if "levels" in column else "clamp")
    return column


def _ids(name: Any, districts: Any) -> list[Any]:
    """Return the levels that districts state by their ids."""
    from blowfish_fast.data.places.polygon_files import named_features

    check_keys(f"districts of {name!r}", districts, part_of_table("DistrictShapes"))
    features, id = districts.get("features"), districts.get("id")
    if not isinstance(features, list) or not isinstance(id, str):
        raise InputError(
            f"districts of {name!r} have a list of features and the property that is "
            "their id",
            received=repr([*districts]),
        )
    ids, _ = named_features(features, id)
    return ids
