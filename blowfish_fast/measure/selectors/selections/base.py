"""What choices by cost share: exact draws, weights that fall with whole costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from blowfish_fast import kernels
from blowfish_fast._support.typing import IntArray
from blowfish_fast.policies import Policy

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness


class ByCost(ABC):
    """Choose one of several candidates by the exponential mechanism.

    A candidate is drawn with probability in proportion to exp(-rate * cost), exactly,
    with rate = epsilon / (2 sensitivity). Proof: ``docs/proofs/exponential_choice.md``.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> choice = bf.selections.KeptFrequencies(np.array([0.5, 1.0, 2.0]))
    >>> full = bf.policies.Full(bf.Domain(4))
    >>> choice.rate(full, Fraction(1)) == Fraction(1, 2 * choice.sensitivity(full))
    True
    """

    name: ClassVar[str]
    loss_range: ClassVar[int] = 1
    """By how many epsilons the log odds of two candidates may change."""

    @abstractmethod
    def costs(self, counts: IntArray) -> IntArray:
        """Return the cost of each candidate: whole numbers."""

    @abstractmethod
    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves a cost, at most; 0 without edges."""

    def rate(self, policy: Policy, epsilon: Fraction) -> Fraction:
        """Return how fast weights fall with costs: Lemma EC2."""
        return epsilon / (2 * self.sensitivity(policy))

    def select(
        self,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
        rng: Randomness,
    ) -> int:
        """Return the number of a candidate; the cheapest if no edge moves a cost."""
        costs = self.costs(counts)
        if self.sensitivity(policy) == 0:
            return int(costs.argmin())
        rate = self.rate(policy, epsilon)
        return int(kernels.choose_by_cost(rng.stream(), 0, costs[None], rate)[0])
