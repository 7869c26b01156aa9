"""The JSON Schema of job files, with which an editor completes and checks them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from .described_columns import COLUMN_SCHEMA
from .job import (
    HOW_FAR,
    KNOWN,
    NUMBER,
    PLACES,
    RULES,
    SEVERAL,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Job,
)

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


def job_schema() -> dict[str, Any]:
    """Return the JSON Schema of job files.

    Returns
    -------
    dict[str, object]
        Plain data; ``blowfish schema job`` prints it.

    Examples
    --------
    >>> schema = job_schema()
    >>> schema["properties"]["budget"]["properties"]["rho"]["type"]
    'number'
    """
    told = {entry.name: entry.metadata["option"].help for entry in fields(Job)}
    tables: dict[str, Any] = {"domain": COLUMNS, "ledger_domain": COLUMNS}
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
        tables[place.table]["properties"][place.name]["description"] = told[field]
    return {
        "$schema": DIALECT,
        "title": "A private release, stated once",
        "description": "A job file of `blowfish release`, in TOML.",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
        "$defs": {"column": COLUMN_SCHEMA},
    }
