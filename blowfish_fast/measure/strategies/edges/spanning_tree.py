r"""Totals of subtrees of a spanning tree of the policy graph.

    policy     0 - 1 - 2 - 3        tree      1          rows   x0
               |_______|                     / \                 x0 + x1 + x2 + x3
                                            0   2               x2 + x3
                                                 \               x3
                                                  3

Counts and totals of subtrees say the same. A record that moves from u to v changes the
rows on the path between them in the tree, so an edge that the tree keeps costs one row
and any other edge as many rows as its detour is long: the largest is the stretch of the
tree. The total of a connected part without "absent" is the row of its root, which no
edge changes; with "absent" the part is rooted there.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import EpsilonError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread
from blowfish_fast.measure.strategies.base import LinearStrategy, integers
from blowfish_fast.policies import ABSENT, Graph, Policy
from blowfish_fast.workloads import Fractions, Implicit, Pieces

from .edge_cuts import cut_spread, cut_variance, ends_of_edges

MOST_EDGES = 2**24


class Detours(NamedTuple):
    """The edges of a policy, and where the paths between their ends turn downwards."""

    policy: Policy
    heads: IntArray
    tails: IntArray
    tops: IntArray


class SpanningTree(LinearStrategy):
    """One noisy total per subtree.

    Parameters
    ----------
    parents : (cells,) int64
        The cell above each cell; -1 at the roots.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> star = bf.policies.Graph(bf.Domain(4), [(2, 0), (2, 1), (2, 3)])
    >>> SpanningTree.under(star).parents.tolist()
    [2, 2, -1, 2]
    """

    kind = "spanning_tree"
    saved: ClassVar[dict[str, Any]] = {"parents": integers}

    def __init__(self, parents: IntArray) -> None:
        self.parents = parents
        self.order = kernels.top_down_order(parents)
        self._known: Detours | None = None

    @classmethod
    def under(cls, policy: Policy) -> Self:
        """Search the policy graph breadth first.

        Each connected part is rooted at "absent" if it holds it, and else at the cell
        with most neighbours.
        """
        pointers, neighbours = _rows(policy)
        cells = policy.domain.size
        degrees = np.diff(pointers)[:-1]
        starts = np.append(cells, np.argsort(-degrees, kind="stable"))
        parents = kernels.breadth_first_tree(pointers, neighbours, starts)[:-1]
        return cls(np.where(parents == cells, -1, parents))

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.parents.size

    def rows(self, counts: IntArray) -> IntArray:
        """Return the total of every subtree, at the number of its root."""
        self._refuse_other(counts, self.cells)
        return kernels.subtree_totals(counts, self.parents, self.order)

    def weights(self) -> IntArray:
        """Give every row the same weight."""
        return np.full(self.cells, 2**WEIGHT_BITS, dtype=np.int64)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the rows that lie on no path between the ends of an edge."""
        exact: BoolArray = (
            kernels.path_crossings(self.parents, self.order, *self._detours(policy)[1:])
            == 0
        )
        return exact

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of weights over the path of an edge: Lemma ST2."""
        from blowfish_fast.kernels.graph.graph_tree import path_sums, sums_to_root

        _, heads, tails, tops = self._detours(policy)
        if not heads.size:
            return 0
        above = sums_to_root(weights, self.parents, self.order)
        return int(path_sums(above, heads, tails, tops).max())

    def stretch(self, policy: Policy) -> int:
        """Return the length of the longest path between the ends of an edge."""
        return self.worst_edge(np.ones(self.cells, dtype=np.int64), policy)

    def least_stretch(self, policy: Policy, sample: int = 2**12) -> int:
        """Return the longest path among some edges: a bound below, found at once."""
        from blowfish_fast.kernels.graph.graph_tree import (
            lowest_common,
            path_sums,
            sums_to_root,
        )

        heads, tails = _ends(policy)
        some = np.unique(np.linspace(0, heads.size - 1, sample).astype(np.int64))
        if not heads.size:
            return 0
        heads, tails = heads[some], tails[some]
        tops = lowest_common(self.parents, self.order, heads, tails)
        ones = np.ones(self.cells, dtype=np.int64)
        above = sums_to_root(ones, self.parents, self.order)
        return int(path_sums(above, heads, tails, tops).max())

    def _detours(self, policy: Policy) -> Detours:
        if self._known is None or self._known.policy is not policy:
            heads, tails = _ends(policy)
            tops = kernels.lowest_common(self.parents, self.order, heads, tails)
            self._known = Detours(policy, heads, tails, tops)
        return self._known

    def scales(self, policy: Policy, budget: Budget | Fraction) -> Scales:
        """Return scales whose worst policy edge costs at most `budget`."""
        found = super().scales(policy, budget)
        if not (found.measured | found.exact).all():
            raise EpsilonError(
                f"the longest detour along this tree is {self.stretch(policy):,} "
                f"edges, and {Budget.of(budget).words()} leaves noise beyond 2^40 on "
                "each; raise it, or measure cells or policy edges instead"
            )
        return found

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return each subtree's total less those of the subtrees right below it."""
        return kernels.subtract_children(noisy, self.parents).astype(np.float64)

    @cached_property
    def _cells_in_order(self) -> IntArray:
        return np.arange(self.cells, dtype=np.int64)

    def _spread(self, form: Fractions | Pieces, scales: Scales) -> Spread:
        """Return the exact law of each query's noise: one coefficient per tree edge.

        The row of u enters a query with its coefficient at u less that at the parent.
        """
        return cut_spread(
            form,
            self.cells,
            self._cells_in_order,
            self.parents,
            scales.variances,
            scales.widths,
        )

    def _implicit_variance(self, form: Implicit, scales: Scales) -> float:
        return cut_variance(
            form, self.cells, self._cells_in_order, self.parents, scales.variances
        )


def _refuse_too_many(policy: Policy) -> None:
    if policy.edge_count > MOST_EDGES:
        raise SizeError(
            f"this policy has {policy.edge_count:,} edges; a spanning tree is held "
            f"against each of them, up to 2^24 = {MOST_EDGES:,}",
            way_out='Noise on the cells needs no list of edges: strategy="vertex"',
            code="too_many_edges_to_measure",
        )


def _ends(policy: Policy) -> tuple[IntArray, IntArray]:
    _refuse_too_many(policy)
    return ends_of_edges(policy)


def _rows(policy: Policy) -> tuple[IntArray, IntArray]:
    """Return the policy graph in compressed rows; its last node is "absent"."""
    _refuse_too_many(policy)
    if isinstance(policy, Graph):
        return policy.rows
    heads, tails = _ends(policy)
    cells = policy.domain.size
    return kernels.adjacency(heads, np.where(tails == ABSENT, cells, tails), cells + 1)
