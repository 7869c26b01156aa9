"""Single noisy cells, each under a prior that is learnt where its neighbours are alike.

One prior for a whole line says of every cell how often any cell is empty. Where empty
cells lie together, the neighbours of a cell say more: cells are put into classes by the
mean of what was measured around them, which leaves their own noise out, and each class
has its own weights of the prior of `posterior_mean`:

    noisy       0 1 -1 0 | 7 |  9 8 11         7 itself is not read for its class
    around        mean of the others within `half` cells, each cut at `MOST_AROUND`
    classes     empty stretches ... crowded stretches, as many cells in each

How far neighbours are looked at is chosen by evidence; where no distance has clearly
more of it than one prior for all, there are no classes. It reads noisy cells and the
public width of their noise, and costs no epsilon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray

from .posterior_mean import (
    CLASS_PRIOR_BUCKETS,
    FAR,
    LARGEST,
    _fit_weights,
    _likelihoods,
    _pooled_weights,
    _posterior_means,
    _posterior_medians,
    _prior_means,
    _thin_step,
    _told_apart,
)

# These were chosen on the seven given histograms and on five generated lines of 4,096
# cells, those of ``python -m experiments siblings``.
HALVES = (2, 8, 32)
"""How many cells on either side are looked at."""
CLASSES = 8
"""Classes that cells are put into by their neighbours."""
MOST_AROUND = 6.0
"""Widths at which a neighbour is cut, so that no spike decides for those around it."""
LEAST_GAIN = 30.0
"""Nats by which classes must be likelier: some of these are there by chance alone."""
FEWEST_CELLS = 512
"""A shorter line has one prior."""
MOST_CELLS = 1 << 18
"""So has a longer one, where classes took a third of a release more."""
SAMPLE = 1 << 13
"""Cells by which classes are learnt; of longer lines every n-th."""


class _CellPrior(NamedTuple):
    """The prior of each cell.

    Attributes
    ----------
    totals : ndarray of float64, shape (cells,)
        Noisy cells in widths.
    means : ndarray of float64
        Means of the exponentials.
    weights : ndarray of float64, shape (classes, means + 1)
        Weights of the atom and the exponentials in each class.
    classes : ndarray of int64, shape (cells,)
        The class of each cell.
    """

    totals: FloatArray
    means: FloatArray
    weights: FloatArray
    classes: IntArray


def _around(sums: FloatArray, half: int, places: IntArray) -> FloatArray:
    """Return the mean of the cells within `half` of some places, without their own."""
    size = sums.size - 1
    starts = np.maximum(places - half, 0)
    ends = np.minimum(places + half + 1, size)
    own = sums[places + 1] - sums[places]
    means: FloatArray = (sums[ends] - sums[starts] - own) / (ends - starts - 1)
    return means


def _learn(noisy: FloatArray, width: float) -> _CellPrior:
    """Return the prior of each cell, with classes where these are clearly likelier."""
    totals = noisy / width
    clipped = np.minimum(totals, LARGEST)
    means = _prior_means(float(clipped.max()))
    values, rows = np.unique(clipped[_thin_step(totals.size)], return_inverse=True)
    pooled = _pooled_weights(_likelihoods(values, np.ones(values.size), means)[rows])
    best = _CellPrior(totals, means, pooled[None, :], np.zeros(totals.size, np.int64))
    if not FEWEST_CELLS <= totals.size <= MOST_CELLS:
        return best
    step = -(-totals.size // SAMPLE)
    places = np.arange(0, totals.size, step + (step + 1) % 2)
    table = _likelihoods(clipped[places], np.ones(places.size), means)
    sums = np.append(0.0, np.cumsum(np.clip(totals, -MOST_AROUND, MOST_AROUND)))
    most = float(np.log(table @ pooled).sum()) + LEAST_GAIN
    chosen = None
    for half in HALVES:
        near = _around(sums, half, places)
        borders = np.quantile(near, np.arange(1, CLASSES) / CLASSES)
        classes = np.searchsorted(borders, near)
        weights = np.array(
            [
                _fit_weights(
                    table[classes == each], pooled, CLASS_PRIOR_BUCKETS * pooled
                )
                for each in range(CLASSES)
            ]
        )
        likely = float(np.log(np.einsum("ij,ij->i", table, weights[classes])).sum())
        if likely > most:
            most, chosen = likely, (half, borders, weights)
    if chosen is None:
        return best
    half, borders, weights = chosen
    near = _around(sums, half, np.arange(totals.size))
    classes = np.searchsorted(borders, near)
    return best._replace(weights=weights, classes=classes)


def median_cells(noisy: AnyArray, width: float) -> FloatArray:
    """Return the posterior median of every cell, all measured with the same noise.

    A median lowers the mean absolute error where most cells are empty: they are 0,
    where posterior means are a little above it, all of them.

    Parameters
    ----------
    noisy : ndarray of float64, shape (cells,)
        Measured counts along a line, finite.
    width : float
        Scale of the Laplace noise in each, above 0.

    Returns
    -------
    ndarray of float64, shape (cells,)
        The medians, none negative; counts above 60 widths stay as they are.

    Examples
    --------
    >>> noisy = np.array([0.4, -1.2, 0.8, -0.3] * 20 + [25.0, 61.0])
    >>> median_cells(noisy, 1.0)[[0, 1, 2, 80, 81]].round(1).tolist()
    [0.0, 0.0, 0.0, 25.0, 61.0]
    """
    noisy = np.ascontiguousarray(noisy, dtype=np.float64)
    learnt = _learn(noisy, width)
    medians = noisy.copy()
    for label, prior in enumerate(learnt.weights):
        alike = np.flatnonzero((learnt.classes == label) & (learnt.totals <= FAR))
        values, places = _told_apart(noisy[alike], width)
        medians[alike] = _posterior_medians(values, learnt.means, prior)[places] * width
    return medians


def mean_cells(noisy: AnyArray, width: float) -> FloatArray:
    """Return the posterior mean of every cell, all measured with the same noise.

    Parameters
    ----------
    noisy : ndarray of float64, shape (cells,)
        Measured counts along a line, finite.
    width : float
        Scale of the Laplace noise in each, above 0.

    Returns
    -------
    ndarray of float64, shape (cells,)
        The means, none negative; counts above 60 widths stay as they are.

    Examples
    --------
    >>> noisy = np.array([0.4, -1.2, 0.8, -0.3] * 20 + [25.0, 61.0])
    >>> mean_cells(noisy, 1.0)[[0, 1, 2, 80, 81]].round(1).tolist()
    [0.1, 0.0, 0.1, 24.9, 61.0]
    """
    noisy = np.ascontiguousarray(noisy, dtype=np.float64)
    learnt = _learn(noisy, width)
    means = noisy.copy()
    near = np.flatnonzero(learnt.totals <= FAR)
    totals, classes = learnt.totals[near], learnt.classes[near]
    ratios = np.ones(near.size)
    posterior = _posterior_means(totals, ratios, learnt.means, learnt.weights, classes)
    means[near] = posterior * width
    return means
