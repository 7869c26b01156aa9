"""The papers' data sets: from a folder, or generated stand-ins that say so."""

from __future__ import annotations

from pathlib import Path

from blowfish_fast.advice.experiments.datasets import (
    GENERATED,
    DataSet,
    read_set,
    sum_cells,
)

from .stand_ins import stand_in_line, stand_in_map

LINE_SETS = (
    "nettrace",
    "adult",
    "medcost",
    "searchlogs",
    "income",
    "patent",
    "hepth",
)
"""The seven sets of the DAWA paper, easy ones first, as in its figures."""

LINE_CELLS = 4096
MAP_SIDE = 256


def line_set(name: str, data: Path | None, cells: int = LINE_CELLS) -> DataSet:
    """Return a one-dimensional set, neighbours summed where fewer `cells` are asked."""
    if data is None:
        return DataSet(name, stand_in_line(name, cells), GENERATED)
    return DataSet(name, sum_cells(read_set(f"1d/{name}", data), (cells,)), "")


def map_set(
    name: str, data: Path | None, shape: tuple[int, int] = (MAP_SIDE, MAP_SIDE)
) -> DataSet:
    """Return a two-dimensional set, blocks summed where a smaller `shape` is asked."""
    if data is None:
        return DataSet(name, stand_in_map(name, *shape), GENERATED)
    return DataSet(name, sum_cells(read_set(f"2d/{name}", data), shape), "")
