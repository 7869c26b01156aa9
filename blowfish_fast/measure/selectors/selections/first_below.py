"""Sparse vector technique, one answer: the first of several tails below a bar.

persons with more than   1    2    3    4    5   records
90   41   12    3    0
+ noise                 88   43    9    5   -1       the first at most bar + noise
bar 10 + noise 11                  ^
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.policies import Policy

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness


class FirstBelow:
    """Find the first tail of a histogram that is at most a bar.

    The tail after cell i is the number of records in the cells that follow it.

    Parameters
    ----------
    bar : int
        Public.

    Notes
    -----
    Guarantee: epsilon-private under every policy whose edges each join two cells, or a
        cell and "absent".
    Neighbours: one record moves along one edge, whichever.
    Sensitivity: such a record changes every tail by 0 or 1, all in one direction, so
        the bar and each tail take discrete Laplace noise of scale 2 / epsilon, however
        many tails there are.
    Proof: ``docs/proofs/persons.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> from blowfish_fast.measure.randomness import Randomness
    >>> few = FirstBelow(bar=10).select(
    ...     np.array([900, 90, 9, 1]), policy=bf.policies.Full(bf.Domain(4)),
    ...     epsilon=Fraction(10), rng=Randomness(1))
    >>> few
    1
    """

    name = "first_below"

    def __init__(self, bar: int) -> None:
        self.bar = bar

    def tails(self, counts: IntArray) -> IntArray:
        """Return how many records lie in the cells after each cell but the last."""
        after: IntArray = counts.sum() - np.cumsum(counts)
        return after[:-1]

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> int:
        """Return the number of the first tail below the bar; the last if none is."""
        tails = self.tails(counts)
        if not (policy.has_moves or policy.has_bottom):
            below = tails <= self.bar
        else:
            half = epsilon / 2
            noise = rng.laplace(half.denominator, half.numerator, size=tails.size + 1)
            below = tails + noise[1:] <= self.bar + noise[0]
        return int(below.argmax()) if below.any() else tails.size - 1
