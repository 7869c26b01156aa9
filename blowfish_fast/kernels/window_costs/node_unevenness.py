"""How uneven the nodes of a regular tree are, of which only filled cells are listed.

    eight cells in four windows     0 0 | 0 0 | 2 3 | 1 0     totals 0 0 5 1
    three of four are at most 1     cost 3 (5 - 1) + 0 + (1 - 0) + (1 - 0) = 14

A node is cut into windows. Each record of a window above the quantile of three quarters
costs 3, each that is missing below it costs 1: four times the pinball cost. Where three
quarters of the windows are empty the quantile is 0, and nothing is sorted. The *score*
of a node is the largest cost of itself and of all nodes below it.

Levels are visited upwards. Of the level below, `raised` holds the score of each node at
the place of its first key, and 0 at its other keys:

    keys         4  5  6        height 1, nodes [4, 6) and [6, 8)
    raised       1  0  1        costs |2 - 3| and |1 - 0|
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import as_input
from blowfish_fast.kernels._jit import kernel

MOST_COUNTED = 2**54
"""Records of a window beyond which more change nothing: 64 windows stay in 64 bits."""

RESOLUTION = 6
"""A node is cut into 2^6 windows, chosen on generated addresses and moments."""


@kernel
def _cost(totals: IntArray, filled: int, windows: int) -> int:
    """Return the cost of windows, of which the first `filled` hold records."""
    place, empty = (3 * windows + 3) // 4 - 1, windows - filled
    cost = 0
    if place < empty:
        for at in range(filled):
            cost += 3 * totals[at]
        return cost
    held = np.sort(totals[:filled])
    quantile = held[place - empty]
    for at in range(filled):
        off = held[at] - quantile
        cost += 3 * off if off > 0 else -off
    return int(cost + empty * quantile)


@kernel
def _raise_level(
    keys: IntArray,
    counts: IntArray,
    raised: IntArray,
    height: int,
    window_height: int,
    firsts: IntArray,
    scores: IntArray,
) -> int:
    """Score the nodes of a level; return how many hold two filled cells or more."""
    windows = 1 << (height - window_height)
    totals = np.empty(windows, dtype=np.int64)
    nodes, at, size = 0, 0, keys.size
    while at < size:
        node, first, filled, best = keys[at] >> height, at, 0, 0
        while at < size and keys[at] >> height == node:
            window, total = keys[at] >> window_height, 0
            while at < size and keys[at] >> window_height == window:
                total = min(total + min(counts[at], MOST_COUNTED), MOST_COUNTED)
                best = max(best, raised[at])
                raised[at] = 0
                at += 1
            totals[filled] = total
            filled += 1
        best = max(best, _cost(totals, filled, windows))
        raised[first] = best
        if at - first > 1:
            firsts[nodes] = first
            scores[nodes] = best
            nodes += 1
    return nodes


def raise_scores(
    keys: IntArray,
    counts: IntArray,
    raised: IntArray,
    height: int,
    resolution: int = RESOLUTION,
) -> tuple[IntArray, IntArray]:
    """Return the scores of the nodes of one height, from those of the level below.

    Parameters
    ----------
    keys : ndarray of int64, shape (filled,)
        Numbers of filled cells, which ascend.
    counts : ndarray of int64, shape (filled,)
        Their records.
    raised : ndarray of int64, shape (filled,)
        Scores of the level below, zeros for single cells. It is overwritten with those
        of this level.
    height : int
        A node has 2^height cells.
    resolution : int, default 6
        It is cut into 2^resolution windows, or into single cells.

    Returns
    -------
    firsts : ndarray of int64, shape (nodes,)
        The place of the first key of each node with two filled cells or more.
    scores : ndarray of int64, shape (nodes,)
        The scores of these nodes.

    Raises
    ------
    InputError
        If keys, counts and scores are not as many.

    Examples
    --------
    >>> keys, counts = np.array([4, 5, 6]), np.array([2, 3, 1])
    >>> raised = np.zeros(3, dtype=np.int64)
    >>> raise_scores(keys, counts, raised, 1), raised.tolist()
    ((array([0]), array([1])), [1, 0, 1])
    >>> raise_scores(keys, counts, raised, 3, 2)
    (array([0]), array([14]))
    """
    keys, counts = as_input(keys, np.int64), as_input(counts, np.int64)
    if keys.shape != counts.shape or keys.shape != raised.shape or keys.ndim != 1:
        raise InputError(
            "keys, counts and scores are as many",
            received=f"shapes {keys.shape}, {counts.shape} and {raised.shape}",
        )
    firsts, scores = np.empty((2, keys.size // 2 + 1), dtype=np.int64)
    window_height = max(height - resolution, 0)
    nodes = _raise_level(keys, counts, raised, height, window_height, firsts, scores)
    return firsts[:nodes].copy(), scores[:nodes].copy()
