"""Means in the population without a normal law: values lie between known bounds.

n records with values in a range R, drawn independently; their mean is off by more than

    sqrt(2 s^2 ln(2 / d) / n)  +  7 R ln(2 / d) / (3 (n - 1))

to one side with a chance of at most d, whatever the law of the values, s^2 their
variance in the sample (A. Maurer, M. Pontil: Empirical Bernstein bounds and
sample-variance penalization. COLT 2009). Neither the mean nor s^2 is known here but for
noise, which is counted by its law: Lemma PN12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.release.query_grid import SparseRows, without_zeros

from .designs import Simple
from .sampled_release import Sampled

DRAWN, NOISE, MOMENT = 0.6, 0.3, 0.05
"""Parts of what an end may miss with: the draw, the noise of the sum, and each of the
two moments that bound the variance."""


def means_by_bounds(
    rows: tuple[Any, Any], under: Any, limits: Any, release: Any, confidence: float
) -> FloatArray:
    """Return intervals of means that hold whatever the law of the values: Lemma PN12.

    Parameters
    ----------
    rows : tuple of two scipy sparse arrays, shape (groups, cells)
        The least and the largest value that a record of each cell may have.
    under : scipy sparse array, shape (groups, cells)
        1 in the cells of each group.
    limits : tuple of two ndarrays of float64, shape (groups,)
        The least and the largest value of a record of each group.
    release : HistogramRelease
        A release with a design.
    confidence : float
        Over the draw of the sample and the noise.

    Returns
    -------
    ndarray of float64, shape (groups, 2)
        The intervals.

    See Also
    --------
    drawn_independently : Where it holds.
    """
    source = Sampled(release, confidence)
    domain = release.domain
    drawn, _, _ = source.sizes(SparseRows(domain, under), source.miss)
    each = source.miss / 2.0
    least, most = (np.broadcast_to(end, drawn.shape).astype(float) for end in limits)
    number = np.maximum(drawn, 2.0)
    ends = []
    for side, (sign, row) in enumerate(zip((-1.0, 1.0), rows, strict=True)):
        sums = SparseRows(domain, without_zeros(row))
        answers, law = source.answers(sums), source.spread(sums)
        variance = _variance_from_above(source, row, number, each)
        variance = np.minimum(variance, (most - least) ** 2 / 4 * number / (number - 1))
        logarithm = np.log(2.0 / (DRAWN * each))
        off = np.sqrt(2.0 * variance * logarithm / number)
        off += 7.0 * (most - least) * logarithm / (3.0 * (number - 1.0))
        # Tables of half-widths are of both sides of a symmetric law.
        noise = noise_half_widths(law, 2.0 * NOISE * each)
        end = np.clip((answers + sign * noise) / number + sign * off, least, most)
        ends.append(np.where(drawn < 2.0, limits[side], end))
    return np.stack(ends, axis=-1)


def drawn_independently(release: Any, under: Any) -> bool:
    """Return whether records were drawn independently, and their number is public.

    Parameters
    ----------
    release : HistogramRelease
        A release with a design.
    under : scipy sparse array, shape (groups, cells)
        1 in the cells of each group.

    Returns
    -------
    bool
        Whether Lemma PN12 bounds means of these groups. Others are bounded by PN16.
    """
    source = Sampled(release, 0.95)
    design = source.design
    if not isinstance(design, Simple) or not (
        design.replacement or design.population is None
    ):
        return False
    _, _, public = source.sizes(SparseRows(release.domain, under), source.miss)
    return public


def _variance_from_above(
    source: Sampled, row: Any, number: FloatArray, miss: float
) -> FloatArray:
    """Return the variance in the sample from above, but for two moments' misses."""
    domain = source.release.domain
    sums = SparseRows(domain, without_zeros(row))
    squares = SparseRows(domain, without_zeros(row.multiply(row)))
    most = source.answers(squares)
    most = most + noise_half_widths(source.spread(squares), 2.0 * MOMENT * miss)
    near = np.abs(source.answers(sums))
    near = near - noise_half_widths(source.spread(sums), MOMENT * miss)
    squared = np.maximum(near, 0.0) ** 2 / number
    return np.asarray(np.maximum(most - squared, 0.0) / (number - 1.0))
