"""A tree of totals over the cells, each node with noise of its own scale.

A move between two cells changes the nodes that hold exactly one of their leaves, so its
price is a distance in a tree metric (``kernels.tree.paths``), and the price of a policy
the largest distance over its edges. Pairs inside groups, windows of a line and boxes of
a grid are priced by their diameters, anything else pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import threads_for
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import cell_order
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.linear_strategy import LinearStrategy, StrategyNoise
from blowfish_fast.measure.noise import Scales, Spread, integer_weights
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
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import as_pieces

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.noise_rows import NodeRows
    from blowfish_fast.kernels.tree.paths import LeafDistances
    from blowfish_fast.kernels.tree.shape import Tree


def worst_edge(rates: IntArray, tree: Tree, policy: Policy) -> int:
    """Return the largest sum of rates over the nodes that one edge changes: Lemma HI5.

    Constraints are left out: they multiply the price by the group size.

    Parameters
    ----------
    rates : ndarray of int64, shape (nodes,)
        Whole rates, in the order of the tree's rows.
    tree : Tree
        A tree whose leaves are the cells of the policy's domain.
    policy : Policy
        The policy.

    Returns
    -------
    int
        The sum.

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
    """Return the price of `policy` on `lines`: the leaves of copies of its domain."""
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
    sides = [factor.domain.size for factor in factors]
    grid = lines.reshape(-1, *sides)
    return max(
        _on_lines(
            metric, factor, np.moveaxis(grid, axis + 1, -1).reshape(-1, sides[axis])
        )
        for axis, factor in enumerate(factors)
    )


def _on_grid(metric: LeafDistances, policy: Threshold, lines: IntArray) -> int:
    """Return the price of a threshold on a grid: the worst of its maximal boxes."""
    shape = policy.domain.shape
    boxes = policy.maximal_boxes()
    worst = 0
    for line in lines:
        grid = line.reshape(shape)
        few = 2 * (sum(shape) - 1) ** 2 < boxes.shape[0] * grid.size
        if policy.metric == "l1" and grid.ndim == 2 and few:
            sides = np.full(2, int(boxes.sum(axis=1).max()) - 1)
            worst = max(worst, metric.in_boxes(_turned(grid), sides))
            continue
        for sides in boxes:
            worst = max(worst, metric.in_boxes(grid, sides))
    return worst


def _turned(grid: IntArray) -> IntArray:
    """Return the grid turned by 45 degrees, gaps -1: an L1 ball is a box there."""
    rows, columns = grid.shape
    side = rows + columns - 1
    turned = np.full((side, side), -1, dtype=np.int64)
    first, second = np.indices(grid.shape)
    turned[first + second, first - second + columns - 1] = grid
    return turned


def tree_spread(
    form: Fractions | Pieces, tree: Tree, noise: NodeRows, least: float
) -> Spread:
    """Return the law of each query's noise, from what the nodes let through.

    Parameters
    ----------
    form : Fractions or Pieces
        The queries over the leaves.
    tree : Tree
        The shape.
    noise : NodeRows
        What `kernels.tree_noise` returned.
    least : float
        The smallest scale of any node; 0 where it is not known.

    Returns
    -------
    Spread
        What is known of the noise in each answer.
    """
    if isinstance(form, Fractions):
        return Spread(*kernels.spread_ranges(noise, tree, *form), least)
    return Spread(*kernels.spread_pieces(noise, tree, *form), least)


