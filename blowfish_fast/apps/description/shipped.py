"""The JSON Schemas that are shipped: one description of a table, for all faces.

`table.schema.json` describes a table: its columns and their cells, the policy of each,
presence, persons, snapshots, and the budget that it is added with. The explorer, its
HTTP interface and ``serve --tables`` take such descriptions. Job files, flags and
``ledger create`` take the same keys, and read here what each key takes.
`job.schema.json` describes job files, and holds the parts of the first that they share.
`registry.schema.json` describes what ``blowfish report --registry`` writes.

The files are made by ``python .ci/schemas.py --write`` from ``explorer.TableSpec`` and
``Job``, and a test compares them. Commands read the files: the classes of the explorer
need pydantic, which a release from a file does not.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parent
Kind = Literal["job", "registry", "table"]
Part = Literal[
    "AttributeSpec", "DistrictShapes", "EqualCells", "PolicySpec", "StatedBudget"
]


def schema_file(kind: Kind) -> Path:
    """Return the file of a shipped schema."""
    return FOLDER / f"{kind}.schema.json"


@cache
def shipped_schema(kind: Kind) -> dict[str, Any]:
    """Return a shipped schema as plain data; whoever reads it does not write to it.

    Examples
    --------
    >>> policies = shipped_schema("table")["$defs"]["PolicySpec"]
    >>> [*policies["properties"]]
    ['kind', 'theta', 'unit', 'blocks']
    """
    schema: dict[str, Any] = json.loads(schema_file(kind).read_text(encoding="utf-8"))
    return schema


def part_of_table(name: Part) -> Any:
    """Return a part of the description: a column, even cells, a policy, a budget."""
    return shipped_schema("table")["$defs"][name]


def key_text(part: Part, key: str) -> str:
    """Return what the description says about one of its keys, for help pages.

    Parameters
    ----------
    part : str
        A part of the description; see `part_of_table`.
    key : str
        A key of that part.

    Returns
    -------
    str
        A sentence.

    Examples
    --------
    >>> key_text("StatedBudget", "rho")
    'An amount of rho, instead of epsilon: Gaussian noise.'
    """
    text: str = part_of_table(part)["properties"][key]["description"]
    return text
