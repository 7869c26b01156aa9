"""A tree of totals over the cells, each node with noise of its own scale.

              root                   regular: level by level, leaves first, root last
         n0         n1               any other form: given by parents, leaves first
      x0    x1   x2    x3            weight 0: the node is not measured

Serves hierarchies of any fan-out, quadtrees, kd-trees and grids refined where the data
is dense. Noise follows the weights; what the worst edge of a policy pays is found
exactly (`prices.worst_edge`), and nodes that no edge crosses are published as they are.
Inference is exact generalised least squares in linear time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.measure.noise import Scales, Spread, integer_weights
from blowfish_fast.measure.strategies.base import LinearStrategy
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Implicit, Pieces

from .prices import worst_edge

if TYPE_CHECKING:
    from blowfish_fast.kernels.tree.shape import Tree


class TreeStrategy(LinearStrategy):
    """Totals of all nodes of a tree over the cells.

    Parameters
    ----------
    tree : Tree
        From ``kernels.regular_tree(leaves, fan_out)`` or
        ``kernels.tree_of_parents(parents)``; its leaves are the cells, in their order.
    node_weights : (nodes,) float64
        Relative rate of each node, in [0, 1], leaves first; 0: it is not measured.

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
        """Mark the nodes that no edge enters or leaves: Lemma HI6.

        Each connected part of the policy lies inside or outside of such a node, and
        none inside holds "absent": the root where the total is public, blocks of the
        policy that are nodes of the tree, everything if nothing can move.
        """
        return kernels.uncrossed_nodes(self.tree, *policy.components())

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of weights over the nodes that one edge changes.

        Lemma HI4.

        Adding a record changes the nodes of one root-to-leaf path; a move those that
        hold exactly one of its two cells. Exact for every policy.
        """
        return worst_edge(weights, self.tree, policy)

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of the leaves. O(nodes)."""
        # A copy, so that the estimates above the leaves are freed.
        return self.fit(noisy, scales)[: self.leaves].copy()

    def fit(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of every node, consistent throughout."""
        return kernels.tree_fit(noisy.astype(np.float64), scales.variances, self.tree)

    def non_negative(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return leaves of 0 or more, settled from the root down. Free, O(nodes)."""
        fit = kernels.top_down_fit(noisy, scales.variances, self.tree)
        return fit[: self.leaves].copy()

    def _spread(self, form: Fractions | Pieces, scales: Scales) -> Spread:
        noise, least = self._kept(scales, self._noise)
        if isinstance(form, Fractions):
            return Spread(*kernels.spread_ranges(noise, self.tree, *form), least)
        return Spread(*kernels.spread_pieces(noise, self.tree, *form), least)

    def _noise(self, scales: Scales) -> tuple[FloatArray, float]:
        noise = kernels.tree_noise(scales.variances, scales.widths, self.tree)
        return noise, scales.least

    def _implicit_variance(self, form: Implicit, scales: Scales) -> float:
        return kernels.tree_total_variance(
            scales.variances, self.tree, form.kind, form.edges
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
