"""A tree of totals of any form, each node with noise of its own scale.

              root                   nodes in the order of `kernels.parent_tree`:
         n3         x2               leaves first, from left to right, root last
      x0    x1                       parents   3 3 4 4 -1

The irregular brother of `WeightedTree`: quadtrees of any shape, grids refined where the
data is dense, kd-trees. On any root-to-leaf path the rates add up to at most epsilon;
inference is exact generalised least squares in linear time. The worst edge of a policy
is found edge by edge where edges can be listed.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import DomainError, InputError, IntervalError
from blowfish_fast.measure.noise import Scales, Spread, integer_weights
from blowfish_fast.measure.strategies.base import LinearStrategy
from blowfish_fast.policies import ABSENT, AddRemove, Full, Policy
from blowfish_fast.workloads import Form, Implicit
from blowfish_fast.workloads.base import as_pieces

MOST_EDGES = 2**21
"""Most policy edges that are held against the tree one by one."""


class Meetings(NamedTuple):
    """The edges of a policy, and the lowest node above both ends of each."""

    policy: Policy
    heads: IntArray
    tails: IntArray
    tops: IntArray


class NodeTree(LinearStrategy):
    """Totals of all nodes of a tree given by its parents.

    Parameters
    ----------
    parents : (nodes,) int64
        The node above each node. Leaves come first, in the order of the cells; every
        parent comes after its children; the root is last, with parent -1.
        ``kernels.parent_tree.leaf_first_numbers`` gives any tree this order.
    node_weights : (nodes,) float64
        Relative rate of each node, in [0, 1]; 0: the node is not measured.

    Examples
    --------
    >>> import numpy as np
    >>> parents = np.array([3, 3, 4, 4, -1])
    >>> NodeTree(parents, np.ones(5)).rows(np.array([4, 0, 2]))
    array([4, 0, 2, 4, 6])
    """

    kind = "node_tree"

    def __init__(self, parents: IntArray, node_weights: FloatArray) -> None:
        self.tree = kernels.tree_of_parents(parents)
        self.node_weights = np.asarray(node_weights, dtype=np.float64)
        if self.node_weights.shape != (self.tree.nodes,):
            raise InputError(
                f"node_weights holds one number per node, here {self.tree.nodes}; "
                f"received an array of shape {self.node_weights.shape}"
            )
        if not ((self.node_weights >= 0) & (self.node_weights <= 1)).all():
            raise InputError(
                "node_weights must lie between 0 and 1; received "
                f"{self.node_weights.min():g} to {self.node_weights.max():g}"
            )
        self._known: Meetings | None = None

    @property
    def parents(self) -> IntArray:
        """The node above each node."""
        return self.tree.parents

    @property
    def leaves(self) -> int:
        """Number of cells."""
        return self.tree.leaves

    def rows(self, counts: IntArray) -> IntArray:
        """Return the total of every node."""
        if counts.size != self.leaves:
            raise DomainError(
                f"this tree has {self.leaves} leaves; received {counts.size} counts"
            )
        return kernels.parent_totals(counts, self.tree)

    def weights(self) -> IntArray:
        """Return the node weights as integers."""
        return integer_weights(self.node_weights)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the nodes that no edge enters or leaves.

        The root where the total is public; blocks of the policy that are nodes of the
        tree, where edges can be listed; everything if nothing can move.
        """
        exact = np.zeros(self.tree.nodes, dtype=np.bool_)
        if not (policy.has_bottom or policy.has_moves):
            exact[:] = True
            return exact
        meetings = self._meetings(policy)
        if meetings is None:
            exact[-1] = not policy.has_bottom
            return exact
        crossings = kernels.path_crossings(self.parents, self._downward, *meetings[1:])
        return np.asarray(crossings == 0)

    def worst_edge(self, weights: IntArray, policy: Policy) -> int:
        """Return the largest sum of weights over the nodes that one edge changes.

        Adding a record changes the nodes of one root-to-leaf path; a move those that
        hold exactly one of its two cells. Exact under `AddRemove`, `Full` and wherever
        edges can be listed; else the worst of all moves is a bound above.
        """
        meetings = self._meetings(policy)
        if meetings is None:
            path, pair = kernels.heaviest_ways(weights, self.tree)
            return max(path * policy.has_bottom, pair * policy.has_moves)
        from blowfish_fast.kernels.graph.graph_tree import path_sums, sums_to_root

        if not meetings.heads.size:
            return 0
        above = sums_to_root(weights, self.parents, self._downward)
        return int(path_sums(above, *meetings[1:]).max())

    @property
    def _downward(self) -> IntArray:
        return np.arange(self.tree.nodes - 1, -1, -1)

    def _meetings(self, policy: Policy) -> Meetings | None:
        """List the edges; None where closed rules serve or there are too many."""
        if listed_edges(policy) is None:
            return None
        if self._known is None or self._known.policy is not policy:
            chunks = list(policy.edges())
            edges = np.concatenate(chunks) if chunks else np.empty((0, 2), np.int64)
            first = edges[:, 0] == ABSENT
            heads = np.where(first, edges[:, 1], edges[:, 0])
            tails = np.where(first, ABSENT, edges[:, 1])
            tops = kernels.lowest_common(self.parents, self._downward, heads, tails)
            self._known = Meetings(policy, heads, tails, tops)
        return self._known

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of the leaves. O(nodes)."""
        return self.fit(noisy, scales)[: self.leaves].copy()

    def fit(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the least-squares estimate of every node, consistent throughout."""
        return kernels.parent_tree_fit(
            noisy.astype(np.float64), scales.variances, self.tree
        )

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the exact law of each query's noise.

        A query visits the nodes that hold one of its borders, and their children.
        """
        if isinstance(form, Implicit):
            raise IntervalError("list the queries first: use explicit_form")
        pieces = as_pieces(form)
        variances, widths = scales.variances, scales.widths
        return Spread(
            *kernels.parent_tree_spread(variances, widths, self.tree, *pieces)
        )

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return the variance summed over all queries, in closed form if implicit."""
        if not isinstance(form, Implicit):
            return float(self.spread(form, scales).variance.sum())
        return kernels.parent_tree_total_variance(
            scales.variances, self.tree, form.kind, form.edges
        )

    def pack(self) -> dict[str, Any]:
        """Return parents and weights."""
        return {"parents": self.parents, "node_weights": self.node_weights}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        return cls(
            np.asarray(data["parents"], dtype=np.int64),
            np.asarray(data["node_weights"], dtype=np.float64),
        )


def listed_edges(policy: Policy) -> int | None:
    """Return how many edges are held against a tree; None where closed rules serve.

    `AddRemove` and `Full` have their rules, and so has a policy with too many edges.
    """
    if isinstance(policy, AddRemove | Full):
        return None
    return policy.edges_up_to(MOST_EDGES)
