"""The exact price of a tree: the largest sum of rates that one policy edge changes.

A move between two cells changes the nodes that hold exactly one of their leaves, so its
price is a distance in a tree metric (``kernels.tree.paths``), and the price of a policy
is the largest distance over its edges. Families of edges are not listed:

    Full, Blocks, Attribute      pairs inside groups of cells      diameters of groups
    Line, Threshold, Band        pairs inside windows of a line    diameters of windows
    Threshold on grids           pairs inside boxes                diameters of boxes
    Product                      one factor moves                  each along its lines
    AddRemove                    a cell and "absent"               the heaviest path
    Graph, anything else         pairs                             one by one

Cells need not be leaves: the leaf of a cell is that of its bucket, along any curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import (
    AddRemove,
    Attribute,
    Band,
    Blocks,
    Full,
    Line,
    Policy,
    Product,
    Projection,
    Threshold,
    WithAbsent,
)

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.paths import LeafDistances
    from blowfish_fast.kernels.tree.shape import Tree


def worst_edge(rates: IntArray, tree: Tree, policy: Policy) -> int:
    """Return the largest sum of rates over the nodes that one edge changes: Lemma HI5.

    Parameters
    ----------
    rates : (nodes,) int64
        Rate of each node, in the order of the tree's rows.
    tree : Tree
        Its leaves are the cells of the policy's domain, in their order.
    policy : Policy
        Constraints are left out: they multiply the price by the group size.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> tree = kernels.regular_tree(4, 2)
    >>> rates, line = np.array([1, 1, 1, 1, 5, 5, 9]), bf.Domain(4)
    >>> worst_edge(rates, tree, bf.policies.AddRemove(line))
    15
    >>> worst_edge(rates, tree, bf.policies.Full(line))
    12
    >>> worst_edge(rates, tree, bf.policies.Blocks(line, [0, 0, 1, 1]))
    2
    """
    policy = policy.unconstrained
    if isinstance(policy, AddRemove):
        return kernels.heaviest_path(rates, tree)
    if isinstance(policy, WithAbsent):
        moves = worst_edge(rates, tree, policy.base)
        return max(moves, kernels.heaviest_path(rates, tree))
    if isinstance(policy, Full):
        return kernels.heaviest_pair(rates, tree)
    leaves = np.arange(tree.leaves)
    if isinstance(policy, Projection):
        leaves, policy = policy.bins.labels, policy.source
    return _on_lines(kernels.LeafDistances(rates, tree), policy, leaves[None])


def _on_lines(metric: LeafDistances, policy: Policy, lines: IntArray) -> int:
    """Return the price of `policy` on several lines, each a copy of its domain.

    `lines` holds the leaf of each cell, of shape (lines, cells).
    """
    copies, cells = lines.shape
    if isinstance(policy, Full):
        return metric.in_groups(lines, np.repeat(np.arange(copies), cells))
    if isinstance(policy, Blocks):
        count = int(policy.labels.max()) + 1
        return metric.in_groups(
            lines, np.arange(copies)[:, None] * count + policy.labels
        )
    if isinstance(policy, Attribute):
        factors = tuple(Full(Domain(side)) for side in policy.domain.shape)
        return _on_factors(metric, factors, lines)
    if isinstance(policy, Product):
        return _on_factors(metric, policy.factors, lines)
    if isinstance(policy, Line | Band | Threshold):
        reach = policy.bandwidth()
        if reach is not None:
            return metric.within_reach(lines, reach.far)
    if isinstance(policy, Threshold):
        return _on_grid(metric, policy, lines)
    worst = 0
    for chunk in policy.edges(max(1, 2**20 // copies)):
        heads, tails = (np.where(end < 0, -1, lines[:, end]) for end in chunk.T)
        worst = max(worst, metric.of_pairs(heads, tails))
    return worst


def _on_factors(
    metric: LeafDistances, factors: Sequence[Policy], lines: IntArray
) -> int:
    """Return the largest price of one factor that moves, the others held."""
    sides = [one.domain.size for one in factors]
    grid = lines.reshape(-1, *sides)
    return max(
        _on_lines(metric, one, np.moveaxis(grid, axis + 1, -1).reshape(-1, sides[axis]))
        for axis, one in enumerate(factors)
    )


def _on_grid(metric: LeafDistances, policy: Threshold, lines: IntArray) -> int:
    """Return the price of a threshold on a grid: the worst of its maximal boxes."""
    shape = policy.domain.shape
    boxes = policy.maximal_boxes()
    worst = 0
    for line in lines:
        grid = line.reshape(shape)
        if policy.metric == "l1" and grid.ndim == 2:
            turned = _turned(grid)
            if 2 * turned.size < boxes.shape[0] * grid.size:
                sides = np.full(2, int(boxes.sum(axis=1).max()) - 1)
                worst = max(worst, metric.in_boxes(turned, sides))
                continue
        for sides in boxes:
            worst = max(worst, metric.in_boxes(grid, sides))
    return worst


def _turned(grid: IntArray) -> IntArray:
    """Return the grid by sum and difference of coordinates; -1 between its cells.

    Cells at most theta apart in sum over both attributes are those at most theta apart
    in each of the two new coordinates.
    """
    rows, columns = grid.shape
    side = rows + columns - 1
    turned = np.full((side, side), -1, dtype=np.int64)
    first, second = np.indices(grid.shape)
    turned[first + second, first - second + columns - 1] = grid
    return turned
