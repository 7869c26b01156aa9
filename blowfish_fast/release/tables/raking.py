"""Non-negative tables by top-down raking (iterative proportional fitting).

    ()            total
    (a)  (b)      nearest without negatives, with the total
    (a, b)        the same, then raked to (a) and (b)
    (a, b, c)     the same, then raked to (a, b), (a, c) and (b, c)

From the top down, because clipping the largest tables first would add its bias up in
all their sums. Post-processing: it costs nothing, and it is biased.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.measure.strategies.tables.edge_prices import AxisSet
from blowfish_fast.release.synthetic import non_negative_shares

ROUNDS = 12
MIXED = 0.02
"""Part of the product of one-way tables mixed in, so that raking can reach any cell."""


class RakedTables:
    """Non-negative tables, each fitted when it is first asked for.

    From the `linear` estimates of tables by attributes, the `total` of records, and the
    `information` on residuals, infinite where a table is exact.

    Examples
    --------
    >>> noisy = {(0,): np.array([5.0, -1.0]), (1,): np.array([1.0, 3.0])}
    >>> noisy[0, 1] = np.array([[2.0, 3.0], [-1.0, 0.0]])
    >>> raked = RakedTables(noisy.get, 4.0, lambda table: 1.0)
    >>> raked.table((0,)).tolist(), raked.table((0, 1)).sum(axis=0).round(3).tolist()
    ([4.0, 0.0], [1.0, 3.0])
    """

    def __init__(
        self,
        linear: Callable[[AxisSet], FloatArray],
        total: float,
        information: Callable[[AxisSet], float],
    ) -> None:
        self.linear = linear
        self.total = total
        self.information = information
        self._fitted: dict[AxisSet, FloatArray] = {}

    def table(self, axes: AxisSet) -> FloatArray:
        """Return the fitted table of some attributes."""
        if axes not in self._fitted:
            self._fitted[axes] = self._fit(axes)
        return self._fitted[axes]

    def _fit(self, axes: AxisSet) -> FloatArray:
        linear = self.linear(axes)
        if math.isinf(self.information(axes)):
            return linear
        shares = non_negative_shares(linear.reshape(-1), self.total)
        shares = shares.reshape(linear.shape)
        if len(axes) == 1 or self.total <= 0:
            return shares
        mixed = (1.0 - MIXED) * shares + MIXED * self._product(axes)
        margins = [
            (tuple(at for at, axis in enumerate(axes) if axis not in part), part)
            for part in combinations(axes, len(axes) - 1)
        ]
        return _rake(mixed, [(dropped, self.table(part)) for dropped, part in margins])

    def _product(self, axes: AxisSet) -> FloatArray:
        """Return the table in which the attributes are independent."""
        product = np.array(self.total)
        for axis in axes:
            product = np.multiply.outer(product, self.table((axis,)) / self.total)
        return product


def _rake(
    values: FloatArray, margins: list[tuple[tuple[int, ...], FloatArray]]
) -> FloatArray:
    """Scale a table to each of its margins in turn, some rounds."""
    for _ in range(ROUNDS):
        for dropped, goal in margins:
            now = values.sum(axis=dropped, keepdims=True)
            shape = now.shape
            scale = np.divide(
                goal.reshape(shape), now, out=np.zeros(shape), where=now > 0
            )
            values = values * scale
    return values
