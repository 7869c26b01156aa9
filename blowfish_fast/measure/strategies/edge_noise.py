"""Noise on the edges of the policy, or of a tree that spans it.

    policy          0 --- 1          edges 0-1, 1-2, 2-3 and 0-3
                    |     |
                    3 --- 2

    EdgeNoise       cell 0 gets  z(01) + z(03),   cell 1 gets  z(12) - z(01),   ...
                    A record that moves from 0 to 1 changes what one draw z(01) could
                    have changed as well: every edge costs one draw.

    SpanningTree    0                measured: the total of every subtree,
                    +-- 1            {0,1,2,3}, {1,2}, {2} and {3}
                    |   +-- 2
                    +-- 3
                    A record that moves from 2 to 3 changes the totals on the path
                    between them, {2}, {1,2} and {3}: the edge 2-3 costs three rows.
                    This path is called the detour of the edge.

The total at a root is that of a connected part of the policy, which no move changes, so
it is exact. Where records of the part may be "absent", that node is the root, and it
has no row.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import EpsilonError, PrivacyError, ReleaseFileError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import (
    PreparedStrategy,
    WeighedRows,
    integers,
)
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales
from blowfish_fast.policies import ABSENT, Graph, Policy

from .edge_cuts import EdgeDraws, ends_of_edges

MOST_EDGES = 2**26
"""Most edges of a policy that are listed with a draw for each."""
MOST_FOLLOWED = 2**24
"""Most edges of a policy whose paths along a spanning tree are searched."""


def refuse_too_many(policy: Policy, most: int = MOST_EDGES) -> None:
    """Refuse a policy with more edges than can be held.

    Parameters
    ----------
    policy : Policy
        The policy.
    most : int, default MOST_EDGES
        The largest number of edges.

    Raises
    ------
    SizeError
        If it has more.
    """
    if policy.edge_count > most:
        raise SizeError(
            f"this policy has {policy.edge_count:,} edges; noise on edges and trees is "
            f"offered up to 2^{most.bit_length() - 1} = {most:,}",
            way_out='Noise on the cells needs no list of edges: strategy="cells", or '
            '"cells" of Transformed',
            code="too_many_edges_to_measure",
        )


class EdgeNoise(EdgeDraws):
    """One draw per edge of a policy graph.

    Parameters
    ----------
    cells : int
        Number of cells.
    heads : ndarray of int64, shape (edges,)
        The cell that gets the draw of each edge.
    tails : ndarray of int64, shape (edges,)
        The cell that it is taken from; -1 is "absent".
    made_for : Policy, optional
        The policy whose edges these are, if that is known: they need not be compared
        with its edges again.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> strategy = EdgeNoise.under(bf.policies.Line(bf.Domain(4)))
    >>> strategy.heads.tolist(), strategy.tails.tolist()
    ([0, 1, 2], [1, 2, 3])
    """

    kind = "edge_noise"

    def __init__(
        self,
        cells: int,
        heads: IntArray,
        tails: IntArray,
        *,
        made_for: Policy | None = None,
    ) -> None:
        self.cells = cells
        self.heads = heads
        self.tails = tails
        self._made_for = made_for

    @classmethod
    def under(cls, policy: Policy) -> Self:
        """List the edges of `policy`, which must be few enough to hold."""
        refuse_too_many(policy)
        return cls(policy.domain.size, *ends_of_edges(policy), made_for=policy)

    def rows(self, counts: IntArray) -> IntArray:
        """Return the cells themselves."""
        return counts.copy()

    def weights(self) -> IntArray:
        """Give every edge the same weight."""
        return np.full(self.heads.size, 2**WEIGHT_BITS, dtype=np.int64)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """No draw is left out; a cell without edges stays exact by itself."""
        return np.zeros(self.heads.size, dtype=bool)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the heaviest edge, each paid by its own draw: Lemma LA10.

        Parameters
        ----------
        weights : ndarray of int64, shape (edges,)
            Whole weight of the draw of each edge of the policy.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The largest weight; a unit move is undone by one draw, so it is exact.
        """
        self._check_edges(policy)
        return int(weights.max()) if weights.size else 0

    def _check_edges(self, policy: Policy) -> None:
        if policy is self._made_for:
            return
        ends = np.column_stack([self.heads, self.tails])
        if self.cells != policy.domain.size or not (
            policy == self._made_for or Graph(policy.domain, ends).implies(policy)
        ):
            raise PrivacyError(
                "this noise lies on the edges of another policy, and an edge without a "
                f"draw of its own would be published exactly under {policy!r}; use "
                "EdgeNoise.under(policy)"
            )

    def scales_at(self, weighed: WeighedRows, budget: Budget) -> Scales:
        """Return one scale for all edges; without a draw, cells would be published.

        Parameters
        ----------
        weighed : WeighedRows
            What `weigh` returned, in the currency of the budget.
        budget : Budget
            What the measurement may cost on any edge.

        Returns
        -------
        Scales
            The same scale for the draw of every edge.

        Raises
        ------
        EpsilonError
            If the budget leaves nothing for a draw.
        """
        scales = super().scales_at(weighed, budget)
        if not scales.measured.all():
            raise EpsilonError(
                f"noise on edges at {budget.words()} would exceed 2^40",
                way_out='Raise it, or use strategy="cells"',
                code="noise_on_edges_too_large",
            )
        return scales

    def published(self, rows: IntArray, noise: IntArray, scales: Scales) -> IntArray:
        """Add each edge's draw to its head and take it from its tail.

        Parameters
        ----------
        rows : ndarray of int64, shape (cells,)
            True cells.
        noise : ndarray of int64, shape (edges,)
            A draw for each edge of the policy.
        scales : Scales
            Which draws were made.

        Returns
        -------
        ndarray of int64, shape (cells,)
            What leaves the handle.

        Raises
        ------
        PrivacyError
            If a draw is missing.
        """
        if not scales.measured.all():
            raise PrivacyError("an edge without noise would publish its cells exactly")
        cells = rows.copy()
        np.add.at(cells, self.heads, noise)
        inside = self.tails != ABSENT
        np.subtract.at(cells, self.tails[inside], noise[inside])
        return cells

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the noisy cells.

        Parameters
        ----------
        noisy : ndarray of int64, shape (cells,)
            The noisy cells.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        return noisy.astype(np.float64)

    def pack(self) -> dict[str, Any]:
        """Return the edges."""
        return {"cells": self.cells, "heads": self.heads, "tails": self.tails}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        heads = np.asarray(data["heads"], dtype=np.int64)
        tails = np.asarray(data["tails"], dtype=np.int64)
        cells = int(data["cells"])
        fits = heads.shape == tails.shape and heads.ndim == 1
        if not fits or (
            heads.size
            and (
                heads.min() < 0
                or tails.min() < ABSENT
                or max(heads.max(), tails.max()) >= cells
            )
        ):
            raise ReleaseFileError("edges must join cells of the domain")
        return cls(cells, heads, tails)


