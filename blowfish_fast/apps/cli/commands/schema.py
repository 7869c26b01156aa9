"""``blowfish schema``: what job files, the explorer's tables and entries state."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Literal

import typer

from blowfish_fast.apps.cli.options import Json
from blowfish_fast.apps.cli.printing import show
from blowfish_fast.apps.description.shipped import shipped_schema


def run_schema(
    kind: Annotated[
        Literal["job", "table", "registry"],
        typer.Argument(
            metavar="KIND",
            help="job: the files of release; table: the explorer's descriptions; "
            "registry: entries of report --registry.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of job files, of the explorer's tables, or of entries."""
    schema = shipped_schema(kind)
    if as_json:
        show(schema)
    else:
        sys.stdout.write(json.dumps(schema, indent=2) + "\n")
