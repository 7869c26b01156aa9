"""Totals up to the end of each block, and a tree of totals inside every block.

Seven cells in a block of four, with a tree of fan-out 2, and a block of three, with a
tree of fan-out 3 (`kernels.tree.block_trees` has the tree over both):

    counts      1 2 3 4 | 5 6 7
    borders          10      28      totals up to the end of each block
    nodes        3   7               totals of the parts of a block, down to
                1 2 3 4   5 6 7      single cells; a block itself is not measured
    rows        10 28,  3 7 1 2 3 4,  5 6 7

Blocks are as long as the longest edge of the policy, so a record that moves crosses one
border at most, and changes the nodes above two cells. Stretches of the line between
which no record can move are measured independently, each with the whole of epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import threads_for
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.measure.linear_strategy import (
    UNKNOWN_SCALE,
    LinearStrategy,
    StrategyNoise,
    integers,
    known_noise,
    numbers,
)
from blowfish_fast.measure.noise import Scales, Spread, integer_weights
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import row_moments

from .prefix_sums import LineReach, PrefixSums, Totals
from .trees.tree import tree_spread

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.block_spread import LoudestNoise, NodeNoise
    from blowfish_fast.kernels.tree.block_trees import BlockTrees
    from blowfish_fast.kernels.tree.noise_rows import NodeRows
    from blowfish_fast.kernels.tree.shape import Tree


FEW_BLOCKS = 8
"""Up to so many, the noise of queries is found exactly, by walks through one tree."""

Cuts = tuple[IntArray, IntArray, FloatArray, FloatArray]
"""Queries as sums of cuts, in the layout of `hierarchy_variances`."""


class OrderedHierarchy(LinearStrategy):
    """Borders of blocks and the trees inside them.

    Parameters
    ----------
    edges : ndarray of int64, shape (blocks + 1,)
        The first cell of each block; at the end the number of cells.
    fan_outs : ndarray of int64, shape (blocks,)
        The most children of a node of each block.
    border_weights : ndarray of float64, shape (blocks,)
        Relative rate, in [0, 1], of the border at the end of each block.
    node_weights : ndarray of float64, shape (blocks,)
        Relative rate of every node inside the block.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Threshold(bf.Domain(32), theta=4)
    >>> asked = bf.workloads.Prefixes(policy.domain)
    >>> mechanism = bf.mechanisms.OrderedHierarchical(policy, asked, epsilon=1)
    >>> release = mechanism.release([2] * 32, rng=1)
    >>> release.measurements[0].strategy.edges.tolist()
    [0, 4, 8, 12, 16, 20, 24, 28, 32]
    """

    kind = "ordered_hierarchy"
    saved: ClassVar[dict[str, Any]] = {
        "edges": integers,
        "fan_outs": integers,
        "border_weights": numbers,
        "node_weights": numbers,
    }

    def __init__(
        self,
        edges: IntArray,
        fan_outs: IntArray,
        border_weights: FloatArray,
        node_weights: FloatArray,
    ) -> None:
        self.edges = edges
        self.fan_outs = fan_outs
        self.border_weights = border_weights
        self.node_weights = node_weights

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.edges[-1])

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.edges.size - 1

    @cached_property
    def trees(self) -> BlockTrees:
        """All blocks as one tree, and which of its nodes each row is."""
        return kernels.trees_over_blocks(self.edges, self.fan_outs)

    @cached_property
    def as_totals(self) -> PrefixSums | None:
        """The same rows as running totals, where every block is a single cell."""
        return PrefixSums(self.cells) if self.blocks == self.cells else None

    def rows(self, counts: IntArray) -> IntArray:
        """Return the total up to the end of each block, then of every node.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            The true counts.

        Returns
        -------
        ndarray of int64, shape (rows,)
            The borders, then the nodes of the first block, of the second, ...

        Examples
        --------
        >>> even = np.ones(2)
        >>> strategy = OrderedHierarchy(
        ...     np.array([0, 4, 7]), np.array([2, 3]), even, even
        ... )
        >>> strategy.rows(np.array([1, 2, 3, 4, 5, 6, 7])).tolist()
        [10, 28, 3, 7, 1, 2, 3, 4, 5, 6, 7]
        """
        self._refuse_other(counts, self.cells)
        return kernels.tree_totals(counts, self.trees.tree)[self.trees.nodes]

    def weights(self) -> IntArray:
        """Return the weights of borders and nodes as integers."""
        if self.as_totals is not None:
            return integer_weights(self.border_weights)
        nodes = np.repeat(integer_weights(self.node_weights), self.trees.sizes)
        return np.concatenate([integer_weights(self.border_weights), nodes])

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the borders and nodes that no edge enters or leaves: Lemma OH5."""
        if self.as_totals is not None and policy.bandwidth() is not None:
            return self.as_totals.exact_rows(policy)
        marks = kernels.uncrossed_nodes(self.trees.tree, *policy.components())
        return marks[self.trees.nodes]

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of weights over the rows that one edge moves: OH6.

        Exact for policies that join each cell to all cells up to a furthest one
        (`Line`, `Threshold`, `Full`, contiguous `Blocks`); for others the price of the
        least such policy that holds all their edges.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each row: running totals of blocks, and nodes inside blocks.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        if self.as_totals is not None:
            return self.as_totals.worst_edge(weights, policy, power)
        reach = LineReach(policy)
        return kernels.worst_block_move(
            weights, self.trees, reach.furthest, reach.bottom
        )

    def _measured(
        self, noisy: IntArray, scales: Scales
    ) -> tuple[FloatArray, FloatArray, Tree]:
        """Return measured totals, their variances and the tree, by node.

        Blocks are nodes of the tree that nobody measured: total 0, variance infinite.
        """
        totals = self.trees.by_node(noisy.astype(np.float64), 0.0)
        variances = self.trees.by_node(scales.variances, np.inf)
        return totals, variances, self.trees.tree

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of the cells. O(cells).

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured running totals of blocks and nodes inside them.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        threads = threads_for(self.trees.tree.nodes)
        fit = kernels.tree_fit(*self._measured(noisy, scales), threads=threads)
        return fit[self.trees.tree.leaf_nodes]

    def totals(self, noisy: IntArray, scales: Scales) -> Totals:
        """Return the estimated running totals of the cells with their noise.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured rows.
        scales : Scales
            The noise of each row.

        Returns
        -------
        Totals
            The totals.
        """
        values = np.cumsum(self.infer(noisy, scales))
        exact = scales.exact[: self.blocks]
        ends = self.edges[1:][exact] - 1
        is_exact = np.zeros(self.cells, dtype=np.bool_)
        is_exact[ends] = True
        # Least squares meets exact totals up to rounding; fits pass through them.
        values[ends] = noisy[: self.blocks][exact]
        return Totals.with_noise(values, is_exact, scales)

    def increasing(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return cells of 0 or more: monotone borders, then family by family inside.

        Exact borders are met, and each block keeps what exact nodes inside it hold. It
        is post-processing, O(cells).

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured rows.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The cells.
        """
        measured = self._measured(noisy, scales)
        threads = threads_for(self.trees.tree.nodes)
        exact = scales.exact[: self.blocks]
        borders, tops = self.trees.nodes[: self.blocks], self.trees.tops
        linear = kernels.tree_fit(*measured, threads=threads)
        # Running totals may not fall, and each block must hold at least what its exact
        # nodes hold: what is left of the totals above that is made monotone.
        ends = np.where(exact, noisy[: self.blocks], linear[borders])
        least = kernels.lower_bounds(*measured)[tops]
        least_before_end = np.cumsum(least)
        above = kernels.isotonic_fit(ends - least_before_end, exact, low=0.0)
        totals = least + np.diff(above, prepend=0.0)
        settled = (
            np.concatenate([borders, tops]),
            np.concatenate([np.cumsum(totals), totals]),
        )
        fit = kernels.top_down_fit(*measured, settled=settled, threads=threads)
        return fit[self.trees.tree.leaf_nodes]

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the law of each query's noise; the variance is exact.

        `square` and `largest` are bounds above: Lemma OH11. A few blocks are walked
        like any tree, which gives them exactly.
        """
        if self.blocks <= FEW_BLOCKS:
            return tree_spread(form, self.trees.tree, *law.tables.tree)
        loudest, least = law.tables.loudest
        cuts, size, variation = _cuts(form, self.cells)
        variance = self._variance(cuts, law)
        square, largest, steps = kernels.moment_bounds(
            variance, size, variation, loudest, least
        )
        unknown = np.full(variance.size, np.nan)
        return Spread(variance, square, largest, steps, unknown, least)

    def noise_tables(self, scales: Scales) -> HierarchyNoise:
        """Return the noise of borders and nodes, each table made when first needed."""
        return HierarchyNoise(self.trees, self.blocks, scales)

    def _variance(self, cuts: Cuts, law: StrategyNoise) -> FloatArray:
        # A cut is lifted to the root by a walk. All cells at once cost as much as walks
        # from one cell in twenty, so from one in sixteen on they are lifted together.
        many = 16 * cuts[1].size > self.cells
        noise = law.tables.lifted if many else law.tables.nodes
        return kernels.hierarchy_variances(noise, self.trees, *cuts)

    def _total_variance(self, form: Form, law: StrategyNoise) -> float:
        if self.as_totals is not None:
            return self.as_totals.total_variance(form, law.scales)
        if not isinstance(form, Implicit):
            if self.blocks <= FEW_BLOCKS:
                return float(self._spread(form, law).variance.sum())
            return float(self._variance(_cuts(form, self.cells)[0], law).sum())
        return kernels.tree_total_variance(
            self.trees.by_node(law.scales.variances, np.inf),
            self.trees.tree,
            form.kind,
            form.edges,
        )


@dataclass(frozen=True, eq=False)
class HierarchyNoise:
    """The noise of borders and nodes, in the tables that queries read.

    Few queries need all of them, so each is made when the first one asks for it.

    Parameters
    ----------
    trees : BlockTrees
        The trees of the blocks.
    blocks : int
        Number of blocks.
    scales : Scales
        The noise of each row: borders first, then nodes.
    """

    trees: BlockTrees
    blocks: int
    scales: Scales

    @cached_property
    def tree(self) -> tuple[NodeRows, float]:
        """Noise of every row as a node of one tree, and the least scale."""
        variances, widths = known_noise(self.scales)
        variances = self.trees.by_node(variances, np.inf)
        widths = self.trees.by_node(widths, 0.0)
        noise = kernels.tree_noise(variances, widths, self.trees.tree)
        return noise, self.scales.least

    @cached_property
    def nodes(self) -> NodeNoise:
        """Noise of the nodes within each block."""
        return kernels.block_noise(self.scales.variances, self.trees)

    @cached_property
    def lifted(self) -> NodeNoise:
        """The same with every cut lifted to the root, for very many queries."""
        return kernels.lift_cuts(self.nodes, self.trees)

    @cached_property
    def loudest(self) -> tuple[LoudestNoise, float]:
        """What every query needs of borders, nodes and all rows; the least scale."""
        scales = self.scales
        variances, widths = scales.variances, scales.widths
        leverage = kernels.hat_diagonal(variances, self.nodes, self.trees)
        # Rows that were not measured count as measured, with a scale beyond all use.
        unknown = np.isinf(variances)
        variances[unknown], widths[unknown] = UNKNOWN_SCALE**2, UNKNOWN_SCALE
        # The largest (scale)^2 / variance of a row.
        excess = np.zeros(widths.size)
        np.divide(widths**2, variances, out=excess, where=widths > 0.0)
        borders = slice(self.blocks)
        # In the order of `LoudestNoise`: nodes, which a line of single cells has none
        # of, then borders, then all rows.
        loudest = (
            float(excess[self.blocks :].max(initial=0.0)),
            float(excess[borders].max()),
            float(variances[borders].max()),
            # Leverages are found in floating point; rounding is far below this margin.
            float((leverage * widths).max()) * (1.0 + 2.0**-30),
            float(np.count_nonzero(~scales.exact)),
        )
        return loudest, scales.least


def _cuts(form: Fractions | Pieces, cells: int) -> tuple[Cuts, FloatArray, FloatArray]:
    """Return cuts, how large coefficients are, and how far they rise and fall.

    A piece of value v from cell a up to cell b is v times the running total up to b,
    less v times that up to a: two cuts. Its coefficients rise by |v| and fall by |v|.
    """
    if isinstance(form, Fractions):
        pointers, ends, fractions, amounts, size = kernels.range_cuts(*form)
        cuts = (pointers, ends, fractions, amounts)
        return cuts, size, np.full(size.size, 2.0)
    listed = (
        2 * form.pointers,
        np.stack([form.starts, form.ends], axis=1).reshape(-1),
        np.zeros(2 * form.starts.size),
        np.stack([-form.values, form.values], axis=1).reshape(-1),
    )
    moments = row_moments(form, cells)
    size = np.maximum(moments.largest, 0.0) - np.minimum(moments.least, 0.0)
    query = np.repeat(np.arange(size.size), np.diff(form.pointers))
    variation = np.bincount(query, 2.0 * np.abs(form.values), minlength=size.size)
    return listed, size, variation.astype(np.float64)
