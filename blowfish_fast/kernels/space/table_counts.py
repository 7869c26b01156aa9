"""Contingency tables counted from records, many at a time.

columns   age   0 3 3 1        one row per attribute, a cell number per record
sex   1 0 0 1
tables    (age)  (age, sex)    sets of rows; the cells of all tables in one array
counts    1 1 0 2 | 0 1 ...
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

ROWS_AT_ONCE = 2**13
"""Records whose cells stay in the nearest cache while all tables are counted."""


def count_tables(
    counts: IntArray,
    columns: npt.NDArray[np.int32],
    sizes: Sequence[int],
    tables: Sequence[tuple[int, ...]],
) -> None:
    """Add one to a cell of every table for each record; `counts` is changed in place.

    `counts` holds the cells of all tables, one after the other, each in C order;
    `columns` (attributes, records) the cell numbers; `sizes` the cells of each
    attribute; `tables` the attributes of each table, in the order of its axes.
    """
    shape = np.array(sizes, dtype=np.int64)
    fits = columns.ndim == 2 and columns.shape[0] == shape.size
    inside = fits and (columns >= 0).all()
    if not inside or not (columns < shape[:, None]).all():
        raise InputError("every record needs a cell number within each attribute")
    axes = np.array([one for table in tables for one in table], dtype=np.int64)
    pointers = np.cumsum([0, *map(len, tables)]).astype(np.int64)
    steps, cells = _steps(sizes, tables)
    starts = np.cumsum([0, *cells]).astype(np.int64)
    if starts[-1] != counts.size:
        raise InputError(
            f"these tables have {starts[-1]} cells; received room for {counts.size}"
        )
    _count(counts, np.ascontiguousarray(columns), pointers, axes, steps, starts)


def _steps(
    sizes: Sequence[int], tables: Sequence[tuple[int, ...]]
) -> tuple[IntArray, list[int]]:
    """Return how far a step along each axis of each table leads, and their cells."""
    steps: list[int] = []
    cells = []
    for table in tables:
        after, own = 1, []
        for axis in reversed(table):
            own.append(after)
            after *= int(sizes[axis])
        steps += reversed(own)
        cells.append(after)
    return np.array(steps, dtype=np.int64), cells


@kernel
def _count(
    counts: IntArray,
    columns: npt.NDArray[np.int32],
    pointers: IntArray,
    axes: IntArray,
    steps: IntArray,
    starts: IntArray,
) -> None:
    records = columns.shape[1]
    for low in range(0, records, ROWS_AT_ONCE):
        high = min(low + ROWS_AT_ONCE, records)
        for table in range(pointers.size - 1):
            first, end, start = pointers[table], pointers[table + 1], starts[table]
            if end - first == 1:
                one = columns[axes[first]]
                for at in range(low, high):
                    counts[start + one[at]] += 1
            elif end - first == 2:
                one, two = columns[axes[first]], columns[axes[first + 1]]
                side = steps[first]
                for at in range(low, high):
                    counts[start + one[at] * side + two[at]] += 1
            elif end - first == 3:
                one, two = columns[axes[first]], columns[axes[first + 1]]
                three = columns[axes[first + 2]]
                side, edge = steps[first], steps[first + 1]
                for at in range(low, high):
                    counts[start + one[at] * side + two[at] * edge + three[at]] += 1
            else:
                for at in range(low, high):
                    cell = start
                    for part in range(first, end):
                        cell += columns[axes[part], at] * steps[part]
                    counts[cell] += 1
