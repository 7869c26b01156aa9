"""What strategies share: integer weights, the worst policy edge, exact scales.

A strategy says how much an edge of the policy moves its rows through one function,
`worst_edge`, in integers. Scales and cost both follow from it, so the noise drawn and
the price charged cannot disagree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.measure.noise import (
    Scales,
    Spread,
    chernoff_half_width,
    scales_within,
)
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form


class LinearStrategy(ABC):
    """Integer rows of the counts, measured with noise in proportion to weights.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> strategy = bf.strategies.PrefixSums(4)
    >>> strategy.rows(np.array([5, 0, 2, 1]))
    array([5, 5, 7, 8])
    >>> policy = bf.policies.Line(bf.Domain(4))
    >>> strategy.exact_rows(policy)
    array([False, False, False,  True])
    >>> float(strategy.cost(policy, strategy.scales(policy, Fraction(1, 2))))
    0.5
    """

    kind: ClassVar[str]

    @abstractmethod
    def rows(self, counts: IntArray) -> IntArray:
        """Return the exact values that are measured."""

    @abstractmethod
    def weights(self) -> IntArray:
        """Return the relative rate of each row, as integers below 2^31."""

    @abstractmethod
    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the rows that no edge of the policy moves."""

    @abstractmethod
    def worst_edge(self, weights: IntArray, policy: Policy) -> int:
        """Return the largest sum of `weights` over the rows that one edge moves."""

    @abstractmethod
    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the best linear estimate of the cells."""

    @abstractmethod
    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the law of each query's noise, for explicit forms."""

    @abstractmethod
    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return the variance summed over all queries."""

    @abstractmethod
    def pack(self) -> dict[str, Any]:
        """Return arrays and plain values from which the strategy is rebuilt."""

    @classmethod
    @abstractmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild a strategy from `pack`."""

    def published(self, rows: IntArray, noise: IntArray, scales: Scales) -> IntArray:
        """Return what leaves the handle.

        Each measured row with its own draw, exact rows as they are, and 0 in place of
        rows that are not measured.
        """
        noisy = rows + noise
        noisy[~scales.measured] = 0
        np.copyto(noisy, rows, where=scales.exact)
        return noisy

    def half_widths(self, form: Form, scales: Scales, miss: float) -> FloatArray:
        """Return how far each answer may lie off, but for a probability of `miss`.

        A proved bound from the spread; strategies that know the law do better.
        """
        return chernoff_half_width(self.spread(form, scales), miss)

    def scales(self, policy: Policy, epsilon: Fraction) -> Scales:
        """Return scales whose worst policy edge costs at most `epsilon`."""
        exact = self.exact_rows(policy)
        weights = self.weights()
        weights[exact] = 0
        return scales_within(weights, self.worst_edge(weights, policy), epsilon, exact)

    def cost(self, policy: Policy, scales: Scales) -> Fraction:
        """Return the exact cost of the worst policy edge, or a bound above it."""
        return Fraction(self.worst_edge(scales.rates, policy), scales.unit)
