"""Exact sample of a partition into dyadic rectangles, by the exponential mechanism.

Serves `partitions.DyadicRectangles`, the sampled stage 1 of DAWA on grids. The
candidates are the ways to derive a partition from the lattice of dyadic rectangles: a
node becomes one bucket, or is halved along an axis, or quartered, or cut into equal
windows. A derivation has probability proportional to its share of a public base
measure times the product, over its buckets, of exp(-rate * (pinball cost + penalty)).

    all 4 x 4 cells: halves side by side     +---+---+
    left 4 x 2: one bucket                   |   +-+-+
    right 4 x 2: quarters, each in its turn  |   +-+-+
                                             +---+---+

Two passes: `kernels.rectangle_lattice` weighs all nodes from the cells up; then, from
the grid down, the nodes that are reached decide, all of one size together, each by a
random word of its own. Buckets are numbered in the order in which a walk through the
cells first meets them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling import exponential_choice
from blowfish_fast.kernels.window_costs.rectangle_costs import dyadic_rectangle_costs

from .rectangle_lattice import Lattice, choice_table, is_half_empty, lattice_totals
from .rectangle_prior import (
    BASE,
    BUCKET,
    COLUMNS,
    QUARTERS,
    ROWS,
    WINDOWS,
    Base,
    fixed_point_weights,
    lattice_levels,
)
from .sampler_constants import Number

Levels: TypeAlias = tuple[int, int]
Waiting: TypeAlias = dict[Levels, list[IntArray]]

_BLOCK = 1 << 13  # nodes that decide together
# How many halves along rows and along columns a node falls into.
_PARTS = {ROWS: (2, 1), COLUMNS: (1, 2), QUARTERS: (2, 2)}


def choose_windows(lattice: Lattice, words: exponential_choice.Words) -> IntArray:
    """Let the nodes that are reached decide, from the whole grid down.

    As many words are read as nodes decide, from 0 on. Returns (nodes, 6), the nodes
    that are not divided further: their levels, their place among the nodes of these
    levels, and the levels of the windows that they are cut into (their own for one
    bucket).
    """
    tall, wide = lattice_levels(lattice.shape)
    root = np.zeros((1, 2), dtype=np.int64)
    waiting: Waiting = {(tall, wide): [root]}
    settled: list[IntArray] = []
    position = 0
    # Whatever a node falls into has fewer levels, so comes later.
    for levels in sorted(np.ndindex(tall + 1, wide + 1), key=sum, reverse=True):
        if levels not in waiting:
            continue
        nodes = _with_both_halves(
            lattice, levels, np.concatenate(waiting.pop(levels)), waiting
        )
        if levels == (0, 0):
            settled.append(_leaf_rows(levels, nodes, levels))
            continue
        columns = lattice.buckets[levels[0]][levels[1]].shape[1]
        # In C order, so that the words do not depend on how nodes came to be here.
        places = np.sort(nodes[:, 0] * columns + nodes[:, 1])
        for first in range(0, places.size, _BLOCK):
            flat = places[first : first + _BLOCK]
            block = np.column_stack(np.divmod(flat, columns))
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
                    settled.append(_leaf_rows(levels, chosen, inner))
    return np.concatenate(settled)


def _with_both_halves(
    lattice: Lattice, levels: Levels, nodes: IntArray, waiting: Waiting
) -> IntArray:
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
    nodes: IntArray, levels: Levels, parts: tuple[int, int], waiting: Waiting
) -> None:
    """Let the parts of divided nodes wait for their turn."""
    smaller = (levels[0] - parts[0] + 1, levels[1] - parts[1] + 1)
    for part in np.ndindex(*parts):
        places = nodes * np.array(parts) + np.array(part)
        waiting.setdefault(smaller, []).append(places)


def _leaf_rows(levels: Levels, nodes: IntArray, inner: tuple[int, ...]) -> IntArray:
    rows = np.empty((len(nodes), 6), dtype=np.int64)
    rows[:, :2] = levels
    rows[:, 2:4] = nodes
    rows[:, 4:] = inner
    return rows


@kernel
def _paint(settled: IntArray, rows: int, columns: int) -> IntArray:
    """Return a number per cell, the same in a window and different between windows."""
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
    """Gather cells of one mark, in the order in which a walk meets marks and cells."""
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
    words: exponential_choice.Words,
    *,
    rate: Number,
    penalty: Number,
    quantile: tuple[int, int] = (3, 4),
    base: Base = BASE,
    level_weights: list[list[float]] | None = None,
    walk: IntArray | None = None,
    threads: int = 1,
) -> tuple[IntArray, IntArray]:
    """Draw a partition of a grid into dyadic rectangles.

    Parameters
    ----------
    counts : (rows, columns) int64
        True counts, cut to ``[0, count_cap(cells, quantile[1])]``.
    words : callable
        ``words(position, count)``: random words; those from 0 on are used, one per node
        that decides, and rarely some beyond `RESOLVER_BASE`.
    rate : number
        Log-weight lost per unit of pinball cost; rounded down. The loss of privacy is
        at most ``rate * range`` plus `rectangle_slack`.
    penalty : number
        Public cost of a bucket, in the unit of counts.
    quantile : (int, int)
        Numerator and denominator of the pinball cost's quantile.
    base : Base
        Prior weights of the choices.
    level_weights : list of lists, optional
        Item [i][j]: public factor on the cost of buckets of 2**i by 2**j cells; at most
        1, which keeps the range.
    walk : (cells,) int64, optional
        The cells in the order that numbers the buckets; None for the C order.
    threads : int
        Number of threads for the costs; the result does not depend on it.

    Returns
    -------
    edges : (k + 1,) int64
        Bucket b holds the cells ``order[edges[b] : edges[b + 1]]``.
    order : (cells,) int64
        Cells bucket by bucket.

    Notes
    -----
    O(n log(rows) log(columns)) time for the costs, O(n) for the sample; O(n) memory.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(1)
    >>> drawn = generator.integers(0, 1 << 64, size=16, dtype=np.uint64)
    >>> words = lambda position, count: drawn[position : position + count]
    >>> counts = np.array([[9, 9, 0, 0], [9, 9, 0, 0]])
    >>> sample_rectangles(counts, words, rate=9, penalty=1)
    (array([0, 4, 8]), array([0, 1, 4, 5, 2, 3, 6, 7]))
    """
    counts = np.asarray(counts)
    costs = dyadic_rectangle_costs(counts, *quantile, threads=threads)
    shape = (int(counts.shape[0]), int(counts.shape[1]))
    steps = np.arange(counts.size) if walk is None else walk
    if (
        steps.shape != (counts.size,)
        or steps.max() >= counts.size
        or (np.bincount(steps) != 1).any()
    ):
        raise InputError(f"a walk visits each of the {counts.size} cells once")
    weights = fixed_point_weights(
        shape,
        rate=rate,
        penalty=penalty,
        quantile=quantile,
        base=base,
        level_weights=level_weights,
    )
    settled = choose_windows(lattice_totals(costs, weights), words)
    return _by_first_visit(_paint(settled, *shape), steps)
