"""Comparisons of noisy numbers: scattered records, and the first tail below a bar."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.cores import threads_for
from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import EpsilonError
from blowfish_fast.policies import Policy

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness

ONE = 2**18
"""One record, in the units of the statistic."""
MOST_BITS = 43


class NoisyComparison(ABC):
    """A choice that reads counts once and compares them with fresh noise each time."""

    name: ClassVar[str]

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Any:
        """Return one choice: the only one of `select_many` with one draw."""
        many = self.select_many(
            counts, policy=policy, epsilon=epsilon, draws=1, rng=rng
        )
        return next(iter(many))

    @abstractmethod
    def select_many(
        self,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
        draws: int,
        rng: Randomness,
    ) -> Counter[Any]:
        """Return how often each choice is made in `draws` independent choices."""


class ScatterTest(NoisyComparison):
    """Say whether what rectangles cannot make even exceeds a part of all records.

    All is public: `level_weights`, in [0, 1], of a bucket of 2^i by 2^j cells; `price`,
    the cost of a bucket in records; `threshold`, the part of all records, in [0, 1/4],
    above which data count as scattered.

    Notes
    -----
    Guarantee: epsilon-private answer under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: of V - threshold N, max(1/4 + threshold, 3/4 - threshold) when a record
        is added or removed, 1 when it moves; in whole numbers, with Laplace noise on
        the integers.
    Complexity: O(n log(rows) log(columns)) time, O(n) memory.
    Source: this project; proof in ``docs/proofs/scatter.md``.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> test = ScatterTest([[1.0, 1.0]] * 2, price=1.0, threshold=0.25)
    >>> test.statistic(np.array([90, 90, 0, 0]), (2, 2)) / ONE
    -43.0
    >>> test.sensitivity(bf.policies.AddRemove(bf.Domain((2, 2)))) / ONE
    0.5
    """

    name = "scatter"

    def __init__(
        self, level_weights: list[list[float]], *, price: float, threshold: float
    ) -> None:
        self.level_weights = level_weights
        self.price = price
        self.threshold = min(max(round(threshold * ONE), 0), ONE // 4)

    def statistic(self, counts: IntArray, shape: tuple[int, ...]) -> int:
        """Return V - threshold N in units of 2^-18 records, before any noise."""
        cut = kernels.counts_within(counts)
        price = kernels.price_within(self.price, counts.size)
        least = kernels.least_even_cost(
            cut.reshape(shape),
            self.level_weights,
            price,
            threads=threads_for(counts.size),
        )
        return least - self.threshold * int(cut.sum())

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves the statistic, at most: Lemma SC3."""
        if policy.has_moves:
            return ONE
        if not policy.has_bottom:
            return 0
        return max(ONE // 4 + self.threshold, 3 * ONE // 4 - self.threshold)

    def scale(self, policy: Policy, epsilon: Fraction) -> tuple[int, int]:
        """Return numerator and denominator of the noise's scale, rounded up."""
        bits = 0
        while bits < MOST_BITS and epsilon * 2**bits < 2**30:
            bits += 1
        rate = int(epsilon * 2**bits)
        if rate == 0:
            raise EpsilonError(
                f"choosing how to divide a map needs more than 2^-{MOST_BITS} of "
                f"epsilon; it was given {float(epsilon):.2g}. Raise epsilon"
            )
        return self.sensitivity(policy) << bits, rate

    def select_many(
        self,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
        draws: int,
        rng: Randomness,
    ) -> Counter[bool]:
        """Return how often the noisy statistic is above 0, and how often not."""
        value = self.statistic(counts, policy.domain.shape)
        if self.sensitivity(policy) == 0:
            return Counter({value > 0: draws})
        noise = rng.laplace(*self.scale(policy, epsilon), size=draws)
        above = int(np.count_nonzero(noise > -value))
        return +Counter({True: above, False: draws - above})


class FirstBelow(NoisyComparison):
    """Find the first tail of a histogram that is at most `bar`, a public number.

    The tail after cell i is the number of records in the cells that follow it.

    Notes
    -----
    Guarantee: epsilon-private under every policy whose edges each join two cells, or a
        cell and "absent".
    Neighbours: one record moves along one edge, whichever.
    Sensitivity: such a record changes every tail by 0 or 1, all in one direction, so
        the bar and each tail take discrete Laplace noise of scale 2 / epsilon, however
        many tails there are.
    Proof: ``docs/proofs/persons.md``.
    """

    name = "first_below"

    def __init__(self, bar: int) -> None:
        self.bar = bar

    def tails(self, counts: IntArray) -> IntArray:
        """Return how many records lie in the cells after each cell but the last."""
        after: IntArray = counts.sum() - np.cumsum(counts)
        return after[:-1]

    def select_many(
        self,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
        draws: int,
        rng: Randomness,
    ) -> Counter[int]:
        """Return how often each tail is chosen; the last if none is low: Lemma PE6."""
        tails = self.tails(counts)
        noise = np.zeros((draws, tails.size + 1), dtype=np.int64)
        if policy.has_moves or policy.has_bottom:
            half = epsilon / 2
            drawn = rng.laplace(half.denominator, half.numerator, size=noise.size)
            noise = drawn.reshape(noise.shape)
        below = tails + noise[:, 1:] <= self.bar + noise[:, :1]
        first = np.where(below.any(axis=1), below.argmax(axis=1), tails.size - 1)
        return +Counter(dict(enumerate(np.bincount(first).tolist())))
