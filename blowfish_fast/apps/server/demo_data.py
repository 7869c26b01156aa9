"""A database to try everything on: made-up people, described as a curator would.

demo/records.sql    makes the tables, always the same ones
demo/tables.json    describes them, as `blowfish serve --tables` takes it
"""

from __future__ import annotations

import json
from pathlib import Path

DEMO = Path(__file__).parent / "demo"
TABLES = json.loads((DEMO / "tables.json").read_text())


def make_demo(path: Path) -> None:
    """Write the demo's database."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute((DEMO / "records.sql").read_text())