class TreeStrategy(LinearStrategy):
    """Totals of all nodes of a tree whose leaves are the cells, in their order.

    Parameters
    ----------
    tree : Tree
        The shape.
    node_weights : ndarray of float64, shape (nodes,)
        Relative rates in [0, 1], leaves first; a node of weight 0 is not measured.

    Examples
    --------
    >>> import numpy as np
    >>> from blowfish_fast import kernels
    >>> strategy = TreeStrategy(kernels.regular_tree(4, 2), np.ones(7))
    >>> strategy.rows(np.array([4, 0, 2, 1]))
    array([4, 0, 2, 1, 4, 3, 7])
    >>> irregular = kernels.tree_of_parents(np.array([3, 3, 4, 4, -1]))
    >>> TreeStrategy(irregular, np.ones(5)).rows(np.array([4, 0, 2]))
    array([4, 0, 2, 4, 6])
    """

    kind = "tree"

    def __init__(self, tree: Tree, node_weights: FloatArray) -> None:
        self.tree = tree
        self.node_weights = np.asarray(node_weights, dtype=np.float64)
        if self.node_weights.shape != (tree.nodes,):
            raise InputError(
                f"node_weights holds one number per node, here {tree.nodes}; "
                f"received an array of shape {self.node_weights.shape}"
            )
        if not ((self.node_weights >= 0) & (self.node_weights <= 1)).all():
            raise InputError(
                "node_weights must lie between 0 and 1; received "
                f"{self.node_weights.min():g} to {self.node_weights.max():g}"
            )

    @property
    def leaves(self) -> int:
        """Number of cells."""
        return self.tree.leaves

    @property
    def fan_out(self) -> int | None:
        """Most children of a node of a regular tree; None for any other."""
        return self.tree.fan_out

    def rows(self, counts: IntArray) -> IntArray:
        """Return the total of every node."""
        self._refuse_other(counts, self.leaves)
        return kernels.tree_totals(counts, self.tree)

    def weights(self) -> IntArray:
        """Return the node weights as integers."""
        return integer_weights(self.node_weights)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the nodes that no edge enters or leaves: Lemma HI6."""
        return kernels.uncrossed_nodes(self.tree, *policy.components())

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of weights over the nodes that one edge changes: HI4.

        Adding a record changes the nodes of one root-to-leaf path; a move those that
        hold exactly one of its two cells. Exact for every policy.

        Parameters
        ----------
        weights : ndarray of int64, shape (nodes,)
            Whole weight of each node.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum.
        """
        return worst_edge(weights, self.tree, policy)

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of the leaves. O(nodes).

        Parameters
        ----------
        noisy : ndarray of int64, shape (nodes,)
            The measured nodes.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (leaves,)
            The estimate of each leaf.
        """
        # A copy, so that the estimates above the leaves are freed.
        return self.fit(noisy, scales)[: self.leaves].copy()

    def fit(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of every node, consistent throughout.

        Parameters
        ----------
        noisy : ndarray of int64, shape (nodes,)
            The measured totals.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (nodes,)
            The estimates.
        """
        # Not by the package's name: its guard would hold what comes in rows to the end.
        from blowfish_fast.kernels.tree.fit import tree_fit

        threads = threads_for(self.tree.nodes)
        return tree_fit(noisy, scales.variances, self.tree, threads=threads)

    def non_negative(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return leaves of 0 or more, settled from the root down. Free, O(nodes).

        Parameters
        ----------
        noisy : ndarray of int64, shape (nodes,)
            The measured totals.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (leaves,)
            The leaves.
        """
        threads = threads_for(self.tree.nodes)
        fit = kernels.top_down_fit(noisy, scales.variances, self.tree, threads=threads)
        return fit[: self.leaves].copy()

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        return tree_spread(form, self.tree, *law.tables)

    def noise_tables(self, scales: Scales) -> tuple[NodeRows, float]:
        """Return the noise of every node, and the least scale."""
        noise = kernels.tree_noise(scales.variances, scales.widths, self.tree)
        return noise, scales.least

    def _total_variance(self, form: Form, law: StrategyNoise) -> float:
        if isinstance(form, Implicit):
            return self._implicit_variance(form, law)
        pieces, variances = as_pieces(form), law.scales.variances
        return float(kernels.tree_variances(variances, self.tree, *pieces).sum())

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        return kernels.tree_total_variance(
            law.scales.variances, self.tree, form.kind, form.edges
        )

    def pack(self) -> dict[str, Any]:
        """Return shape and weights."""
        if self.fan_out is None:
            shape: dict[str, Any] = {"parents": self.tree.row_parents}
        else:
            shape = {"leaves": self.leaves, "fan_out": self.fan_out}
        return {**shape, "node_weights": self.node_weights}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        if "parents" in data:
            tree = kernels.tree_of_parents(np.asarray(data["parents"], dtype=np.int64))
        else:
            tree = kernels.regular_tree(int(data["leaves"]), int(data["fan_out"]))
        return cls(tree, np.asarray(data["node_weights"], dtype=np.float64))


def non_negative_cells(measured: Measurement, linear: FloatArray) -> FloatArray:
    """Return cells of 0 or more: families of a regular tree, or halves of the line.

    Parameters
    ----------
    measured : Measurement
        What was measured.
    linear : ndarray of float64, shape (cells,)
        The linear estimate of the cells, for strategies that are no tree.

    Returns
    -------
    ndarray of float64, shape (cells,)
        The cells.
    """
    strategy, scales = measured.strategy, measured.scales
    noisy, buckets = measured.noisy, measured.buckets
    if isinstance(strategy, TreeStrategy):
        return buckets.expand(strategy.non_negative(noisy, scales))
    return halved_non_negative(linear, Domain(linear.size))


def monotone_cells(linear: FloatArray, *, total_known: bool) -> FloatArray:
    """Return cells whose running totals are closest and never decrease: Lemma DA13.

    Parameters
    ----------
    linear : ndarray of float64, shape (cells,)
        The linear estimate of the cells of a line.
    total_known : bool
        Whether their sum is public, and stays.

    Returns
    -------
    ndarray of float64, shape (cells,)
        Cells of 0 or more.
    """
    totals = np.cumsum(linear)
    exact = np.zeros(totals.size, dtype=np.bool_)
    if total_known:
        # Of no records the sum may be a rounding below 0.
        totals[-1], exact[-1] = max(totals[-1], 0.0), True
    return np.diff(kernels.isotonic_fit(totals, exact, low=0.0), prepend=0.0)


def halved_non_negative(linear: FloatArray, domain: Domain) -> FloatArray:
    """Return cells of 0 or more: the grid halved along every axis, all cells alike.

    The parts are those of a Hilbert curve; see docs/proofs/top_down.md. O(cells).

    Parameters
    ----------
    linear : ndarray of float64, shape (cells,)
        The linear estimate of the cells.
    domain : Domain
        The grid.

    Returns
    -------
    ndarray of float64, shape (cells,)
        The cells.
    """
    along = cell_order(domain)
    tree = kernels.regular_tree(linear.size, 2**domain.ndim)
    variances = np.full(tree.nodes, np.inf)
    variances[: linear.size] = 1.0
    values = np.zeros(tree.nodes)
    values[: linear.size] = linear if along.order is None else linear[along.order]
    threads = threads_for(tree.nodes)
    fit = kernels.top_down_fit(values, variances, tree, threads=threads)[: linear.size]
    return along.expand(fit.copy())
