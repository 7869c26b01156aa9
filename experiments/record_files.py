"""Records of experiments: a table with a line for each thing that was measured."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write_record(path: Path, lines: Sequence[Any], *, digits: int) -> None:
    """Write named tuples of one kind as a table.

    Parameters
    ----------
    path : Path
        The file; its folder is made.
    lines : sequence of named tuples
        All of one kind, at least one.
    digits : int
        Significant digits of numbers that are not whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(lines[0]._fields)
        for line in lines:
            writer.writerow(
                f"{value:.{digits}g}" if isinstance(value, float) else value
                for value in line
            )
