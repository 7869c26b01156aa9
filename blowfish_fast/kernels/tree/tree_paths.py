"""The heaviest ways through a tree of integer rates.

Serves the exact price of a weighted tree: each node is measured at a rate, and a
record that comes or goes pays every node on its way from the leaf to the root. A
record that changes its leaf pays the nodes that contain exactly one of the two leaves,
those below the meeting point of the two ways. Rates are integers, so the worst case
is an integer too and nothing is lost to rounding.

    rates        5                 path to the left leaf  4 + 2 + 5 = 11
              2     3              path to the right leaf     3 + 5 =  8
            1   4                  pair of the two        4 + 2 + 3 =  9

Nodes are laid out as in `tree_shape`, leaves first and the root last.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .tree_shape import tree_levels


@kernel
def _worst_ways(rates: IntArray, offsets: IntArray, branching: int) -> tuple[int, int]:
    """Return the heaviest path and the heaviest pair of paths."""
    heaviest = rates.copy()
    pair = 0
    for level in range(1, offsets.size - 1):
        below = heaviest[offsets[level - 1] : offsets[level]]
        here = heaviest[offsets[level] : offsets[level + 1]]
        for node in range(here.size):
            begin = node * branching
            end = min(begin + branching, below.size)
            best = below[begin]
            for child in range(begin + 1, end):
                pair = max(pair, best + below[child])
                best = max(best, below[child])
            here[node] += best
    return heaviest[heaviest.size - 1], pair


@kernel
def _add_downward(sums: IntArray, offsets: IntArray, branching: int) -> None:
    for level in range(offsets.size - 2, 0, -1):
        here = sums[offsets[level] : offsets[level + 1]]
        below = sums[offsets[level - 1] : offsets[level]]
        for node in range(here.size):
            begin = node * branching
            for child in range(begin, min(begin + branching, below.size)):
                below[child] += here[node]


def _node_rates(
    rates: IntArray, leaves: int, branching: int
) -> tuple[IntArray, IntArray]:
    _, offsets = tree_levels(leaves, branching)
    rates = np.ascontiguousarray(rates, dtype=np.int64)
    if rates.shape != (int(offsets[-1]),):
        raise InputError(
            f"rates holds one integer per node of the tree, here {offsets[-1]}; got an "
            f"array of shape {rates.shape}. See `tree_levels` for the order of nodes"
        )
    return rates, offsets


def heaviest_path(rates: IntArray, leaves: int, branching: int) -> int:
    """Return the largest sum of rates from a leaf to the root, in O(nodes).

    Parameters
    ----------
    rates : (nodes,) int64
        Rate of each node, not negative; their sums along a path fit int64.
    leaves, branching : int
        The shape of the tree.

    Returns
    -------
    int
        What the worst record pays when it comes or goes.

    Examples
    --------
    >>> heaviest_path(np.array([1, 4, 3, 2, 0, 5]), 3, 2)
    11
    """
    rates, offsets = _node_rates(rates, leaves, branching)
    return int(_worst_ways(rates, offsets, branching)[0])


def heaviest_pair(rates: IntArray, leaves: int, branching: int) -> int:
    """Return the largest sum of rates over nodes that hold one of two leaves.

    Parameters
    ----------
    rates : (nodes,) int64
        Rate of each node, not negative; their sums along two paths fit int64.
    leaves, branching : int
        The shape of the tree.

    Returns
    -------
    int
        What the worst record pays when it may change from any leaf to any other; 0 if
        there is one leaf only. O(nodes).

    Examples
    --------
    >>> heaviest_pair(np.array([1, 4, 3, 2, 0, 5]), 3, 2)
    9
    """
    rates, offsets = _node_rates(rates, leaves, branching)
    return int(_worst_ways(rates, offsets, branching)[1])


def path_sums(rates: IntArray, leaves: int, branching: int) -> IntArray:
    """Return, for each leaf, the sum of rates up to the root, in O(nodes).

    Parameters
    ----------
    rates : (nodes,) int64
        Rate of each node.
    leaves, branching : int
        The shape of the tree.

    Returns
    -------
    (leaves,) int64

    Examples
    --------
    >>> path_sums(np.array([1, 4, 3, 2, 0, 5]), 3, 2)
    array([ 8, 11,  8])
    """
    rates, offsets = _node_rates(rates, leaves, branching)
    sums = rates.copy()
    _add_downward(sums, offsets, branching)
    return sums[:leaves].copy()
