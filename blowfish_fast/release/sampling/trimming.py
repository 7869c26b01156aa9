"""Weights that are trimmed where an interval begins: Lemma PN11.

A few records of a large weight carry most of the noise, and most of the sampling error,
of a number of people. With weights cut at c the answer is too low on average, never too
high, so its lower end stays right; what is left away is counted at the upper end:

    weights as they are      low |------------- T -------------| high
    cut at c                        low |-- T_c --|
    together                        low |-------- T -----------| high
    and a public frame              low |-- T_c --|--| high   at most so many people
                                                               have weights above c
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.measure.total_error import sampling_half_widths, variance_of_few
from blowfish_fast.release.grants import from_zero
from blowfish_fast.release.query_grid import SparseRows, without_zeros

from .sampled_release import SIDE_SHARE, Sampled, steps_of


def trimmed_counts(source: Sampled, rows: Any) -> FloatArray:
    """Return intervals of numbers of people with weights cut where that was stated.

    Parameters
    ----------
    source : Sampled
        A release with a weighted design that states cuts.
    rows : sparse array, shape (queries, cells)
        Counts of whole cells.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        The intervals, at least 0.
    """
    design = source.design
    weight, _ = source.weights
    # Each end may miss with half, and the ends that are tried share it.
    each = source.miss / 2.0 / len(design.trimmed)
    framed = design.people is not None
    lows, highs = [], []
    for cut in design.trimmed:
        centre, half = _one_sided(source, rows, np.minimum(weight, cut), each)
        lows.append(centre - half)
        if framed:
            highs.append(centre + half + _left_away(source, rows, cut))
    if not framed:
        centre, half = _one_sided(source, rows, weight, source.miss / 2.0)
        highs.append(centre + half)
    else:
        highs.append(_left_away(source, rows, 0.0))
    high = np.min(highs, axis=0)
    low = np.minimum(np.max(lows, axis=0), high)
    return from_zero(np.stack([low, high], axis=-1))


def _one_sided(
    source: Sampled, rows: Any, counted: FloatArray, miss: float
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of what records count, and how far off one side may be.

    Parameters
    ----------
    source : Sampled
        The release.
    rows : sparse array, shape (queries, cells)
        Counts of cells.
    counted : ndarray of float64, shape (cells,)
        What a record of each cell counts, at most its weight.
    miss : float
        What a side may miss with, the variance from above among it.

    Returns
    -------
    centre : ndarray of float64, shape (queries,)
        The noisy sums.
    half : ndarray of float64, shape (queries,)
        Half-widths.
    """
    domain, (weight, _) = source.release.domain, source.weights
    varied = counted**2 * (1.0 - 1.0 / weight)
    asked = SparseRows(domain, without_zeros(rows.multiply(counted[None, :])))
    squared = SparseRows(domain, without_zeros(rows.multiply(varied[None, :])))
    taken = SIDE_SHARE * miss
    # Tables of half-widths are of both sides of a symmetric law.
    above = noise_half_widths(source.spread(squared), 2.0 * taken)
    seen, steps = source.answers(squared), steps_of(asked.matrix)
    # People of the weight 1 are all drawn, and hide nobody.
    hiding = steps_of(asked.matrix.multiply((varied > 0.0)[None, :]))
    variance = variance_of_few(seen + above, seen, hiding, 2.0 * miss)
    half = sampling_half_widths(
        source.spread(asked), variance, 2.0 * (miss - taken), steps
    )
    return source.answers(asked), half


def _left_away(source: Sampled, rows: Any, cut: float) -> FloatArray:
    """Return how many people a cut leaves away, at most, by the public frame."""
    design, numbers = source.design, source.classes.numbers
    weights = np.array(design.values)
    away = np.maximum(1.0 - cut / weights, 0.0) * np.array(design.people, float)
    lost = np.zeros(rows.shape[0])
    for at in np.flatnonzero(away):
        touched = np.asarray(rows @ (numbers == at).astype(np.float64)).reshape(-1)
        lost += np.where(touched > 0.0, away[at], 0.0)
    return lost
