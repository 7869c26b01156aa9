"""Measure every cell by itself, all with the same noise.

    rows   x_0  x_1  ...  x_{k-1}  total

The total is published exactly where the policy makes it public, and the cells are then
shifted evenly to add up to it; otherwise it is not measured.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..errors import IntervalError
from ..noise import WEIGHT_BITS, Scales, Spread
from ..policies import Policy
from ..workloads import Form, Implicit
from ..workloads.base import RowMoments, row_moments
from .base import LinearStrategy


class Cells(LinearStrategy):
    """Independent noise of one scale on each of `cells` cells."""

    kind = "cells"

    def __init__(self, cells: int) -> None:
        self.cells = cells

    def rows(self, counts: IntArray) -> IntArray:
        """Return the cells, then their total."""
        return np.append(counts, counts.sum())

    def weights(self) -> IntArray:
        """Give every cell the same weight, the total none."""
        weights = np.full(self.cells + 1, 2**WEIGHT_BITS, dtype=np.int64)
        weights[-1] = 0
        return weights

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the total, where it is public, and a cell that nothing can leave."""
        exact = np.zeros(self.cells + 1, dtype=bool)
        exact[-1] = not policy.has_bottom
        exact[:-1] = not (policy.has_bottom or policy.has_moves)
        return exact

    def worst_edge(self, weights: IntArray, policy: Policy) -> int:
        """Return the heaviest cell with the total, or the two heaviest cells.

        A record that moves changes two cells and keeps the total. Over all pairs the
        bound is exact; a sparser policy may reach less only if weights differ.
        """
        cells, total = weights[:-1], int(weights[-1])
        worst = int(cells.max()) + total if policy.has_bottom else 0
        if policy.has_moves:
            worst = max(worst, int(np.partition(cells, -2)[-2:].sum()))
        return worst

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the noisy cells, shifted to the exact total where it is known."""
        cells = noisy[:-1].astype(np.float64)
        if scales.exact[-1] and not scales.exact[:-1].all():
            cells += (int(noisy[-1]) - int(noisy[:-1].sum())) / self.cells
        return cells

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the law of each query's noise in closed form."""
        if isinstance(form, Implicit):
            raise IntervalError("list the queries first: use explicit_form")
        moments = row_moments(form, self.cells)
        return self._spread(moments, scales)

    def _spread(self, moments: RowMoments, scales: Scales) -> Spread:
        width = float(scales.widths[0])
        variance = float(scales.variances[0])
        if scales.exact[-1]:
            # Coefficients less their mean: the exact total removes the common part.
            mean = moments.total / self.cells
            squares = np.maximum(moments.squares - mean * moments.total, 0.0)
            largest = np.maximum(moments.largest - mean, mean - moments.least)
        else:
            squares = moments.squares
            largest = np.maximum(moments.largest, -moments.least)
        return Spread(variance * squares, width**2 * squares, width * largest)

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return the variance summed over all queries."""
        if not isinstance(form, Implicit):
            return float(self.spread(form, scales).variance.sum())
        from ..kernels.tree_moments import tree_total_variance

        # Cells below one root: a tree whose root is exact or not measured.
        if self.cells == 1:
            variances = scales.variances[:1]
        else:
            variances = np.append(scales.variances[:-1], scales.variances[-1])
        return float(
            tree_total_variance(
                variances, self.cells, max(self.cells, 2), form.kind, form.edges
            )
        )

    def pack(self) -> dict[str, Any]:
        """Return the number of cells."""
        return {"cells": self.cells}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        return cls(int(data["cells"]))
