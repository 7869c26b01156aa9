"""Noisy sort: group cells by noisy counts; all that follows the noise is free.

    counts   3  90  4  88  7  0       noisy   4  89  1  92  8  0
    sorted   0  1  4  8 | 89  92      groups  {5, 2, 0, 4}, {1, 3}

Pieces: grouping from ``kernels.sorted_groups``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._typing import IntArray
from ..buckets import Buckets
from ..errors import InputError
from ..noise import WEIGHT_BITS, Scales, scales_within
from ..policies import Policy
from .base import Partition, record_distance

if TYPE_CHECKING:
    from ..randomness import Randomness


class NoisySort(Partition):
    """Group cells whose noisy counts are close.

    Parameters
    ----------
    largest : int, optional
        Most cells in a bucket; 2 gives pairs. None sets no limit.
    grouping : {"optimal", "even"}
        How the sorted noisy counts are cut: at least total deviation plus price, or
        into runs of `largest` cells each.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: of the cells, 1 when a record is added or removed and 2 when it moves;
        discrete Laplace noise of that scale over epsilon goes on every cell, and
        sorting and grouping read noisy counts only.
    Error: none proved; measured beside other partitions in ``docs``.
    Complexity: O(n log n) time, O(n) memory.
    Source: this project, after [1]_, section 5.2; proof in
        ``docs/proofs/noisy_sort.md``.

    References
    ----------
    .. [1] Data-dependent mechanisms under Blowfish privacy, by partitioning before the
       transformation of the policy graph.
    """

    name = "noisy_sort"

    def __init__(
        self,
        largest: int | None = None,
        *,
        grouping: Literal["optimal", "even"] = "optimal",
    ) -> None:
        if largest is not None and not (isinstance(largest, int) and largest >= 1):
            raise InputError(
                "largest must be a whole number of cells, 1 or more, or None; received "
                f"{largest!r}"
            )
        if grouping not in ("optimal", "even"):
            raise InputError(
                f'grouping must be "optimal" or "even"; received {grouping!r}'
            )
        if grouping == "even" and largest is None:
            raise InputError(
                'grouping="even" needs the number of cells of a bucket: NoisySort(2, '
                'grouping="even") makes pairs'
            )
        self.largest = largest
        self.grouping = grouping

    @property
    def default_share(self) -> Fraction:
        """A quarter of epsilon."""
        return Fraction(1, 4)

    def scales(self, policy: Policy, epsilon: Fraction) -> Scales:
        """Return the noise of every cell: the worst edge moves one cell, or two."""
        weights = np.full(policy.domain.size, 2**WEIGHT_BITS, dtype=np.int64)
        worst = record_distance(policy) * 2**WEIGHT_BITS
        exact = np.zeros(weights.size, dtype=bool)
        return scales_within(weights, worst, epsilon, exact)

    def select(
        self,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
        rng: Randomness,
    ) -> Buckets:
        """Return groups of cells with similar noisy counts."""
        cells = counts.size
        if cells == 1 or record_distance(policy) == 0:
            return Buckets.single_cells(cells)
        scales = self.scales(policy, epsilon)
        rate = int(scales.rates[0])
        if rate == 0:
            # An epsilon too small to tell anything buys nothing, and reads nothing.
            return self._grouped(np.zeros(cells, dtype=np.int64))
        return self._grouped(counts + rng.laplace(scales.unit, rate, size=cells))

    def _grouped(self, noisy: IntArray) -> Buckets:
        """Sort and cut; this reads noisy counts only."""
        from ..kernels.sorted_groups import group_sorted

        # No count is negative, so what lies below 0 is as good as 0.
        likely = np.maximum(noisy, 0)
        order = np.argsort(likely, kind="stable")
        if self.grouping == "even" and self.largest is not None:
            edges = np.append(np.arange(0, order.size, self.largest), order.size)
        else:
            edges = group_sorted(likely[order], self.bucket_cost, self.largest)
        # A bucket is named after the first of its cells.
        named = np.repeat(np.minimum.reduceat(order, edges[:-1]), np.diff(edges))
        first = np.empty_like(order)
        first[order] = named
        return Buckets.from_labels(np.unique(first, return_inverse=True)[1])
