"""Log-weights of every dyadic rectangle of a grid, and of all that it may become.

Serves the sampled rectangles (`kernels.rectangle_partition`). A node is a rectangle of
2**i rows and 2**j columns; one pass goes from small nodes to large:

    (0, 0) -> (0, 1) -> (0, 2)        the total of a node adds up its choices, which
      |         |         |           need the totals of nodes half as tall (above),
    (1, 0) -> (1, 1) -> (1, 2)        half as wide (to the left), or both

Log-weights are fixed-point integers (`kernels.rectangle_prior`), so costs, penalties
and sums are exact. Only totals are rounded, and `rectangle_slack` says what that can
cost. Cells beyond the end of the grid do not exist: a node whose second half is empty
stands for its first half and has nothing to choose.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling.exponential_choice import weigh_rows

from .rectangle_prior import (
    BUCKET,
    COLUMNS,
    QUARTERS,
    ROWS,
    WINDOWS,
    RectangleWeights,
)

Grids: TypeAlias = list[list[IntArray]]

_BLOCK = 1 << 13  # nodes per block, so that tables stay in the cache


class Lattice(NamedTuple):
    """Log-weights of every node, by its levels (i, j) and its place in the grid."""

    shape: tuple[int, int]
    weights: RectangleWeights
    buckets: Grids
    """As one bucket, relative to its cells."""
    windows: Grids
    """(rows, columns, r): cut into windows r + 1 halvings down, but for the last."""
    totals: Grids
    """All its derivations together."""


@kernel
def _fill_rows(
    nodes: IntArray,
    kinds: IntArray,
    logarithms: IntArray,
    buckets: IntArray,
    windows: IntArray,
    above: IntArray,
    beside: IntArray,
    smaller: IntArray,
    table: IntArray,
) -> None:
    """Write the log-weights of the choices of some nodes of one size into `table`.

    `nodes` are places in C order; `above`, `beside` and `smaller` hold the totals of
    nodes of half the rows, of half the columns, of half of both.
    """
    columns = buckets.shape[1]
    last = windows.shape[2]
    for number in range(nodes.size):
        row, column = nodes[number] // columns, nodes[number] % columns
        for choice in range(kinds.size):
            kind = kinds[choice]
            weight = logarithms[choice]
            if kind == BUCKET:
                weight += buckets[row, column]
            elif kind == ROWS:
                weight += above[2 * row, column] + above[2 * row + 1, column]
            elif kind == COLUMNS:
                weight += beside[row, 2 * column] + beside[row, 2 * column + 1]
            elif kind == QUARTERS:
                weight += smaller[2 * row, 2 * column]
                weight += smaller[2 * row, 2 * column + 1]
                weight += smaller[2 * row + 1, 2 * column]
                weight += smaller[2 * row + 1, 2 * column + 1]
            elif kind - WINDOWS <= last:  # the finest windows are the single cells
                weight += windows[row, column, kind - WINDOWS - 1]
            table[number, choice] = weight


@kernel
def _window_sums(
    buckets: IntArray,
    windows: IntArray,
    tall: int,
    wide: int,
    shape: tuple[int, int],
    floor: int,
) -> IntArray:
    """Add up the windows of four nodes, or of two; what falls below the floor stays.

    `buckets` and `windows` are those of the nodes half as tall and half as wide (an
    axis of one cell stays as it is); a node has `tall` by `wide` of them.
    """
    deep = windows.shape[2]
    sums = np.empty((shape[0], shape[1], deep + 1), dtype=np.int64)
    for row in range(shape[0]):
        bottom = min(tall * (row + 1), buckets.shape[0])
        for column in range(shape[1]):
            end = min(wide * (column + 1), buckets.shape[1])
            for depth in range(deep + 1):
                total = np.int64(0)
                for down in range(tall * row, bottom):
                    for right in range(wide * column, end):
                        if depth == 0:
                            total += buckets[down, right]
                        else:
                            total += windows[down, right, depth - 1]
                sums[row, column, depth] = max(total, floor)
    return sums


def bucket_weights(
    costs: IntArray,
    shape: tuple[int, int],
    levels: tuple[int, int],
    weights: RectangleWeights,
) -> IntArray:
    """Turn the costs of the nodes of one size into log-weights as buckets, in place."""
    heights, widths = (
        np.minimum(side - (np.arange(count) << level), 1 << level)
        for side, count, level in zip(shape, costs.shape, levels, strict=True)
    )
    saved = (heights[:, None] * widths - 1) * weights.penalty
    coefficient = weights.coefficients[levels[0]][levels[1]]
    # A dearer bucket would end at the floor anyway; the product cannot overflow.
    ceiling = 0
    if coefficient:
        ceiling = (int(saved[0, 0]) - weights.floor) // coefficient + 1
    np.minimum(costs, ceiling, out=costs)
    np.multiply(costs, -coefficient, out=costs)
    np.add(costs, saved, out=costs)
    return np.maximum(costs, weights.floor, out=costs)


def lattice_totals(costs: Grids, weights: RectangleWeights) -> Lattice:
    """Weigh every node, from single cells up to the whole grid.

    The costs of `dyadic_rectangle_costs` are overwritten: they are the largest arrays.
    """
    rows, columns = costs[0][0].shape
    shape = (int(rows), int(columns))
    lattice = Lattice(shape, weights, [], [], [])
    for tall, line in enumerate(costs):
        for table in (lattice.buckets, lattice.windows, lattice.totals):
            table.append([])
        for wide, found in enumerate(line):
            lattice.buckets[tall].append(
                bucket_weights(found, shape, (tall, wide), weights)
            )
            lattice.windows[tall].append(_windows(lattice, tall, wide))
            lattice.totals[tall].append(_totals(lattice, tall, wide))
    return lattice


def _windows(lattice: Lattice, tall: int, wide: int) -> IntArray:
    """Return the log-weights of the nodes of one size, cut into equal windows."""
    nodes = lattice.buckets[tall][wide].shape
    if max(tall, wide) < 2:  # windows smaller than the node are cells
        return np.empty((*nodes, 0), dtype=np.int64)
    row, column = max(tall - 1, 0), max(wide - 1, 0)
    return _window_sums(
        lattice.buckets[row][column],
        lattice.windows[row][column],
        1 + (tall > 0),
        1 + (wide > 0),
        nodes,
        lattice.weights.floor,
    )


def _totals(lattice: Lattice, tall: int, wide: int) -> IntArray:
    """Return the log-weights of the nodes of one size, all choices together."""
    rows, columns = lattice.buckets[tall][wide].shape
    totals = np.zeros((rows, columns), dtype=np.int64)
    if tall + wide == 0:
        return totals  # a single cell has log-weight 0
    whole_rows = rows - is_half_empty(rows - 1, tall, lattice.shape[0])
    whole_columns = columns - is_half_empty(columns - 1, wide, lattice.shape[1])
    places = np.arange(whole_rows)[:, None] * columns + np.arange(whole_columns)
    places = places.reshape(-1)
    flat = totals.reshape(-1)
    bits = lattice.weights.fraction_bits
    no_words = np.zeros(min(_BLOCK, places.size), dtype=np.uint64)
    unused = np.empty((2, no_words.size), dtype=np.int64)
    for first in range(0, places.size, _BLOCK):
        nodes = places[first : first + _BLOCK]
        table = choice_table(lattice, tall, wide, nodes)
        added = np.empty(nodes.size, dtype=np.int64)
        weigh_rows(table, no_words[: nodes.size], bits, unused[0], added, unused[1])
        flat[nodes] = added
    # A node with an empty second half: its first half in its place.
    if whole_rows < rows:
        totals[-1] = lattice.totals[tall - 1][wide][-1]
    if whole_columns < columns:
        totals[:whole_rows, -1] = lattice.totals[tall][wide - 1][:whole_rows, -1]
    return totals


def is_half_empty(place: int, level: int, side: int) -> bool:
    """Return whether the second half of a node, along one axis, has no cells."""
    return level > 0 and ((2 * place + 1) << (level - 1)) >= side


def choice_table(lattice: Lattice, tall: int, wide: int, nodes: IntArray) -> IntArray:
    """Return the log-weights of the choices of some nodes of one size.

    The lattice is complete below this size; `nodes` are places in C order, of which no
    second half is empty. One column for each of ``lattice.weights.choices[tall,
    wide]``.
    """
    kinds, logarithms = lattice.weights.choices[tall, wide]
    totals = lattice.totals
    # Where an axis has no halves, its table is never read.
    nothing = np.empty((0, 0), dtype=np.int64)
    table = np.empty((nodes.size, len(kinds)), dtype=np.int64)
    _fill_rows(
        nodes,
        np.array(kinds, dtype=np.int64),
        logarithms,
        lattice.buckets[tall][wide],
        lattice.windows[tall][wide],
        totals[tall - 1][wide] if tall else nothing,
        totals[tall][wide - 1] if wide else nothing,
        totals[tall - 1][wide - 1] if tall and wide else nothing,
        table,
    )
    return table
