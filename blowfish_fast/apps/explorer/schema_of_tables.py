"""The JSON Schema of a table and of its budget, from the classes that read them."""

from __future__ import annotations

from typing import Any

from .catalog import TableSpec
from .questions import StatedBudget

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def table_schema() -> dict[str, Any]:
    """Return the JSON Schema of a description, as it is shipped.

    Beside the table it holds the budget that a table is added with, `StatedBudget`.
    Pydantic writes titles that repeat the names of keys, and offers null wherever a key
    may be left out. Editors would show both, so neither is here.

    Examples
    --------
    >>> table_schema()["$defs"]["PolicySpec"]["properties"]["theta"]["type"]
    'number'
    """
    schema = _without_noise(TableSpec.model_json_schema())
    schema["$defs"]["StatedBudget"] = _without_noise(StatedBudget.model_json_schema())
    return {"$schema": DIALECT, "title": "A table, as it is described once"} | schema


def _without_noise(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, nulls and the examples of docstrings."""
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            plain[key] = {name: _without_noise(part) for name, part in value.items()}
        elif key == "description":
            plain[key] = " ".join(value.partition("\n\nExamples\n")[0].split())
        elif key == "anyOf":
            stated = [
                _without_noise(part) for part in value if part != {"type": "null"}
            ]
            plain |= stated[0] if len(stated) == 1 else {key: stated}
        elif isinstance(value, dict):
            plain[key] = _without_noise(value)
        elif key != "title" and not (key == "default" and value is None):
            plain[key] = value
    return plain
