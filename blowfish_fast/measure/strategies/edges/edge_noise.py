"""Noise on the edges of the policy, added to the cells they join.

    cell v  =  x_v  +  noise of its edges, + at one end and - at the other

An edge of the policy shifts two cells by one each, in opposite directions, which is
what a unit shift of that edge's own noise does: so every edge costs exactly one draw,
whatever the graph. Totals of connected parts without "absent" stay exact by themselves.
The noise of the edges is never published, only its sum in each cell.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import EpsilonError, PrivacyError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread
from blowfish_fast.measure.strategies.base import LinearStrategy
from blowfish_fast.policies import ABSENT, Graph, Policy
from blowfish_fast.workloads import Fractions, Implicit, Pieces

from .edge_cuts import cut_spread, cut_variance, ends_of_edges

MOST_EDGES = 2**26


def refuse_too_dense(policy: Policy) -> None:
    """Refuse a policy with more edges than can be held."""
    if policy.edge_count > MOST_EDGES:
        raise SizeError(
            f"this policy has {policy.edge_count:,} edges; noise on each of them is "
            f"offered up to 2^26 = {MOST_EDGES:,}",
            way_out='Use strategy="cells"',
            code="too_many_edges_to_measure",
        )


class EdgeNoise(LinearStrategy):
    """One draw per edge of a policy graph.

    Parameters
    ----------
    cells : int
        Number of cells.
    heads, tails : (edges,) int64
        The two ends of each edge; a tail of -1 is "absent".

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> strategy = EdgeNoise.under(bf.policies.Line(bf.Domain(4)))
    >>> strategy.heads.tolist(), strategy.tails.tolist()
    ([0, 1, 2], [1, 2, 3])
    """

    kind = "edge_noise"

    def __init__(self, cells: int, heads: IntArray, tails: IntArray) -> None:
        self.cells = cells
        self.heads = heads
        self.tails = tails
        self._made_for: Policy | None = None

    @classmethod
    def under(cls, policy: Policy) -> Self:
        """List the edges of `policy`, which must be few enough to hold."""
        refuse_too_dense(policy)
        made = cls(policy.domain.size, *ends_of_edges(policy))
        made._made_for = policy
        return made

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
        """Return the heaviest edge: each is paid by its own draw: Lemma LA10.

        Refuses a policy with an edge that has no draw here.
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
        self._made_for = policy

    def scales(self, policy: Policy, budget: Budget | Fraction) -> Scales:
        """Return one scale for all edges; refuse a budget that leaves none.

        A row without noise is blanked elsewhere. Here the cells themselves are the
        rows, so a draw left out would publish them as they are.
        """
        scales = super().scales(policy, budget)
        if not scales.measured.all():
            raise EpsilonError(
                f"noise on edges at {Budget.of(budget).words()} would exceed 2^40",
                way_out='Raise it, or use strategy="cells"',
                code="noise_on_edges_too_large",
            )
        return scales

    def published(self, rows: IntArray, noise: IntArray, scales: Scales) -> IntArray:
        """Add each edge's draw to its head and take it from its tail."""
        if not scales.measured.all():
            raise PrivacyError("an edge without noise would publish its cells exactly")
        cells = rows.copy()
        np.add.at(cells, self.heads, noise)
        inside = self.tails != ABSENT
        np.subtract.at(cells, self.tails[inside], noise[inside])
        return cells

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the noisy cells."""
        return noisy.astype(np.float64)

    def _spread(self, form: Fractions | Pieces, scales: Scales) -> Spread:
        """Return the law of each query's noise: one coefficient per edge it cuts."""
        draws = scales.variances, scales.widths
        return cut_spread(form, self.cells, self.heads, self.tails, *draws)

    def _implicit_variance(self, form: Implicit, scales: Scales) -> float:
        return cut_variance(form, self.cells, self.heads, self.tails, scales.variances)

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
            raise ValueError("edges must join cells of the domain")
        return cls(cells, heads, tails)