class Detours(NamedTuple):
    """The edges of a policy, and where the paths between their ends turn downwards.

    Attributes
    ----------
    policy : Policy
        The policy.
    heads : ndarray of int64, shape (edges,)
        One end of each edge.
    tails : ndarray of int64, shape (edges,)
        The other end; -1 is "absent".
    tops : ndarray of int64, shape (edges,)
        The lowest node above both.
    """

    policy: Policy
    heads: IntArray
    tails: IntArray
    tops: IntArray


class SpanningTree(EdgeDraws):
    """One noisy total per subtree.

    Parameters
    ----------
    parents : ndarray of int64, shape (cells,)
        The cell above each cell; -1 at the roots.
    detours : Detours, optional
        The paths between the ends of a policy's edges, where they were searched
        already. Prices under another policy search anew.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> star = bf.policies.Graph(bf.Domain(4), [(2, 0), (2, 1), (2, 3)])
    >>> SpanningTree.under(star).parents.tolist()
    [2, 2, -1, 2]
    """

    kind = "spanning_tree"
    saved: ClassVar[dict[str, Any]] = {"parents": integers}

    def __init__(self, parents: IntArray, detours: Detours | None = None) -> None:
        self.parents = self.tails = parents
        # The row of u enters a query with its coefficient at u less that at the parent.
        self.heads = np.arange(parents.size, dtype=np.int64)
        self.cells = parents.size
        self.order = kernels.top_down_order(parents)
        self.detours = detours

    @classmethod
    def under(cls, policy: Policy) -> Self:
        """Search breadth first, from "absent" or else the cell of most neighbours."""
        pointers, neighbours = _rows(policy)
        cells = policy.domain.size
        degrees = np.diff(pointers)[:-1]
        starts = np.append(cells, np.argsort(-degrees, kind="stable"))
        parents = kernels.breadth_first_tree(pointers, neighbours, starts)[:-1]
        return cls(np.where(parents == cells, -1, parents))

    def rows(self, counts: IntArray) -> IntArray:
        """Return the total of every subtree, at the number of its root."""
        self._refuse_other(counts, self.cells)
        return kernels.subtree_totals(counts, self.parents, self.order)

    def weights(self) -> IntArray:
        """Give every row the same weight."""
        return np.full(self.cells, 2**WEIGHT_BITS, dtype=np.int64)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the rows that lie on no path between the ends of an edge."""
        detours = self._detours(policy)
        crossings = kernels.path_crossings(
            self.parents, self.order, detours.heads, detours.tails, detours.tops
        )
        exact: BoolArray = crossings == 0
        return exact

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of weights over the path of an edge: Lemma ST2.

        Parameters
        ----------
        weights : ndarray of int64, shape (subtrees,)
            Whole weight of each subtree's total.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum over the subtrees that hold one end of the edge alone.
        """
        detours = self._detours(policy)
        return self._longest(weights, detours.heads, detours.tails, detours.tops)

    def _longest(
        self, weights: IntArray, heads: IntArray, tails: IntArray, tops: IntArray
    ) -> int:
        """Return the largest sum of weights over the paths between heads and tails."""
        from blowfish_fast.kernels.graph.graph_tree import path_sums, sums_to_root

        above = sums_to_root(weights, self.parents, self.order)
        return int(path_sums(above, heads, tails, tops).max(initial=0))

    def stretch(self, policy: Policy) -> int:
        """Return the length of the longest path between the ends of an edge."""
        return self.worst_edge(np.ones(self.cells, dtype=np.int64), policy)

    def least_stretch(self, policy: Policy, sample: int = 2**12) -> int:
        """Return the longest path among some edges: a bound below, found at once.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        sample : int, default 2 ** 12
            How many edges are looked at.

        Returns
        -------
        int
            The number of rows on the longest path.
        """
        heads, tails = _ends(policy)
        if not heads.size:
            return 0
        some = np.unique(np.linspace(0, heads.size - 1, sample).astype(np.int64))
        heads, tails = heads[some], tails[some]
        tops = kernels.lowest_common(self.parents, self.order, heads, tails)
        return self._longest(np.ones_like(self.parents), heads, tails, tops)

    def prepare(self, policy: Policy, budget: Budget | Fraction) -> PreparedStrategy:
        """Return the strategy with the noise that one policy and one budget ask for.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the measurement may cost on any edge.

        Returns
        -------
        PreparedStrategy
            It holds a tree with its detours under the policy: its price is computed
            several times, and the paths are searched once.
        """
        searched = SpanningTree(self.parents, self._detours(policy))
        return super(SpanningTree, searched).prepare(policy, budget)

    def _detours(self, policy: Policy) -> Detours:
        """Return the paths under a policy: those at hand, or a new search."""
        if self.detours is not None and self.detours.policy is policy:
            return self.detours
        heads, tails = _ends(policy)
        tops = kernels.lowest_common(self.parents, self.order, heads, tails)
        return Detours(policy, heads, tails, tops)

    def scales_at(self, weighed: WeighedRows, budget: Budget) -> Scales:
        """Return scales whose worst policy edge costs at most `budget`.

        Parameters
        ----------
        weighed : WeighedRows
            What `weigh` returned, in the currency of the budget.
        budget : Budget
            What the measurement may cost on any edge.

        Returns
        -------
        Scales
            A scale for each subtree's total.

        Raises
        ------
        EpsilonError
            If the budget leaves nothing for a draw.
        """
        scales = super().scales_at(weighed, budget)
        if not (scales.measured | scales.exact).all():
            detour = self.stretch(weighed.policy)
            raise EpsilonError(
                f"the longest detour along this tree is {detour:,} "
                f"edges, and {budget.words()} leaves noise beyond 2^40 on "
                "each; raise it, or measure cells or policy edges instead"
            )
        return scales

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return each subtree's total less those of the subtrees right below it.

        Parameters
        ----------
        noisy : ndarray of int64, shape (subtrees,)
            The measured totals of subtrees.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        return kernels.subtract_children(noisy, self.parents).astype(np.float64)


def _ends(policy: Policy) -> tuple[IntArray, IntArray]:
    refuse_too_many(policy, MOST_FOLLOWED)
    return ends_of_edges(policy)


def _rows(policy: Policy) -> tuple[IntArray, IntArray]:
    """Return the policy graph in compressed rows; its last node is "absent"."""
    refuse_too_many(policy, MOST_FOLLOWED)
    if isinstance(policy, Graph):
        return policy.rows
    heads, tails = _ends(policy)
    cells = policy.domain.size
    return kernels.adjacency(heads, np.where(tails == ABSENT, cells, tails), cells + 1)
