"""Queries on a grid, seen along the lines of edges between its rows or columns.

Serves noise on the edges of a grid: all edges between two neighbouring columns form a
line, and a rectangle cuts a line in one run. Along each line, edges are joined in
pairs, pairs of pairs and so on. For every size the squares of the sums, and of the
differences of the two halves, say what noise on such blocks does to a query.

    line of edges     0  1  1  1      what a query takes from each draw of an edge
    sums              0  1  1  1   |  1  2  |  3
    differences                    | -1  0  | -1
    energy, size 2    sums (1 + 4) / 4      differences (1 + 0) / 4

Only edges that a query cuts are followed upwards, level by level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


class Energies(NamedTuple):
    """What each query takes from the blocks of each size.

    Arrays of shape (queries, levels): sums over blocks of 2^level edges of the squares
    of (sum of the query's amounts) / 2^level and of (first half less second half) /
    2^level, and the largest absolute values of both.
    """

    sums: FloatArray
    differences: FloatArray
    largest_sum: FloatArray
    largest_difference: FloatArray


@kernel
def _put(
    place: int, amount: float, sums: FloatArray, marks: IntArray, count: int
) -> int:
    sums[place] = amount
    marks[count] = place
    return count + 1


@kernel
def _cut_edges(
    starts: IntArray,
    ends: IntArray,
    begin: int,
    end: int,
    row: FloatArray,
    shape: IntArray,
    across: int,
    padded: int,
    sums: FloatArray,
    marks: IntArray,
) -> int:
    """List the edges that step along one axis and that the query cuts.

    The edge from line k to line k + 1 of cells, at place i along them, has the number
    ``k * padded + i``.
    """
    columns = shape[1]
    step = columns if across == 0 else 1
    last = shape[across] - 1
    count = 0
    for piece in range(begin, end):
        for cell in range(starts[piece], ends[piece]):
            value = row[cell]
            if across == 0:
                line, along = cell // columns, cell % columns
            else:
                line, along = cell % columns, cell // columns
            if line < last:
                amount = value - row[cell + step]
                if amount != 0.0:
                    count = _put(line * padded + along, amount, sums, marks, count)
            # Where the cell before is covered too, it counts the edge.
            if line > 0 and row[cell - step] == 0.0:
                count = _put((line - 1) * padded + along, -value, sums, marks, count)
    return count


@kernel
def _follow(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    shape: IntArray,
    across: int,
    levels: int,
    energies: FloatArray,
) -> None:
    padded = 1 << (levels - 1)
    places = max(shape[across] - 1, 0) * padded
    row = np.zeros(shape[0] * shape[1])
    sums = np.zeros(places)
    above = np.zeros(places // 2 + 1)
    turns = np.zeros(places // 2 + 1)
    seen = np.zeros(places // 2 + 1, dtype=np.int64)
    marks = np.empty(places, dtype=np.int64)
    next_marks = np.empty(places // 2 + 1, dtype=np.int64)
    stamp = 0
    for query in range(pointers.size - 1):
        begin, end = pointers[query], pointers[query + 1]
        for piece in range(begin, end):
            row[starts[piece] : ends[piece]] = values[piece]
        count = _cut_edges(
            starts, ends, begin, end, row, shape, across, padded, sums, marks
        )
        for piece in range(begin, end):
            row[starts[piece] : ends[piece]] = 0.0
        size = 1.0
        for level in range(levels):
            energy = 0.0
            largest = 0.0
            for entry in range(count):
                amount = abs(sums[marks[entry]]) / size
                energy += amount * amount
                largest = max(largest, amount)
            energies[0, query, level] = energy
            energies[2, query, level] = largest
            if level == levels - 1:
                break
            stamp += 1
            found = 0
            for entry in range(count):
                place = marks[entry]
                parent = place >> 1
                if seen[parent] != stamp:
                    seen[parent] = stamp
                    above[parent] = 0.0
                    turns[parent] = 0.0
                    next_marks[found] = parent
                    found += 1
                above[parent] += sums[place]
                turns[parent] += -sums[place] if place & 1 else sums[place]
            size *= 2.0
            energy = 0.0
            largest = 0.0
            for entry in range(found):
                parent = next_marks[entry]
                amount = abs(turns[parent]) / size
                energy += amount * amount
                largest = max(largest, amount)
                marks[entry] = parent
                sums[parent] = above[parent]
            energies[1, query, level + 1] = energy
            energies[3, query, level + 1] = largest
            count = found


def line_energies(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    shape: tuple[int, int],
    across: int,
) -> Energies:
    """Return what queries take from blocks of edges that step along one axis.

    Parameters
    ----------
    pointers : (queries + 1,) int64
    starts, ends, values : (pieces,)
        Query q has the value ``values[i]`` on the cells ``starts[i] .. ends[i]``, in C
        order, of its pieces i; pieces of one query are disjoint, their values not 0.
    shape : (rows, columns)
        Of the grid.
    across : {0, 1}
        The axis that the edges step along; their lines run along the other one.

    Returns
    -------
    Energies
        Level l has blocks of 2^l edges, up to one that holds a whole line.

    Examples
    --------
    >>> corner = np.array([0, 2]), np.array([0, 3]), np.array([2, 5]), np.ones(2)
    >>> found = line_energies(*corner, (3, 3), 1)
    >>> found.sums.tolist(), found.differences.tolist()
    ([[2.0, 1.0, 0.25]], [[0.0, 0.0, 0.25]])
    """
    queries, pieces = pointers.size - 1, starts.size
    cells = shape[0] * shape[1]
    if (
        pointers.ndim != 1
        or pointers[0] != 0
        or pointers[-1] != pieces
        or (np.diff(pointers) < 0).any()
        or not ends.size == values.size == pieces
        or (pieces and (starts.min() < 0 or ends.max() > cells))
        or across not in (0, 1)
    ):
        raise InputError(
            f"queries must be runs of cells from 0 to {cells}, one pointer per query "
            "and one more, seen across axis 0 or 1"
        )
    levels = line_levels(shape[1 - across])
    energies = np.zeros((4, queries, levels))
    sides = np.array(shape, dtype=np.int64)
    _follow(pointers, starts, ends, values, sides, across, levels, energies)
    return Energies(*energies)


def line_levels(length: int) -> int:
    """Return how many sizes of blocks a line has: 1, 2, 4 ... up to all of it.

    Examples
    --------
    >>> line_levels(1), line_levels(5), line_levels(8)
    (1, 4, 4)
    """
    return (length - 1).bit_length() + 1
