"""``blowfish schema``: what job files and the explorer's tables may state."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Literal

import typer

from blowfish_fast.apps.cli.options import Json
from blowfish_fast.apps.cli.printing import show


def run_schema(
    kind: Annotated[
        Literal["job", "table"],
        typer.Argument(
            metavar="KIND",
            help="job: the files of release; table: the explorer's descriptions.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of job files, or of the explorer's tables."""
    schema = _schema_of(kind)
    if as_json:
        show(schema)
    else:
        sys.stdout.write(json.dumps(schema, indent=2) + "\n")


def _schema_of(kind: Literal["job", "table"]) -> dict[str, Any]:
    if kind == "job":
        from blowfish_fast.apps.cli.parsing.schemas import job_schema

        return job_schema()
    from blowfish_fast.apps.explorer.catalog import TableSpec

    return TableSpec.model_json_schema()
