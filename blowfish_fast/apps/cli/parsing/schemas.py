"""The JSON Schema of job files, with which an editor completes and checks them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from blowfish_fast.apps.description.columns import column_schema
from blowfish_fast.apps.description.shipped import part_of_table

from .job import (
    HOW_FAR,
    KNOWN,
    NUMBER,
    NUMBERS,
    PEOPLE,
    PLACES,
    RULES,
    SEVERAL,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Job,
)
from .sample_table import TAKEN

DIALECT = "https://json-schema.org/draft/2020-12/schema"
LIST_OF_TEXTS = {"type": "array", "items": {"type": "string"}}
OF_WORDS: dict[str, dict[str, Any]] = {
    TEXT: {"type": "string"},
    NUMBER: {"type": "number"},
    WHOLE: {"type": "integer"},
    TRUTH: {"type": "boolean"},
    TEXTS: LIST_OF_TEXTS,
    SEVERAL: {"anyOf": [{"type": "string"}, {**LIST_OF_TEXTS, "minItems": 1}]},
    RULES: {
        "anyOf": [
            {"type": "string"},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ]
    },
    HOW_FAR: {"type": ["boolean", "number"]},
    PEOPLE: {
        "anyOf": [
            {"type": "integer"},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ]
    },
    NUMBERS: {"type": "array", "items": {"type": "number"}, "minItems": 1},
}
"""What a name of a job file takes, as a schema."""

COLUMNS: dict[str, Any] = {
    "type": "object",
    "description": "The cells of each column: words such as 0:101:1, a list of "
    "categories or of edges, a number of cells, or a description by keys. Public, "
    "never read off the data.",
    "additionalProperties": {
        "anyOf": [
            {"type": "string"},
            {"type": "integer"},
            {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1},
            {"$ref": "#/$defs/column"},
        ]
    },
}


SAMPLE_KEYS = {
    "drawn": {
        "enum": [*TAKEN],
        "description": "How the records were drawn from a population, on your word.",
    },
    "population": {
        "description": "How many people there are in all; by level where strata were "
        "drawn. Left out: a superpopulation.",
    },
    "replacement": {"description": "Whether a person could be drawn twice."},
    "rate": {"description": "The chance of everybody, where drawn = bernoulli."},
    "column": {"description": "The column of strata, or of classes of weights."},
    "weights": {"description": "How many people a record of each class stands for."},
}
"""What the keys of [sample] mean."""


POLICIES: dict[str, Any] = {
    "type": "object",
    "description": "The policy of each column by its name, in place of [policy]; other "
    "columns may take any value.",
    "additionalProperties": {"$ref": "#/$defs/policy"},
}


def job_schema() -> dict[str, Any]:
    """Return the JSON Schema of job files.

    Returns
    -------
    dict[str, object]
        Plain data. It is shipped as a file, which ``blowfish schema job`` prints.

    Examples
    --------
    >>> schema = job_schema()
    >>> schema["properties"]["budget"]["properties"]["rho"]["type"]
    'number'
    """
    helps = {entry.name: entry.metadata["option"].help for entry in fields(Job)}
    tables: dict[str, Any] = {
        "domain": COLUMNS,
        "ledger_domain": COLUMNS,
        "policies": POLICIES,
    }
    for table, names in KNOWN.items():
        if table not in tables:
            tables[table] = {
                "type": "object",
                "properties": {
                    name: {**OF_WORDS[takes]} for name, takes in names.items()
                },
                "additionalProperties": False,
            }
    for field, place in PLACES.items():
        tables[place.table]["properties"][place.name]["description"] = helps[field]
    for key, meaning in SAMPLE_KEYS.items():
        tables["sample"]["properties"][key] |= meaning
    limits = part_of_table("StatedBudget")["properties"]
    for key, limit in limits.items():
        # A file states numbers; how large they may be is the same everywhere.
        tables["budget"]["properties"][key] |= {**limit, "type": "number"}
    return {
        "$schema": DIALECT,
        "title": "A private release, stated once",
        "description": "A job file of `blowfish release`, in TOML.",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
        "$defs": {"column": column_schema(), "policy": part_of_table("PolicySpec")},
    }
