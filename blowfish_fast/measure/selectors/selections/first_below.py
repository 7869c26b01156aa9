"""Sparse vector technique, one answer: the first of several tails below a bar.

persons with more than   1    2    3    4    5   records
90   41   12    3    0
+ noise                 88   43    9    5   -1       the first at most bar + noise
bar 10 + noise 11                  ^
"""

from __future__ import annotations

from collections import Counter
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
        """Return the number of the first tail below the bar; the last if none is.

        Lemma PE6.
        """
        many = self.select_many(
            counts, policy=policy, epsilon=epsilon, draws=1, rng=rng
        )
        return next(iter(many))

    def select_many(
        self,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
        draws: int,
        rng: Randomness,
    ) -> Counter[int]:
        """Return how often each number is chosen in `draws` independent choices."""
        tails = self.tails(counts)
        noise = np.zeros((draws, tails.size + 1), dtype=np.int64)
        if policy.has_moves or policy.has_bottom:
            half = epsilon / 2
            drawn = rng.laplace(half.denominator, half.numerator, size=noise.size)
            noise = drawn.reshape(noise.shape)
        below = tails + noise[:, 1:] <= self.bar + noise[:, :1]
        first = np.where(below.any(axis=1), below.argmax(axis=1), tails.size - 1)
        return +Counter(dict(enumerate(np.bincount(first).tolist())))
