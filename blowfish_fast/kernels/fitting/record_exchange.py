"""Records changed, a value at a time, until their tables match given ones.

A record takes another record's value, or any value, where that brings the tables of the
attribute closer to their goals, in least squares with every table alike. The *gap* of a
cell is the records in it beyond its goal:

    gaps      +2   0   -1        moving a record from the first cell to the last
    after     +1   0    0        changes the sum of squares by 2 (-1 - 2 + 1) = -4

The generator, two 31-bit congruential ones combined (L'Ecuyer 1988), is the same with
and without the compiler. It need not be secret: only public tables are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import helper, kernel

ANY_VALUE = 0.125
"""How often any value is tried: no record may hold one that is lacking."""


class _Tables(NamedTuple):
    """Tables, one after the other, and those that hold each attribute.

    Table t has the cells from ``starts[t]``; a step along its attribute ``axes[t, k]``
    is ``strides[t, k]`` of them, 0 where it has fewer than k. Attribute a is held by
    the tables ``holding[first[a]:first[a + 1]]``.
    """

    starts: IntArray
    axes: IntArray
    strides: IntArray
    weights: FloatArray
    first: IntArray
    holding: IntArray


def exchange_records(
    columns: npt.NDArray[np.int32],
    sizes: Sequence[int],
    tables: Sequence[tuple[int, ...]],
    goals: Sequence[FloatArray],
    sweeps: int,
    seed: int,
) -> None:
    """Change records in place until their tables come close to `goals`.

    A sweep tries another value of every attribute, of as many records as there are. It
    takes O(sweeps * records * tables). The same seed gives the same records.

    Parameters
    ----------
    columns : ndarray of int32, shape (attributes, records)
        Cell numbers, contiguous; they are changed.
    sizes : Sequence[int]
        How many cells each attribute has.
    tables : Sequence[tuple[int, ...]]
        The attributes of each table.
    goals : Sequence[ndarray of float64]
        The wanted counts of each table, in C order, none negative.
    sweeps : int
        How many sweeps are made.
    seed : int
        Where the generator starts.

    Raises
    ------
    InputError
        If columns or goals do not have the shapes that `sizes` and `tables` ask for.
    """
    shape = np.array(sizes, dtype=np.int64)
    if columns.shape[0] != shape.size or not columns.flags.c_contiguous:
        raise InputError("give one contiguous row of cells per attribute")
    axes = np.zeros((len(tables), max(map(len, tables), default=0)), dtype=np.int64)
    strides, gaps = np.zeros_like(axes), []
    for number, (table, goal) in enumerate(zip(tables, goals, strict=True)):
        sides = shape[list(table)]
        cells = int(np.prod(sides))
        if goal.size != cells or not (goal >= 0).all():
            raise InputError(f"a goal needs {cells} counts of 0 or more")
        axes[number, : len(table)] = table
        strides[number, : len(table)] = cells // np.cumprod(sides)
        places = strides[number, : len(table)] @ columns[list(table)]
        gaps.append(np.bincount(places, minlength=cells) - goal.reshape(-1))
    lengths = np.array([gap.size for gap in gaps], dtype=np.int64)
    holding = [
        [number for number, table in enumerate(tables) if axis in table]
        for axis in range(shape.size)
    ]
    layout = _Tables(
        np.cumsum(lengths) - lengths,
        axes,
        strides,
        1.0 / lengths,
        np.cumsum([0, *map(len, holding)]),
        np.array([number for numbers in holding for number in numbers], dtype=np.int64),
    )
    state = np.array([seed % 2147483562 + 1, (seed >> 31) % 2147483398 + 1])
    together = np.concatenate([*gaps, np.zeros(0)])
    for _ in range(sweeps):
        _sweep(columns, shape, together, layout, state)


@helper
def _draw(state: IntArray) -> float:
    """Return the next number in [0, 1)."""
    state[0] = state[0] * 40014 % 2147483563
    state[1] = state[1] * 40692 % 2147483399
    both = state[0] - state[1]
    if both < 1:
        both += 2147483562
    return float(both - 1) / 2147483562.0


@kernel
def _sweep(
    columns: npt.NDArray[np.int32],
    sizes: IntArray,
    gaps: FloatArray,
    tables: _Tables,
    state: IntArray,
) -> None:
    """Try a value for each attribute of records drawn at random.

    `gaps` are the records in each cell beyond its goal: moving one from a cell to
    another changes their squares by 2 (gap there - gap here + 1).
    """
    records = columns.shape[1]
    here = np.empty(tables.holding.size, np.int64)
    there = np.empty(tables.holding.size, np.int64)
    for _ in range(records):
        record = int(_draw(state) * records)
        for axis in range(sizes.size):
            value = int(columns[axis, int(_draw(state) * records)])
            if _draw(state) < ANY_VALUE:
                value = int(_draw(state) * sizes[axis])
            move = value - int(columns[axis, record])
            if move == 0:
                continue
            change = 0.0
            for at in range(tables.first[axis], tables.first[axis + 1]):
                table = tables.holding[at]
                cell, stride = tables.starts[table], 0
                for part in range(tables.axes.shape[1]):
                    step = tables.strides[table, part]
                    cell += columns[tables.axes[table, part], record] * step
                    if tables.axes[table, part] == axis:
                        stride += step
                here[at], there[at] = cell, cell + move * stride
                gap = gaps[there[at]] - gaps[cell] + 1.0
                change += tables.weights[table] * gap
            if change < 0.0:
                columns[axis, record] = value
                for at in range(tables.first[axis], tables.first[axis + 1]):
                    gaps[here[at]] -= 1.0
                    gaps[there[at]] += 1.0
