"""A tree of totals over the cells, each node with noise of its own scale.

              root                   nodes level by level, leaves first, root last
         n0         n1               weight 0: the node is not measured
      x0    x1   x2    x3            public total: the root is exact

Noise follows the weights: on any root-to-leaf path the rates add up to at most
epsilon. Inference is exact generalised least squares in linear time.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import IntervalError
from blowfish_fast.measure.noise import Scales, Spread, integer_weights
from blowfish_fast.measure.strategies.base import LinearStrategy
from blowfish_fast.policies import AddRemove, Full, Policy
from blowfish_fast.workloads import Form, Fractions, Implicit


class WeightedTree(LinearStrategy):
    """Totals of all nodes of a tree with the given fan-out.

    Parameters
    ----------
    leaves : int
        Number of cells.
    branching : int
        Children per node.
    node_weights : (nodes,) float64
        Relative rate of each node, in [0, 1], leaves first.

    Examples
    --------
    >>> import numpy as np
    >>> WeightedTree(4, 2, np.ones(7)).rows(np.array([4, 0, 2, 1]))
    array([4, 0, 2, 1, 4, 3, 7])
    """

    kind = "weighted_tree"

    def __init__(self, leaves: int, branching: int, node_weights: FloatArray) -> None:
        self.leaves = leaves
        self.branching = branching
        self.node_weights = node_weights

    def rows(self, counts: IntArray) -> IntArray:
        """Return the total of every node."""
        return kernels.tree_totals(counts, self.branching)

    def weights(self) -> IntArray:
        """Return the node weights as integers."""
        return integer_weights(self.node_weights)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the root where the total is public; everything if nothing can move."""
        exact = np.zeros(self.node_weights.size, dtype=bool)
        exact[-1] = not policy.has_bottom
        if not (policy.has_bottom or policy.has_moves):
            exact[:] = True
        return exact

    def worst_edge(self, weights: IntArray, policy: Policy) -> int:
        """Return the heaviest path, or the heaviest pair of paths that a move changes.

        Adding a record changes the nodes of one root-to-leaf path. A move changes
        those that hold exactly one of its two cells: two paths below their lowest
        common node. For policies sparser than `Full` twice the heaviest path is a
        bound above.
        """
        if isinstance(policy, AddRemove):
            return int(kernels.heaviest_path(weights, self.leaves, self.branching))
        if isinstance(policy, Full):
            return int(kernels.heaviest_pair(weights, self.leaves, self.branching))
        path = int(kernels.heaviest_path(weights, self.leaves, self.branching))
        return 2 * path if policy.has_moves else path * policy.has_bottom

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of the leaves. O(nodes)."""
        return kernels.tree_least_squares(
            noisy.astype(np.float64), scales.variances, self.leaves, self.branching
        )

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the exact law of each query's noise. O(log leaves) per range."""
        shape = (scales.variances, scales.widths, self.leaves, self.branching)
        if isinstance(form, Implicit):
            raise IntervalError("list the queries first: use explicit_form")
        if isinstance(form, Fractions):
            return Spread(*kernels.tree_spread_ranges(*shape, *form))
        return Spread(*kernels.tree_spread_pieces(*shape, *form))

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return the variance summed over all queries, in closed form if implicit."""
        if not isinstance(form, Implicit):
            return float(self.spread(form, scales).variance.sum())
        return float(
            kernels.tree_total_variance(
                scales.variances, self.leaves, self.branching, form.kind, form.edges
            )
        )

    def pack(self) -> dict[str, Any]:
        """Return shape and weights."""
        return {
            "leaves": self.leaves,
            "branching": self.branching,
            "node_weights": self.node_weights,
        }

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        return cls(
            int(data["leaves"]),
            int(data["branching"]),
            np.asarray(data["node_weights"], dtype=np.float64),
        )
