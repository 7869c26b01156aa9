"""Which public histogram do the counts resemble: a private look before choosing.

    counts    4 0 9 9     sorted  0 4 9 9    steps between neighbours, sorted  0 4 9
    shape A   5 5 5 5             5 5 5 5                                      0 0 0
    cost      2 (5 + 1 + 4 + 4)         +                                 4 + 9 = 41

Sorted counts tell how records are spread over cells, sorted steps how rough they lie;
where they lie plays no part. Pieces: draws from ``kernels.cost_choice``.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.policies import Policy

from .base import ByCost

ROOM_BITS = 60
ONE_RECORD = 4
"""How far one record moves a cost: 2 for its cell, 1 for each step beside it."""


class NearestShape(ByCost):
    """Choose the public histogram that is nearest to the counts, wherever they lie.

    Parameters
    ----------
    shapes : (candidates, cells) int64
        Public counts, not negative.

    Notes
    -----
    Guarantee: epsilon-private choice of a shape under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: a cost moves by at most 4 when a record is added or removed, since
        sorting brings no two vectors further apart in L1 norm; by at most 8 when it
        moves.
    Error: none proved.
    Complexity: O(n log n) time for each shape, O(n) memory beside the shapes.
    Source: this project; proof in ``docs/proofs/recommendation.md``.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> choice = NearestShape(np.array([[10, 0, 0, 0], [3, 3, 2, 2]]))
    >>> choice.costs(np.array([3, 2, 3, 2]))
    array([39,  2])
    >>> choice.sensitivity(bf.policies.Full(bf.Domain(4)))
    8
    """

    name = "nearest_shape"

    def __init__(self, shapes: IntArray) -> None:
        if shapes.ndim != 2 or shapes.size == 0 or shapes.min() < 0:
            raise InputError(
                "shapes need one row of counts, 0 or more, for each candidate; "
                f"received shape {shapes.shape}"
            )
        self.shapes = np.ascontiguousarray(shapes, dtype=np.int64)

    @property
    def cap(self) -> int:
        """Where counts are cut, so that costs stay below 2^60; public."""
        return int(2**ROOM_BITS // (8 * self.shapes.shape[1]))

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves a cost, at most."""
        if policy.has_moves:
            return 2 * ONE_RECORD
        return ONE_RECORD if policy.has_bottom else 0

    def costs(self, counts: IntArray) -> IntArray:
        """Return how far the counts are from each shape: whole numbers."""
        if counts.size != self.shapes.shape[1]:
            raise InputError(
                f"the shapes have {self.shapes.shape[1]} cells; received {counts.size} "
                "counts"
            )
        heights, steps = self._features(counts)
        costs = np.empty(len(self.shapes), dtype=np.int64)
        for number, shape in enumerate(self.shapes):
            other_heights, other_steps = self._features(shape)
            costs[number] = 2 * np.abs(heights - other_heights).sum()
            costs[number] += np.abs(steps - other_steps).sum()
        return costs

    def _features(self, counts: IntArray) -> tuple[IntArray, IntArray]:
        """Return sorted counts, and sorted differences between neighbours."""
        cut = np.minimum(counts.reshape(-1), self.cap)
        return np.sort(cut), np.sort(np.abs(np.diff(cut)))
