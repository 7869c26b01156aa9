"""A tree cut into slabs, which threads work on at once.

A slab is a run of neighbours of one level and all that hangs below them. The children
of a run are a run of the level below, so a slab is one run on every level:

    nodes 24, 25                  24 25 | 26 27        the cut, in two slabs
    nodes 16 .. 19      16 17 18 19     |   20 .. 23
    nodes 0 .. 7      0 1 2 3 4 5 6 7   |     8 .. 15
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.kernels._jit import kernel

from .shape import Tree

Slab: TypeAlias = tuple[int, int]
"""The first node of a run, and the one after the last."""

FEWEST_NODES = 1 << 19
"""A smaller tree is fitted sooner than threads are started for it."""
SLABS_PER_THREAD = 4
NODES_PER_SLAB = 4
"""A cut has at least so many nodes for a slab: runs of them are of like length."""
MOST_ABOVE = 64
"""So many levels above a cut at most: deeper trees are chains, for one thread."""


def cut_tree(tree: Tree, threads: int) -> tuple[list[Slab], int]:
    """Return the slabs of a tree, and the first node above them.

    Parameters
    ----------
    tree : Tree
        The shape.
    threads : int
        How many threads share the slabs.

    Returns
    -------
    slabs : list of tuples of two ints
        The slabs, from left to right; none where one thread serves as well.
    above : int
        The first node above the cut; the number of nodes without a cut.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> slabs, above = cut_tree(regular_tree(2**19, 2), threads=2)
    >>> len(slabs), slabs[0], above == slabs[-1][1]
    (8, (1048512, 1048516), True)
    """
    nodes = tree.nodes
    if threads < 2 or nodes < FEWEST_NODES:
        return [], nodes
    parts = SLABS_PER_THREAD * threads
    first, last = nodes - 1, nodes
    for _ in range(MOST_ABOVE):
        if last - first >= NODES_PER_SLAB * parts:
            bounds = [first + (last - first) * part // parts for part in range(parts)]
            return list(zip(bounds, [*bounds[1:], last], strict=True)), last
        first, last = int(tree.first_child[first]), first
        if first == last:
            break
    return [], nodes


@kernel
def level_runs(first_child: IntArray, slab: Slab) -> IntArray:
    """Return the runs of nodes of which a slab consists, the highest first.

    Parameters
    ----------
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    slab : tuple of two ints
        The highest run.

    Returns
    -------
    ndarray of int64, shape (levels, 2)
        The first node of each run, and the one after the last.
    """
    levels = 0
    begin, end = slab
    while begin < end:
        levels += 1
        begin, end = first_child[begin], first_child[end]
    runs = np.empty((levels, 2), dtype=np.int64)
    begin, end = slab
    for level in range(levels):
        runs[level, 0], runs[level, 1] = begin, end
        begin, end = first_child[begin], first_child[end]
    return runs
