"""Recorded tables of surveys: where they stand, and how they are written."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "docs" / "data" / "tables"
"""Where recorded tables stand, from which ``docs/fill_figures.py`` fills pages."""


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write named tuples as CSV, shares with four digits after the point.

    Parameters
    ----------
    path : Path
        The file; its folder is made where it is missing.
    rows : sequence of named tuples
        All of one kind, at least one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0]._fields)
        for row in rows:
            writer.writerow(
                [f"{one:.4f}" if isinstance(one, float) else one for one in row]
            )
