"""Measure every cell by itself, all with the same noise.

The total of a connected part is published exactly where the policy makes it public, and
its cells are then shifted evenly to add up to it; otherwise it is not measured.

    counts    4  0  2     total 6, public
    noisy     5 -1  5     they add up to 9, which is 3 too many
    estimate  4 -2  4     each cell is shifted by 3 / 3

The shift takes the mean of the noise away, so each of n cells has (n - 1) / n of its
variance.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_parts
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    one_draw,
)
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread, noise_mean_size
from blowfish_fast.measure.tails import equal_sum_half_widths
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import (
    RowMoments,
    covers_whole,
    form_matrix,
    row_moments,
)

MOST_COEFFICIENTS = 2**26
"""Cells under all queries that are followed through the parts of a policy."""


class PartTotals(LinearStrategy):
    """Rows of one scale, then the totals of connected parts: exact or not measured.

    Parameters
    ----------
    measured : int
        Number of rows before the totals.
    cells : int
        Number of cells.
    parts : ndarray of int64 or None, shape (cells,)
        The connected part of the policy that each cell belongs to, numbered from 0;
        None when there is just one.
    """

    def __init__(self, measured: int, cells: int, parts: IntArray | None) -> None:
        self.measured_rows, self.cells, self.parts = measured, cells, parts
        self.part_sizes = np.array([cells]) if parts is None else np.bincount(parts)

    def _with_totals(self, rows: IntArray, counts: IntArray) -> IntArray:
        if self.parts is None:
            return np.append(rows, counts.sum())
        totals = np.zeros(self.part_sizes.size, dtype=np.int64)
        np.add.at(totals, self.parts, counts)
        return np.concatenate([rows, totals])

    def weights(self) -> IntArray:
        """Give every row the same weight, the totals none."""
        weights = np.zeros(self.measured_rows + self.part_sizes.size, dtype=np.int64)
        weights[: self.measured_rows] = 2**WEIGHT_BITS
        return weights


class Cells(PartTotals):
    """Independent noise of one scale on each cell.

    Parameters
    ----------
    cells : int
        Number of cells.
    parts : ndarray of int64, shape (cells,), optional
        The connected part of each cell; None when there is just one.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> Cells(3).rows(np.array([4, 0, 2]))
    array([4, 0, 2, 6])
    >>> parts = bf.policies.Blocks(bf.Domain(4), [0, 0, 1, 1])
    >>> Cells.under(parts).rows(np.array([4, 0, 2, 5]))
    array([4, 0, 2, 5, 4, 7])
    """

    kind = "cells"

    def __init__(self, cells: int, parts: IntArray | None = None) -> None:
        super().__init__(cells, cells, parts)

    @classmethod
    def under(cls, policy: Policy) -> Self:
        """Return the strategy with the connected parts of `policy`."""
        components = policy.components()
        labels = components.labels if components.count > 1 else None
        return cls(policy.domain.size, labels)

    def rows(self, counts: IntArray) -> IntArray:
        """Return the cells, then the total of each part."""
        return self._with_totals(counts, counts)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark public totals, and cells that no edge touches."""
        public = self._public_parts(policy)
        alone = public & (self.part_sizes == 1)
        if not (policy.has_bottom or policy.has_moves):
            alone[:] = True
        cells = (
            np.full(self.cells, alone[0]) if self.parts is None else alone[self.parts]
        )
        return np.concatenate([cells, public])

    def _public_parts(self, policy: Policy) -> BoolArray:
        """Mark parts whose total no edge of the policy at hand changes."""
        components = policy.components()
        if self.parts is None:
            return np.array([not components.private.any()])
        if self.parts is components.labels:
            return ~components.private
        if components.labels is None:
            whole = (self.parts == self.parts[0]).all() and not components.private[0]
            return np.full(self.part_sizes.size, bool(whole))
        # A connected part that lies in several parts moves records between them.
        owner = np.zeros(components.count, dtype=np.int64)
        owner[components.labels] = self.parts
        split = owner[components.labels] != self.parts
        cut = np.zeros(components.count, dtype=np.bool_)
        cut[components.labels[split]] = True
        moved = (cut | components.private)[components.labels]
        public = np.ones(self.part_sizes.size, dtype=np.bool_)
        public[self.parts[moved]] = False
        return public

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the heaviest cell with its total, or the two heaviest: Lemma LA4.

        A sparser policy than all pairs may reach less, and only if weights differ.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each cell, and of the totals of connected parts behind them.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        cells, totals = weights[: self.cells], weights[self.cells :]
        worst = int(cells.max()) + int(totals.max()) if policy.has_bottom else 0
        if policy.has_moves:
            heaviest = int(cells.argmax())
            others = (cells[:heaviest], cells[heaviest + 1 :])
            second = max(int(part.max()) for part in others if part.size)
            worst = max(worst, int(cells[heaviest]) + second)
        return worst

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the noisy cells, shifted to the totals that are known. O(cells).

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured cells, and the totals of connected parts behind them.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate of each cell.
        """
        cells = noisy[: self.cells].astype(np.float64)
        public_totals = scales.exact[self.cells :]
        if not public_totals.any():
            return cells
        if self.parts is None:
            cells += (noisy[self.cells :] - noisy[: self.cells].sum()) / self.cells
            return cells
        sums = np.zeros(self.part_sizes.size, dtype=np.int64)
        np.add.at(sums, self.parts, noisy[: self.cells])
        gap = np.where(public_totals, noisy[self.cells :] - sums, 0) / self.part_sizes
        cells += gap[self.parts]
        return cells

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the law in closed form; an exact total removes a mean."""
        return self._spread_of(form, law, row_moments(form, self.cells))

    def _spread_of(
        self, form: Fractions | Pieces, law: StrategyNoise, moments: RowMoments
    ) -> Spread:
        width, variance, _ = law.tables
        if width == 0.0:
            none = np.zeros(moments.total.size)
            return Spread.of_one_scale(none, none, 0.0, 0.0)
        squares, largest = moments.squares, np.maximum(moments.largest, -moments.least)
        public_totals = law.scales.exact[self.cells :]
        if self.parts is None and public_totals[0]:
            mean = moments.total / self.cells
            squares = np.maximum(squares - mean * moments.total, 0.0)
            largest = np.maximum(moments.largest - mean, mean - moments.least)
        elif self.parts is not None and public_totals.any():
            removed, largest = self._after_totals(form, public_totals)
            silent = removed >= squares * (1 - 1e-12)
            squares = np.where(silent, 0.0, squares - removed)
            # No coefficient exceeds the root of all squares, but for rounding.
            largest = np.where(silent, 0.0, np.minimum(largest, np.sqrt(squares)))
        return Spread.of_one_scale(squares, largest, width, variance)

    def noise_tables(self, scales: Scales) -> tuple[float, float, bool]:
        """Return scale and variance of a cell, and whether the cells stand alone."""
        rates, unit, exact, power = scales
        cells = Scales(rates[: self.cells], unit, exact[: self.cells], power)
        return *one_draw(cells), bool(cells.measured.any() and not exact.any())

    def _half_widths(self, form: Form, law: StrategyNoise, miss: float) -> FloatArray:
        """Use the exact law of sums of cells where no total is known."""
        if isinstance(form, Implicit):
            return super()._half_widths(form, law, miss)
        width, variance, alone = law.tables
        power = law.scales.power
        if alone and isinstance(form, Fractions) and covers_whole(form):
            terms = form.last - form.first + 1
            steps = terms.astype(np.float64)
            spread = Spread.of_one_scale(steps, form.last_fraction, width, variance)
            exact = equal_sum_half_widths(width, terms, miss, power)
            return np.minimum(law.bound(spread, miss), exact)
        moments = row_moments(form, self.cells)
        bound = law.bound(self._spread_of(form, law, moments), miss)
        if not alone:
            return bound
        plain = (moments.squares == moments.total) & (moments.least >= 0)
        plain &= moments.largest <= 1
        terms = np.where(plain, moments.total, 0.0).astype(np.int64)
        exact = equal_sum_half_widths(width, terms, miss, power)
        return np.where(plain, np.minimum(bound, exact), bound)

    def _after_totals(
        self, form: Fractions | Pieces, public_totals: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what exact totals explain of queries, and the most that they leave.

        A total that is known takes the mean of its part off every coefficient:

            row      3  1  0 | 5  5       parts of 3 and 2 cells
            mean     4/3     | 5
            left     5/3 -1/3 -4/3 | 0 0  explained 16/3 + 50, largest left 5/3
        """
        from scipy import sparse

        assert self.parts is not None
        queries = form_matrix(form, self.cells, most=MOST_COEFFICIENTS)
        if queries is None:
            raise SizeError(
                "these queries cover more than 2^26 cells in all, too many to follow "
                "through the parts of this policy; ask fewer at a time"
            )
        listed = sparse.csr_array(queries, copy=True)
        listed.sum_duplicates()
        rows, many = listed.shape[0], self.part_sizes.size
        each = np.repeat(np.arange(rows, dtype=np.int64), np.diff(listed.indptr))
        # The parts that each query touches, one after another.
        touched, back = np.unique(
            each * many + self.parts[listed.indices], return_inverse=True
        )
        row, part = touched // many, touched % many
        sizes = self.part_sizes[part]
        sums = np.bincount(back, weights=listed.data, minlength=touched.size)
        means = np.where(public_totals[part], sums / sizes, 0.0)
        each_part: FloatArray = means**2 * sizes
        explained = np.bincount(row, weights=each_part, minlength=rows)
        largest = np.zeros(rows)
        np.maximum.at(largest, each, np.abs(listed.data - means[back]))
        # Cells that a query leaves out stand at 0 beside the mean of their part.
        partly = np.bincount(back, minlength=touched.size) < sizes
        np.maximum.at(largest, row[partly], np.abs(means[partly]))
        return explained.astype(np.float64), largest

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        if self.parts is not None:
            return self._total_over_parts(form, law)
        scales = law.scales
        # Cells below one root: a tree whose root is exact or not measured.
        variances = scales.variances[:1] if self.cells == 1 else scales.variances
        tree = kernels.regular_tree(self.cells, max(self.cells, 2))
        return kernels.tree_total_variance(variances, tree, form.kind, form.edges)

    def _total_over_parts(self, form: Implicit, law: StrategyNoise) -> float:
        """Sum over single cells or everything; other kinds are listed."""
        if form.kind not in ("identity", "total"):
            return super()._implicit_variance(form, law)
        scales = law.scales
        public_totals = scales.exact[self.cells :]
        assert self.parts is not None
        cells = np.diff(form.edges)
        if form.kind == "total":
            # A part with a public total contributes nothing.
            free = ~public_totals[self.parts] & scales.measured[: self.cells]
            return float(scales.variances[: self.cells][free].sum())
        remaining_share = (
            1.0 - np.where(public_totals, 1.0 / self.part_sizes, 0.0)[self.parts]
        )
        variance = np.where(
            scales.measured[: self.cells], scales.variances[: self.cells], 0.0
        )
        return float((variance * remaining_share / cells).sum())

    def pack(self) -> dict[str, Any]:
        """Return the number of cells and their parts."""
        return {"cells": self.cells, "parts": self.parts}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        cells = int(data["cells"])
        return cls(cells, as_parts(data.get("parts"), cells))


def mean_noise(policy: Policy, budget: Budget | Fraction) -> float:
    """Return the mean absolute noise on a count: what one more bucket costs.

    Constraints of the policy make it larger. Gaussian noise counts as a normal
    variable.

    Parameters
    ----------
    policy : Policy
        What is secret.
    budget : Budget or Fraction
        What all counts together may cost.

    Returns
    -------
    float
        The mean.
    """
    each = Budget.of(budget).over(policy.group_size)
    width = float(Cells(2).scales(policy.unconstrained, each).widths[0])
    return noise_mean_size(width, each.power)


def bucket_counts(
    private: Handle, buckets: Buckets, *, budget: Budget | Fraction | None = None
) -> Measurement:
    """Measure the number of records in each bucket.

    Parameters
    ----------
    private : Handle
        Access to the counts.
    buckets : Buckets
        The buckets.
    budget : Budget or Fraction, optional
        The price; all that remains by default.

    Returns
    -------
    Measurement
        The noisy counts.
    """
    bucketed = private.coarsened(buckets)
    return bucketed.measure(
        Cells.under(bucketed.policy),
        budget=private.remaining if budget is None else budget,
    )
