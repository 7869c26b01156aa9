"""Exact sample of a partition into dyadic rectangles, by the exponential mechanism.

The candidates are the ways to derive a partition from the lattice of dyadic rectangles:
a node, of 2**i rows and 2**j columns, becomes one bucket, or is halved along an axis,
or quartered, or cut into equal windows. A derivation has probability proportional to
its share of a public base measure times the product, over its buckets, of exp(-rate *
(pinball cost + penalty)).

    all 4 x 4 cells: halves side by side     +---+---+
    left 4 x 2: one bucket                   |   +-+-+
    right 4 x 2: quarters, each in its turn  |   +-+-+
                                             +---+---+

One pass from the cells up weighs all nodes: the total of a node adds up its choices,
which need the totals of nodes half as tall, half as wide, or both. Log-weights are
fixed-point integers (`rectangle_prior`); only totals are rounded, and `rectangle_slack`
says what that can cost. A node whose second half is empty, since the grid ends before
it, stands for its first half and has nothing to choose. Then, from the grid down, the
nodes that are reached decide, all of one size together, each by a random word of its
own. Buckets are numbered in the order in which a walk through the cells first meets
them.

Nodes of one size have one pair of *levels* (i, j), the binary logarithms of their rows
and columns; in names i is `tall` and j is `wide`. On a grid of 3 x 4 cells the nodes of
levels (1, 1) lie in a table of 2 x 2 places, and the lower two of them have an empty
second half:

    place (0, 0)  rows 0-1, columns 0-1      place (0, 1)  rows 0-1, columns 2-3
    place (1, 0)  row 2,    columns 0-1      place (1, 1)  row 2,    columns 2-3
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import Words, whole_numbers
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling import exponential_choice
from blowfish_fast.kernels.sampling.exponential_choice import weigh_rows
from blowfish_fast.kernels.window_costs.rectangle_costs import dyadic_rectangle_costs

from .rectangle_prior import (
    BUCKET,
    COLUMNS,
    QUARTERS,
    ROWS,
    WINDOWS,
    Number,
    RectangleWeights,
    fixed_point_weights,
    lattice_levels,
)

Grids: TypeAlias = list[list[IntArray]]

_BLOCK = 1 << 13  # nodes that are weighed, or decide, together


class Lattice(NamedTuple):
    """Log-weights of every node, by its levels (i, j) and its place in the grid.

    Attributes
    ----------
    shape : tuple[int, int]
        Rows and columns of the grid.
    weights : RectangleWeights
        The public constants.
    buckets : list of lists of ndarrays of int64
        Item [i][j] holds the log-weights of the nodes of 2**i by 2**j cells as one
        bucket, relative to their cells.
    windows : list of lists of ndarrays of int64
        Item [i][j] has the shape (rows, columns, max(i, j, 1) - 1). Place r of its last
        axis holds the log-weights of the same nodes cut into equal windows, r + 1
        halvings down along both axes. Windows of one cell are left out: their
        log-weight is 0.
    totals : list of lists of ndarrays of int64
        Item [i][j] holds the log-weights of all derivations of a node together.
    """

    shape: tuple[int, int]
    weights: RectangleWeights
    buckets: Grids
    windows: Grids
    totals: Grids


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

    `nodes` are places in C order. `kinds` and `logarithms` say for each choice what it
    is, and the logarithm of its share of the base measure. `buckets` and `windows` are
    those of the nodes' own size; `above`, `beside` and `smaller` hold the totals of
    nodes of half the rows, of half the columns, of half of both. `table` has a row for
    each node and a column for each choice.
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
    """Return the log-weights of nodes that are cut into equal windows.

    A node has `tall` by `wide` smaller nodes, four or two, whose `buckets` and
    `windows` are given: cut once it is as many buckets, cut again it is their windows.
    A sum below the floor is raised to it.
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
    """Turn the costs of the nodes of one size into log-weights as buckets, in place.

    Parameters
    ----------
    costs : ndarray of int64, shape (rows, columns)
        The costs; overwritten.
    shape : tuple[int, int]
        Rows and columns of the grid of cells.
    levels : tuple[int, int]
        Binary logarithms of the node's rows and columns.
    weights : RectangleWeights
        The public constants.

    Returns
    -------
    ndarray of int64, shape (rows, columns)
        The log-weights, in the memory of the costs.
    """
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

    Parameters
    ----------
    costs : list of lists of ndarrays of int64
        What `dyadic_rectangle_costs` returned. They are overwritten: they are the
        largest arrays.
    weights : RectangleWeights
        The public constants.

    Returns
    -------
    Lattice
        The log-weights of all nodes.
    """
    rows, columns = costs[0][0].shape
    shape = (int(rows), int(columns))
    lattice = Lattice(shape, weights, [], [], [])
    for tall, line in enumerate(costs):
        for table in (lattice.buckets, lattice.windows, lattice.totals):
            table.append([])
        for wide, node_costs in enumerate(line):
            lattice.buckets[tall].append(
                bucket_weights(node_costs, shape, (tall, wide), weights)
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
    buckets, windows = lattice.buckets[row][column], lattice.windows[row][column]
    parts, floor = (1 + (tall > 0), 1 + (wide > 0)), lattice.weights.floor
    return _window_sums(buckets, windows, *parts, nodes, floor)


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
    """Return whether the second half of a node, along one axis, has no cells.

    Parameters
    ----------
    place : int
        The place of the node among those of its level.
    level : int
        Binary logarithm of its cells along the axis.
    side : int
        Cells of the grid along the axis.

    Returns
    -------
    bool
        Whether the grid ends before the second half.
    """
    return level > 0 and ((2 * place + 1) << (level - 1)) >= side


def choice_table(lattice: Lattice, tall: int, wide: int, nodes: IntArray) -> IntArray:
    """Return the log-weights of the choices of some nodes of one size.

    Parameters
    ----------
    lattice : Lattice
        The log-weights; complete below this size.
    tall : int
        Binary logarithm of the nodes' rows.
    wide : int
        Binary logarithm of their columns.
    nodes : ndarray of int64
        Places in C order, of nodes of which no second half is empty.

    Returns
    -------
    ndarray of int64, shape (nodes, choices)
        The log-weights.
    """
    kinds, logarithms = lattice.weights.choices[tall, wide]
    totals = lattice.totals
    # Where an axis has no halves, its table is never read.
    unread = np.empty((0, 0), dtype=np.int64)
    table = np.empty((nodes.size, len(kinds)), dtype=np.int64)
    own = lattice.buckets[tall][wide], lattice.windows[tall][wide]
    above = totals[tall - 1][wide] if tall else unread
    beside = totals[tall][wide - 1] if wide else unread
    smaller = totals[tall - 1][wide - 1] if tall and wide else unread
    codes = np.array(kinds, dtype=np.int64)
    _fill_rows(nodes, codes, logarithms, *own, above, beside, smaller, table)
    return table


NodeRows: TypeAlias = npt.NDArray[np.int32]
"""A node in each row: its place (row, column) among the nodes of its levels, or the six
numbers that `choose_windows` returns."""
Levels: TypeAlias = tuple[int, int]
Waiting: TypeAlias = dict[Levels, list[NodeRows]]
"""Nodes that were reached and have not decided, by their levels."""

# How many halves along rows and along columns a node falls into.
_PARTS = {ROWS: (2, 1), COLUMNS: (1, 2), QUARTERS: (2, 2)}


def choose_windows(lattice: Lattice, words: Words) -> NodeRows:
    """Let the nodes that are reached decide, from the whole grid down.

    Parameters
    ----------
    lattice : Lattice
        The log-weights of all nodes; let go of once nothing is left to decide.
    words : callable
        ``words(position, count)`` gives random words; as many are read as nodes decide,
        from 0 on.

    Returns
    -------
    ndarray of int32, shape (nodes, 6)
        The nodes that are not divided further: their levels, their place among the
        nodes of these levels, and the levels of the windows that they are cut into
        (their own for one bucket).
    """
    tall, wide = lattice_levels(lattice.shape)
    # Every cell may wait here, and settle: levels and places fit half a word.
    root = np.zeros((1, 2), dtype=np.int32)
    waiting: Waiting = {(tall, wide): [root]}
    settled: list[NodeRows] = []
    position = 0
    # Whatever a node falls into has fewer levels, so comes later.
    for levels in sorted(np.ndindex(tall + 1, wide + 1), key=sum, reverse=True):
        if levels not in waiting:
            continue
        if levels == (0, 0):
            # Single cells come last, and decide nothing: the largest arrays go before
            # what waits is put together.
            del lattice
            cells = np.concatenate(waiting.pop(levels))
            settled.append(_settled_rows(levels, cells, levels))
            break
        nodes = np.concatenate(waiting.pop(levels))
        nodes = _with_both_halves(lattice, levels, nodes, waiting)
        columns = lattice.buckets[levels[0]][levels[1]].shape[1]
        # In C order, so that the words do not depend on how nodes came to be here.
        places = nodes[:, 0].astype(np.int64) * columns + nodes[:, 1]
        del nodes
        places.sort()
        for first in range(0, places.size, _BLOCK):
            flat = places[first : first + _BLOCK]
            block = np.column_stack(np.divmod(flat, columns)).astype(np.int32)
            table = choice_table(lattice, *levels, flat)
            # By its full name: audits steer this function.
            taken, _ = exponential_choice.weigh_block(
                words, position, table, lattice.weights.fraction_bits
            )
            position += flat.size
            for choice, kind in enumerate(lattice.weights.choices[levels].kinds):
                chosen = block[taken == choice]
                if chosen.size == 0:
                    continue
                if kind in _PARTS:
                    _divide(chosen, levels, _PARTS[kind], waiting)
                else:
                    halvings = 0 if kind == BUCKET else kind - WINDOWS
                    inner = tuple(max(level - halvings, 0) for level in levels)
                    settled.append(_settled_rows(levels, chosen, inner))
    return np.concatenate(settled)


def _with_both_halves(
    lattice: Lattice, levels: Levels, nodes: NodeRows, waiting: Waiting
) -> NodeRows:
    """Return the nodes that choose; those that stand for a half wait as that half."""
    for axis in range(2):
        level, side = levels[axis], lattice.shape[axis]
        # Only the last place along an axis can have an empty half.
        last = (side - 1) >> level
        if not is_half_empty(last, level, side):
            continue
        standing_in = nodes[:, axis] == last
        if standing_in.any():
            halves = nodes[standing_in].copy()
            halves[:, axis] *= 2
            smaller = (levels[0] - (axis == 0), levels[1] - (axis == 1))
            waiting.setdefault(smaller, []).append(halves)
            nodes = nodes[~standing_in]
    return nodes


def _divide(
    nodes: NodeRows, levels: Levels, parts: tuple[int, int], waiting: Waiting
) -> None:
    """Let the parts of divided nodes wait for their turn."""
    smaller = (levels[0] - parts[0] + 1, levels[1] - parts[1] + 1)
    for part in np.ndindex(*parts):
        places = nodes * np.array(parts, np.int32) + np.array(part, np.int32)
        waiting.setdefault(smaller, []).append(places)


def _settled_rows(levels: Levels, nodes: NodeRows, inner: tuple[int, ...]) -> NodeRows:
    """Return nodes that are not divided further, as `choose_windows` does.

    `inner` are the levels of the windows that they are cut into.
    """
    rows = np.empty((len(nodes), 6), dtype=np.int32)
    rows[:, :2] = levels
    rows[:, 2:4] = nodes
    rows[:, 4:] = inner
    return rows


@kernel
def _paint(settled: NodeRows, rows: int, columns: int) -> IntArray:
    """Return a number for each cell, in C order: one number for each window.

    `settled` is what `choose_windows` returned. Numbers begin at 0; where a node meets
    the end of the grid, its windows are cut off there.
    """
    marks = np.empty((rows, columns), dtype=np.int64)
    used = 0
    for number in range(settled.shape[0]):
        tall, wide, row, column, inner_tall, inner_wide = settled[number]
        top, left = row << tall, column << wide
        bottom = min(top + (1 << tall), rows)
        right = min(left + (1 << wide), columns)
        across = ((right - left - 1) >> inner_wide) + 1
        for down in range(top, bottom):
            first = used + ((down - top) >> inner_tall) * across
            for along in range(left, right):
                marks[down, along] = first + ((along - left) >> inner_wide)
        used += (((bottom - top - 1) >> inner_tall) + 1) * across
    return marks.reshape(-1)


@kernel
def _by_first_visit(marks: IntArray, walk: IntArray) -> tuple[IntArray, IntArray]:
    """Return edges and order of buckets, one for all cells with the same mark.

    Buckets come in the order in which `walk` first meets their marks, and the cells of
    a bucket in the order in which it meets them::

        marks  1 1 3 3 1     walk  2 0 1 3 4     order  2 3 | 0 1 4     edges  0 2 5
    """
    cells = walk.size
    number = np.full(cells, -1, dtype=np.int64)
    sizes = np.zeros(cells, dtype=np.int64)
    buckets = 0
    for step in range(cells):
        mark = marks[walk[step]]
        if number[mark] < 0:
            number[mark] = buckets
            buckets += 1
        sizes[number[mark]] += 1
    edges = np.zeros(buckets + 1, dtype=np.int64)
    for bucket in range(buckets):
        edges[bucket + 1] = edges[bucket] + sizes[bucket]
        sizes[bucket] = edges[bucket]
    order = np.empty(cells, dtype=np.int64)
    for step in range(cells):
        bucket = number[marks[walk[step]]]
        order[sizes[bucket]] = walk[step]
        sizes[bucket] += 1
    return edges, order


def sample_rectangles(
    counts: IntArray,
    words: Words,
    *,
    rate: Number,
    penalty: Number,
    quantile: tuple[int, int] = (3, 4),
    level_weights: list[list[float]] | None = None,
    walk: IntArray | None = None,
    threads: int = 1,
) -> tuple[IntArray, IntArray]:
    """Draw a partition of a grid into dyadic rectangles.

    The law is that of `sample_dyadic_partition`. It takes O(n log(rows) log(columns))
    time for the costs and O(n) for the sample; O(n) memory.

    Parameters
    ----------
    counts : ndarray of int64, shape (rows, columns)
        True counts, cut to ``[0, count_cap(cells, quantile[1])]``.
    words : callable
        ``words(position, count)`` gives random words. Those from 0 on are used, one per
        node that decides, and rarely some beyond `RESOLVER_BASE`.
    rate : int, float or Fraction
        Log-weight lost per unit of pinball cost; rounded down. The loss of privacy is
        at most ``rate * range`` plus `rectangle_slack`.
    penalty : int, float or Fraction
        Public cost of a bucket, in the unit of counts.
    quantile : tuple[int, int], default (3, 4)
        Numerator and denominator of the pinball cost's quantile.
    level_weights : list of lists of floats, optional
        Item [i][j] is a public factor on the cost of buckets of 2**i by 2**j cells; at
        most 1, which keeps the range.
    walk : ndarray of int64, shape (cells,), optional
        The cells in the order that numbers the buckets; None for the C order.
    threads : int, default 1
        Number of threads for the costs; the result does not depend on it.

    Returns
    -------
    edges : ndarray of int64, shape (k + 1,)
        Bucket b holds the cells ``order[edges[b] : edges[b + 1]]``.
    order : ndarray of int64, shape (cells,)
        Cells bucket by bucket.

    Raises
    ------
    InputError
        If counts, weights or rates are out of range, or the walk is none.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> drawn = generator.integers(0, 1 << 64, size=16, dtype=np.uint64)
    >>> words = lambda position, count: drawn[position : position + count]
    >>> counts = np.array([[9, 9, 0, 0], [9, 9, 0, 0]])
    >>> sample_rectangles(counts, words, rate=9, penalty=1)
    (array([0, 4, 8]), array([0, 1, 4, 5, 2, 3, 6, 7]))
    """
    counts = whole_numbers(counts)
    costs = dyadic_rectangle_costs(counts, *quantile, threads=threads)
    return sample_rectangles_of_costs(
        costs,
        words,
        rate=rate,
        penalty=penalty,
        quantile=quantile,
        level_weights=level_weights,
        walk=walk,
    )


def sample_rectangles_of_costs(
    costs: list[list[IntArray]],
    words: Words,
    *,
    rate: Number,
    penalty: Number,
    quantile: tuple[int, int] = (3, 4),
    level_weights: list[list[float]] | None = None,
    walk: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Draw what `sample_rectangles` draws, from costs that are at hand.

    Parameters
    ----------
    costs : list of lists of ndarrays of int64
        What `dyadic_rectangle_costs` returned; they are used up.
    words : callable
        As for `sample_rectangles`.
    rate : int, float or Fraction
        Log-weight lost per unit of pinball cost; rounded down.
    penalty : int, float or Fraction
        Public cost of a bucket, in the unit of counts.
    quantile : tuple[int, int], default (3, 4)
        Numerator and denominator of the costs' quantile.
    level_weights : list of lists of floats, optional
        As for `sample_rectangles`.
    walk : ndarray of int64, shape (cells,), optional
        The cells in the order that numbers the buckets; None for the C order.

    Returns
    -------
    edges : ndarray of int64, shape (k + 1,)
        Bucket b holds the cells ``order[edges[b] : edges[b + 1]]``.
    order : ndarray of int64, shape (cells,)
        Cells bucket by bucket.

    Raises
    ------
    InputError
        If weights or rates are out of range, or the walk is none.
    """
    rows, columns = costs[0][0].shape
    shape = (int(rows), int(columns))
    cells = shape[0] * shape[1]
    steps = np.arange(cells) if walk is None else walk
    if (
        steps.shape != (cells,)
        or steps.max() >= cells
        or (np.bincount(steps) != 1).any()
    ):
        raise InputError(f"a walk visits each of the {cells} cells once")
    factors = None if level_weights is None else tuple(map(tuple, level_weights))
    terms = {"quantile": tuple(quantile), "level_weights": factors}
    weights = fixed_point_weights(shape, rate=rate, penalty=penalty, **terms)
    lattice = [lattice_totals(costs, weights)]
    # The lattice alone holds them now, and only as long as nodes decide.
    costs.clear()
    # Windows are let go of as soon as every cell has its mark.
    marks = _paint(choose_windows(lattice.pop(), words), *shape)
    return _by_first_visit(marks, steps)
