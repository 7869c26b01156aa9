"""How far published tables lie from the true ones: two numbers, measured with noise.

    true table      9  1  1  9          distance   |9-5| + |1-5| + |1-5| + |9-5| = 16
    published       5  5  5  5          records in a wrong cell: half of it, 8

Of the distances of all tables the largest and the mean are measured, each with one draw
of noise: whatever the number of tables, a record changes each of both by little. Proof:
Lemma DC7 of ``docs/proofs/chosen_tables.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.tables.merged_tables import CountedTables
from blowfish_fast.measure.strategies.error_statistics import ErrorStatistic
from blowfish_fast.policies import Policy

from .residuals import AxisSet

FINE = 2**10
"""Distances are whole numbers of 1/1024 record."""

MOST_IN_CELL = 2**50
"""Records of one cell that are told apart; more count as so many."""

FURTHEST = 2**62
"""Distances end here, in 1/1024 record: 2^52 records."""


class ModelDistance(ErrorStatistic):
    """The largest and the mean distance of published tables from the true ones.

    Parameters
    ----------
    counted : CountedTables
        Where true tables stand in the counts.
    tables : sequence of tuples of int
        The attributes of each table that is compared; at least one.
    estimate : callable
        Takes the attributes of a table and returns what was published of it, in the
        shape of its single cells. It is public, and the same at every call.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> counted = CountedTables((2, 2), [(0, 1)])
    >>> even = ModelDistance(counted, [(0, 1), (0,)], lambda axes: np.full(4, 5.0)
    ...     .reshape(2, 2).sum(axis=tuple({0, 1} - {*axes})))
    >>> (even.rows(np.array([9, 1, 1, 9])) / FINE).tolist()
    [16.0, 8.0]
    >>> even.move(bf.policies.AddRemove(bf.Domain((2, 2)))) // FINE
    2
    >>> even.move(bf.policies.Full(bf.Domain((2, 2)))) // FINE
    4
    """

    kind = "model_distance"
    parts = FINE

    def __init__(
        self,
        counted: CountedTables,
        tables: Sequence[AxisSet],
        estimate: Callable[[AxisSet], FloatArray],
    ) -> None:
        self.counted = counted
        self.tables = tuple(tables)
        self.estimate = estimate

    @property
    def size(self) -> int:
        """Two rows: the largest distance, and the mean."""
        return 2

    def rows(self, counts: IntArray) -> IntArray:
        """Return the largest distance and the mean, rounded down, in 1/1024 record."""
        every = [
            min(distance(self.counted.table(counts, axes), self.whole(axes)), FURTHEST)
            for axes in self.tables
        ]
        return np.array([max(every), sum(every) // len(every)], dtype=np.int64)

    def whole(self, axes: AxisSet) -> IntArray:
        """Return what was published of a table, in whole 1/1024 records."""
        most = float(FINE * MOST_IN_CELL)
        rounded = np.rint(np.clip(FINE * self.estimate(axes), 0.0, most))
        return rounded.astype(np.int64)

    def rounding(self) -> FloatArray:
        """Return how far whole numbers are off what was published, in records; public.

        Of each table the distance between both, as the distances that are measured.
        """
        away = (self.whole(axes) / FINE - self.estimate(axes) for axes in self.tables)
        return np.array([float(np.abs(distances).sum()) for distances in away])

    def move(self, policy: Policy) -> int:
        """Return how far one edge moves both rows together: Lemma DC7."""
        cells = 2 if policy.has_moves else int(policy.has_bottom)
        return 2 * cells * FINE


def distance(true: IntArray, published: IntArray) -> int:
    """Return the sum of absolute differences in 1/1024 record, without overflow.

    Parameters
    ----------
    true : int64
        Counts of a table.
    published : int64 of the same shape
        What was published of it, in 1/1024 record, from 0 to 2^60.

    Returns
    -------
    int
        The sum, exact also where it exceeds 64 bits.
    """
    away = np.abs(FINE * np.minimum(true, MOST_IN_CELL) - published)
    low = np.int64(2**32 - 1)
    return (int((away >> 32).sum()) << 32) + int((away & low).sum())
