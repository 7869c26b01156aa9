"""Output of the commands: JSON for programs, tables for people."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table

console = Console()


def show(value: Any) -> None:
    """Print a mapping as JSON, anything else as it is."""
    if isinstance(value, dict):
        console.print_json(json.dumps(value))
    else:
        console.print(value, highlight=False)


def show_pairs(title: str, pairs: list[tuple[str, str]]) -> None:
    """Print two columns: what, and how much."""
    table = Table(title=title, show_header=False, title_justify="left", box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, value)
    console.print(table)


def show_table(names: list[str], rows: list[list[str]]) -> None:
    """Print rows under their names."""
    table = Table(box=None, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
