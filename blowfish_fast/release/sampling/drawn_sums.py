"""Sums over a sample: how far the draw may carry them off what the population has.

A sum of y over the records, each counted with what it stands for, has the sum of y over
the population as mean. Its variance is a sum of squares over the sample, linear in the
counts, and read from above, since it carries noise. In strata squares are taken from
the mean of the stratum, which carries noise itself:

    stratum        y of its records       its mean a    squares from the mean
    north          3  4  4  5             4             1  0  0  1
    south          9  9  8                8.7           .1 .1 .4
    all as one     3  4  4  5  9  9  8    6             9  4  4  1  9  9  4

`variance` is for a normal law (Lemma PN15), `reach` for none (Lemma PN16).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray
from blowfish_fast.errors import IntervalError
from blowfish_fast.measure.noise import Spread
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.measure.total_error import variance_of_few
from blowfish_fast.release.query_grid import SparseRows, without_zeros

from .designs import Simple, Stratified
from .sampled_release import Sampled, as_sparse, largest_of
from .strata import Strata, strata_of

DRAWN, NOISE, MOMENT = 0.6, 0.3, 0.05
"""Parts of what an end may miss with: the draw, the noise of the sum, and twice that of
what bounds the variance."""


class DrawnSums:
    """Sums over a sample of records that were drawn one by one.

    Parameters
    ----------
    source : Sampled
        A release with a design.
    """

    def __init__(self, source: Sampled) -> None:
        self.source, self.domain = source, source.release.domain

    @property
    def weights(self) -> FloatArray:
        """What a record of each cell stands for."""
        return self.source.weights[0]

    def variance(self, rows: Any, miss: float) -> FloatArray:
        """Return variances of sums, from above but for half of `miss`: Lemma PN6.

        Parameters
        ----------
        rows : scipy sparse array, shape (sums, cells)
            The y of a record of each cell.
        miss : float
            0 for the estimate itself.

        Returns
        -------
        ndarray of float64, shape (sums,)
            The variances.
        """
        return self.variance_of_squares(rows.multiply(rows), miss)

    def variance_of_squares(self, squares: Any, miss: float) -> FloatArray:
        """Return the same from y^2, or from numbers that are nowhere below it: PN19.

        Parameters
        ----------
        squares : scipy sparse array, shape (sums, cells)
            The y^2 of a record of each cell, or more.
        miss : float
            0 for the estimate itself.

        Returns
        -------
        ndarray of float64, shape (sums,)
            The variances; not of strata, whose squares are taken from their means.
        """
        squared = as_sparse(squares.multiply(self.source.weights[1][None, :]))
        return self._answered(without_zeros(squared), miss)

    def variance_of_all(
        self, rows: Any, below: BoolArray, taken: float, miss: float
    ) -> FloatArray:
        """Return the same, and no less than records that were not drawn hide: PN20.

        Parameters
        ----------
        rows : scipy sparse array, shape (sums, cells)
            The y of a record of each cell.
        below : ndarray of bool, shape (sums,)
            Whether the sum lies below 0, where the population has 0: then records of
            the largest y are those that the sample may lack, and else of the least.
        taken : float
            What the variance that is seen misses with, as in `variance`.
        miss : float
            The miss of the interval in which it is used.

        Returns
        -------
        ndarray of float64, shape (sums,)
            The variances.
        """
        above, seen = (self.variance(rows, each) for each in (taken, 0.0))
        return variance_of_few(above, seen, self.farthest(rows, below), miss)

    def farthest(self, rows: Any, below: BoolArray) -> FloatArray:
        """Return how far the farthest record moves a sum, as its variance counts it.

        Parameters
        ----------
        rows : scipy sparse array, shape (sums, cells)
            The y of a record of each cell.
        below : ndarray of bool, shape (sums,)
            Whether records of the largest y are looked for, or of the least.

        Returns
        -------
        ndarray of float64, shape (sums,)
            The variance that such records add for each unit by which they move the
            sum: of a record that is counted w times and adds q y^2 to the variance,
            q y / w.
        """
        weight, part = self.source.weights
        each = as_sparse(rows.multiply((part / weight)[None, :]))
        turned = each.multiply(np.where(below, 1.0, -1.0)[:, None])
        return np.asarray(largest_of(turned))

    def half_widths(self, rows: Any) -> FloatArray:
        """Return half-widths that hold whatever the law of y: Lemma PN16.

        Parameters
        ----------
        rows : scipy sparse array, shape (sums, cells)
            The y of a record of each cell.

        Returns
        -------
        ndarray of float64, shape (sums,)
            How far a noisy sum lies off the population's, to both sides, but for what
            intervals may miss with.
        """
        each = self.source.miss / 2.0
        rows = as_sparse(rows)
        linear = without_zeros(rows.multiply(self.weights[None, :]))
        # Tables of half-widths are of both sides of a symmetric law.
        noise = noise_half_widths(self._spread(linear), 2.0 * NOISE * each)
        variance, largest = self._reach(rows, each)
        logarithm = np.log(1.0 / (DRAWN * each))
        third = largest * logarithm / 3.0
        off = third + np.sqrt(third**2 + 2.0 * variance * logarithm)
        return np.asarray(noise + off)

    def _reach(self, rows: Any, miss: float) -> tuple[FloatArray, FloatArray]:
        """Return the variance from above, and the most that a record adds."""
        squared = without_zeros(rows.multiply(rows).multiply(self._left))
        seen = self._answered(squared, 2.0 * MOMENT * miss)
        most = np.array([np.abs(row).max(initial=0.0) for row in _each(squared)])
        linear = as_sparse(rows.multiply(self.weights[None, :]))
        largest = np.array([np.abs(row).max(initial=0.0) for row in _each(linear)])
        return expected_from_above(seen, most, MOMENT * miss), largest

    @property
    def _left(self) -> FloatArray:
        """What a square adds to the variance of independent draws.

        Of n of N people without replacement the smaller of the n that were drawn and
        the N - n that were not is bounded: their sums are off by the same.
        """
        source = self.source
        design = source.design
        if not isinstance(design, Simple):
            return source.weights[1]
        left = 1.0
        if design.population is not None and not design.replacement:
            most = source.total[1] if source.total[2] else 0.0
            left = min(1.0, (design.population - most) / max(most, 1.0))
        return np.full(self.domain.size, left)

    def _answered(self, squared: Any, miss: float) -> FloatArray:
        """Return sums of squares, from above if there is a miss."""
        answers = self.source.answers(SparseRows(self.domain, squared))
        if miss > 0.0:
            answers = answers + noise_half_widths(self._spread(squared), miss)
        return np.maximum(answers, 0.0)

    def _spread(self, rows: Any) -> Spread:
        law: Spread = self.source.release._spread(SparseRows(self.domain, rows))
        return law


class Split(NamedTuple):
    """Rows apart by stratum: sums of y over the records of each.

    Attributes
    ----------
    means : ndarray of float64, shape (sums, strata)
        Noisy means of y in the sample.
    law : Spread
        The law of the noise in the sums, row by row.
    least : ndarray of float64, shape (sums, strata)
        The least y of each stratum.
    most : ndarray of float64, shape (sums, strata)
        The largest y of each stratum.
    """

    means: FloatArray
    law: Spread
    least: FloatArray
    most: FloatArray

    @property
    def ranges(self) -> FloatArray:
        """How far y reaches in each stratum."""
        return np.asarray(self.most - self.least)


class StratifiedSums(DrawnSums):
    """Sums over samples of strata, drawn without replacement in each: PN15, PN16.

    Parameters
    ----------
    source : Sampled
        A release with a stratified design.
    """

    def __init__(self, source: Sampled) -> None:
        super().__init__(source)
        self.strata: Strata = strata_of(source)

    @property
    def weights(self) -> FloatArray:
        """What a record of each cell stands for."""
        return self.strata.weights

    def variance(self, rows: Any, miss: float) -> FloatArray:
        """Return variances of sums, from above but for half of `miss`: Lemma PN15.

        Parameters
        ----------
        rows : scipy sparse array, shape (sums, cells)
            The y of a record of each cell.
        miss : float
            0 for the estimate itself.

        Returns
        -------
        ndarray of float64, shape (sums,)
            The variances.
        """
        rows, strata = as_sparse(rows), self.strata
        split = self._split(rows)
        # A single record says nothing of how far y varies: half its range at most.
        unknown = (split.ranges**2 / 4.0) @ (strata.people**2 * strata.unknown)
        off = self._noise_of_means(split, miss / 4.0) if miss > 0.0 else None
        seen = self._from_means(rows, split, strata.squares_count, off, miss / 2.0)
        return np.asarray(seen + unknown)

    def farthest(self, rows: Any, below: BoolArray) -> FloatArray:
        """Return how far the farthest record moves a sum, as its variance counts it.

        Parameters
        ----------
        rows : scipy sparse array, shape (sums, cells)
            The y of a record of each cell.
        below : ndarray of bool, shape (sums,)
            Whether records of the largest y are looked for, or of the least.

        Returns
        -------
        ndarray of float64, shape (sums,)
            The variance that such records add for each unit by which they move the
            sum; squares are taken from the mean of their stratum in the sample.
        """
        strata, split = self.strata, self._split(as_sparse(rows))
        means = np.clip(split.means, split.least, split.most)
        up, down = split.most - means, means - split.least
        off = np.where(below[:, None], up, down)
        each = strata.people / np.maximum(strata.drawn, 1.0)
        return np.asarray((off * (strata.squares_count / each)).max(axis=1))

    def _reach(self, rows: Any, miss: float) -> tuple[FloatArray, FloatArray]:
        """Return the variance from above, and the most that a record adds."""
        strata, split = self.strata, self._split(rows)
        each = strata.people / np.maximum(strata.drawn, 1.0)
        fewer = np.minimum(strata.drawn, strata.people - strata.drawn)
        squares = each**2 * fewer / np.maximum(strata.drawn, 1.0)
        # Means of the population lie off those of the sample by noise and the draw.
        share = MOMENT * miss / 3.0
        logarithm = np.log(2.0 * strata.people.size / share)
        drawn = split.ranges * np.sqrt(logarithm / (2.0 * np.maximum(strata.drawn, 1)))
        off = self._noise_of_means(split, share) + drawn
        seen = self._from_means(rows, split, squares, off, 2.0 * share)
        most = (squares * split.ranges**2).max(axis=1)
        above = expected_from_above(seen, most, MOMENT * miss)
        widest = (split.ranges**2 / 4.0) @ (squares * strata.drawn)
        asked = np.where(fewer > 0.0, each, 0.0)
        return np.minimum(above, widest), (asked * split.ranges).max(axis=1)

    def _split(self, rows: Any) -> Split:
        """Return sums by stratum; refuse where nobody was drawn of one of them."""
        from scipy import sparse

        strata, many = self.strata, self.strata.people.size
        listed = sparse.coo_array(without_zeros(rows))
        places = listed.coords[0] * many + strata.labels[listed.coords[1]]
        shape = (rows.shape[0] * many, rows.shape[1])
        apart = sparse.csr_array((listed.data, (places, listed.coords[1])), shape=shape)
        cells = np.bincount(strata.labels, minlength=many)
        inside = np.diff(apart.indptr).reshape(-1, many)
        if (inside[:, strata.drawn == 0.0] > 0).any():
            raise IntervalError(
                "nobody was drawn of a stratum, so nothing is known of it",
                way_out="Ask about the other strata",
            )
        # Outside of the group y is 0.
        ends = [np.where(inside < cells, 0.0, bound) for bound in (np.inf, -np.inf)]
        np.minimum.at(ends[0].reshape(-1), places, listed.data)
        np.maximum.at(ends[1].reshape(-1), places, listed.data)
        sums = self.source.answers(SparseRows(self.domain, apart))
        means = sums.reshape(-1, many) / np.maximum(strata.drawn, 1.0)
        return Split(means, self._spread(apart), ends[0], ends[1])

    def _noise_of_means(self, split: Split, miss: float) -> FloatArray:
        """Return how far noise carries the means of all strata, but for `miss`."""
        strata = self.strata
        half = noise_half_widths(split.law, miss / strata.people.size)
        return half.reshape(split.means.shape) / np.maximum(strata.drawn, 1.0)

    def _from_means(
        self,
        rows: Any,
        split: Split,
        squares: FloatArray,
        off: FloatArray | None,
        miss: float,
    ) -> FloatArray:
        """Return sums of squares from means that lie within `off` of the noisy ones.

        With a_h the noisy mean, the squares from a mean m_h are those from a_h plus
        n_h (m_h - a_h)^2, and their noise is that of the rows (y - m_h)^2, whose
        moments are at most those of (y - a_h)^2 and of 2 (a_h - m_h) y together.
        """
        from scipy import sparse

        strata, means = self.strata, split.means
        listed = rows.tocoo()
        row, cell = listed.coords
        label = strata.labels[cell]
        centred = listed.data**2 - 2.0 * means[row, label] * listed.data
        # The square of the mean counts every record of a stratum: these are public.
        counted = (squares[label] * centred, (row, cell))
        asked = without_zeros(sparse.csr_array(counted, shape=rows.shape))
        public = (squares * strata.drawn) * means**2
        seen = self.source.answers(SparseRows(self.domain, asked)) + public.sum(axis=1)
        if off is None:
            return np.asarray(np.maximum(seen, 0.0))
        seen = seen + off**2 @ (squares * strata.drawn)
        law = _together(self._spread(asked), split.law, 2.0 * squares * off)
        return np.asarray(np.maximum(seen + noise_half_widths(law, miss), 0.0))


def sums_of(source: Sampled) -> DrawnSums:
    """Return the sums of a release with a design.

    Parameters
    ----------
    source : Sampled
        A release with a design.

    Returns
    -------
    DrawnSums
        Of strata those of strata.
    """
    if isinstance(source.design, Stratified):
        return StratifiedSums(source)
    return DrawnSums(source)


def expected_from_above(seen: FloatArray, most: FloatArray, miss: float) -> FloatArray:
    """Return what is expected of a sum of numbers from 0 to `most`: Lemma PN16.

    Parameters
    ----------
    seen : ndarray of float64, shape (sums,)
        The sums in the sample, or what they are at most.
    most : ndarray of float64, shape (sums,)
        The most that a record adds.
    miss : float
        How often more may be expected.

    Returns
    -------
    ndarray of float64, shape (sums,)
        At most what is expected of each sum.
    """
    half = most * np.log(1.0 / miss) / 2.0
    return np.asarray((np.sqrt(seen + half) + np.sqrt(half)) ** 2)


def _together(law: Spread, parts: Spread, reach: FloatArray) -> Spread:
    """Return moments of a row plus parts of others, each at most `reach` of it."""

    def added(whole: FloatArray, each: FloatArray) -> FloatArray:
        return np.asarray(whole + (reach * each.reshape(reach.shape)).sum(axis=1))

    variance, square, steps = (
        added(np.sqrt(whole), np.sqrt(each)) ** 2
        for whole, each in (
            (law.variance, parts.variance),
            (law.square, parts.square),
            (law.steps, parts.steps),
        )
    )
    largest = added(law.largest, parts.largest)
    return law._replace(
        variance=variance,
        square=square,
        largest=largest,
        steps=steps,
        width=np.full(square.size, np.nan),
    )


def _each(rows: Any) -> Any:
    """Yield the entries of each row."""
    return np.split(rows.data, rows.indptr[1:-1])
