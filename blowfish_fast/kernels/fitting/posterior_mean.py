"""Posterior means and medians of noisy totals, under a prior learnt from all of them.

The prior of a total is an atom at 0 mixed with exponentials whose means double, fitted
to all buckets together, then to each class of buckets whose size has the same binary
logarithm; single cells have classes by their neighbours (`neighbour_prior`). Against
Laplace noise an exponential prior leaves a posterior of two exponential pieces, so mass
and mean are closed forms (in units of the noise's width):

    below     on [0, total]     density  e^(-total) e^(rate s),  rate = 1 - 1/mean
    above     on [total, oo)    density  falling at rate 1 + 1/mean

It reads public numbers only and costs no epsilon.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import refuse_infinite, whole_numbers
from blowfish_fast.kernels._jit import kernel

STEPS = 60
# The share of a component never reaches 0: each owns a tenth of a bucket beforehand.
POOLED_PRIOR_BUCKETS = 0.1
# A class of this many buckets stands half-way between its own fit and the pooled one.
CLASS_PRIOR_BUCKETS = 20.0
# Beyond this many widths the prior has nothing left to say about a total.
FAR = 60.0
SAMPLE = 1 << 15
# Totals are clipped here, in median widths, while the prior is fitted: it bounds the
# number of components by 64 whatever the totals.
LARGEST = 2.0**60
# Means of the exponentials are powers of two of the median width, from this one on ...
LEAST_EXPONENT = -2
# ... at least up to this one, however small the totals are.
LEAST_TOP_EXPONENT = 4
# Halvings that find a median: of at most `FAR` + 1 widths, to 2^-42 of a width.
HALVINGS = 48


@kernel
def _mass_and_moment(total: float, mean: float) -> tuple[float, float]:
    """Return likelihood and first moment of an exponential prior, in O(1).

    The likelihood is relative to 1/2, the height of the noise, and for a negative total
    also to e^total, which every component shares: nothing can underflow there.
    """
    beyond = mean / (1.0 + mean)
    if total <= 0.0:
        mass = 1.0 / (1.0 + mean)
        return mass, mass * beyond
    above = math.exp(-total / mean) / (1.0 + mean)
    gap = abs(mean - 1.0)
    # Between 0 and the total the density is exponential with this many e-folds. It
    # falls from the end where it is largest, so that no exponent is ever positive.
    folds = total * (gap / mean)
    drop = math.expm1(-folds)
    height = math.exp(-total / max(mean, 1.0))
    below = height * (-drop / gap if gap > 0.0 else total)
    # Mean of that piece, as a share of the total, seen from its high end. The two
    # terms cancel when the piece is nearly flat: there, its Taylor series.
    if folds < 0.1:
        square = folds * folds
        tail = 1.0 / 720.0 - square * (1.0 / 30240.0 - square / 1209600.0)
        share = 0.5 - folds * (1.0 / 12.0 - square * tail)
    else:
        share = 1.0 / folds + (1.0 + 1.0 / drop)
    if mean > 1.0:
        share = 1.0 - share
    return below + above, below * (total * share) + above * (total + beyond)


@kernel
def _likelihoods(
    totals: FloatArray, ratios: FloatArray, means: FloatArray
) -> FloatArray:
    """Return the likelihood of every bucket (rows) under every component (columns).

    The atom comes first. Each row is right up to a factor of its own, which the weights
    do not see.
    """
    table = np.empty((totals.size, means.size + 1))
    for row in range(totals.size):
        line = table[row]
        line[0] = math.exp(-max(totals[row], 0.0))
        for component in range(means.size):
            mean = means[component] * ratios[row]
            line[component + 1] = _mass_and_moment(totals[row], mean)[0]
    return table


@kernel
def _fit_weights(
    table: FloatArray, start: FloatArray, beforehand: FloatArray
) -> FloatArray:
    """Return mixture weights after `STEPS` steps of expectation maximisation.

    `beforehand` are the buckets that each component owns before any is seen.
    """
    rows, components = table.shape
    weights = start.copy()
    shares = np.empty(components)
    for _ in range(STEPS):
        shares[:] = 0.0
        for row in range(rows):
            line = table[row]
            likelihood = 0.0
            for component in range(components):
                likelihood += weights[component] * line[component]
            scale = 1.0 / likelihood
            for component in range(components):
                shares[component] += line[component] * scale
        owned = 0.0
        for component in range(components):
            weights[component] = (
                weights[component] * shares[component] + beforehand[component]
            )
            owned += weights[component]
        for component in range(components):
            weights[component] /= owned
    return weights


@kernel
def _posterior_means(
    totals: FloatArray,
    ratios: FloatArray,
    means: FloatArray,
    weights: FloatArray,
    classes: IntArray,
) -> FloatArray:
    """Return each bucket's posterior mean in units of its width; none above `FAR`."""
    posterior = np.empty(totals.size)
    for row in range(totals.size):
        total = totals[row]
        prior = weights[classes[row]]
        mass = prior[0] * math.exp(-max(total, 0.0))
        moment = 0.0
        for component in range(means.size):
            part, first = _mass_and_moment(total, means[component] * ratios[row])
            mass += prior[component + 1] * part
            moment += prior[component + 1] * first
        posterior[row] = moment / mass
    return posterior


@kernel
def _mass_up_to(place: float, total: float, mean: float) -> float:
    """Return the part of the likelihood of an exponential prior on [0, place].

    As in `_mass_and_moment`, relative to e^total for a negative total, and in O(1).
    """
    falls = 1.0 + 1.0 / mean
    if total <= 0.0:
        return -math.expm1(-place * falls) / (1.0 + mean)
    inside = min(place, total)
    folds = inside * (1.0 - 1.0 / mean)
    # The mean of e^(rate s) on [0, inside]; totals are at most `FAR`, so it is finite.
    growth = math.expm1(folds) / folds if folds != 0.0 else 1.0
    mass = math.exp(-total) * (inside / mean) * growth
    if place > total:
        above = math.exp(-total / mean) / (1.0 + mean)
        mass -= above * math.expm1(-(place - total) * falls)
    return mass


@kernel
def _posterior_medians(
    totals: FloatArray, means: FloatArray, prior: FloatArray
) -> FloatArray:
    """Return the posterior median of each total in units of its width."""
    medians = np.zeros(totals.size)
    for row in range(totals.size):
        total = totals[row]
        atom = prior[0] * math.exp(-max(total, 0.0))
        half = atom
        for component in range(means.size):
            half += prior[component + 1] * _mass_and_moment(total, means[component])[0]
        half *= 0.5
        if atom >= half:
            continue
        # Above its total a posterior falls at least as fast as the noise, so that half
        # of what lies there lies within ln 2 of it.
        low, high = 0.0, max(total, 0.0) + 0.7
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            mass = atom
            for component in range(means.size):
                part = _mass_up_to(middle, total, means[component])
                mass += prior[component + 1] * part
            if mass < half:
                low = middle
            else:
                high = middle
        medians[row] = high
    return medians


def _thin_step(rows: int) -> slice:
    """Return every n-th of so many rows, n odd, so that at most `SAMPLE` remain.

    An even n would meet only some columns of a grid whose side is a power of two.
    """
    step = -(-rows // SAMPLE)
    return slice(None, None, step + (step + 1) % 2)


def _thin(rows: IntArray) -> IntArray:
    """Return at most `SAMPLE` of the rows, evenly spread."""
    return rows[_thin_step(rows.size)]


def _prior_means(largest: float) -> FloatArray:
    """Return the means of the exponentials, for totals up to so many widths."""
    top_exponent = max(LEAST_TOP_EXPONENT, math.ceil(math.log2(max(largest, 1.0))) + 1)
    return np.exp2(np.arange(LEAST_EXPONENT, top_exponent + 1, dtype=np.float64) + 0.5)


def _pooled_weights(table: FloatArray) -> FloatArray:
    """Return the mixture weights that fit all lines of a table of likelihoods."""
    components = table.shape[1]
    start = np.full(components, 1.0 / components)
    return _fit_weights(table, start, np.full(components, POOLED_PRIOR_BUCKETS))


def _class_weights(
    totals: FloatArray, ratios: FloatArray, means: FloatArray, classes: IntArray
) -> FloatArray:
    """Return the fitted mixture weights, one row per class numbered from 0."""
    sample = _thin(np.arange(totals.size))
    components = means.size + 1
    pooled = _pooled_weights(_likelihoods(totals[sample], ratios[sample], means))
    count = int(classes.max()) + 1
    if count == 1:
        return pooled[None, :]
    weights = np.empty((count, components))
    for label in range(count):
        sample = _thin(np.flatnonzero(classes == label))
        table = _likelihoods(totals[sample], ratios[sample], means)
        weights[label] = _fit_weights(table, pooled, CLASS_PRIOR_BUCKETS * pooled)
    return weights


def shrink_towards_zero(
    noisy: FloatArray, widths: FloatArray, sizes: IntArray
) -> FloatArray:
    """Return the posterior mean of every bucket's total, in O(buckets * components).

    Exact totals and those above 60 widths stay as they are; any other lies between 0
    and its positive part plus one width. It lowers the squared error of single totals
    when many are small; sums of many shrunken totals are biased.

    The prior of a class floor(log2 size) has an atom at 0 and exponentials of means b
    2^(j + 1/2), j = -2 .. ceil(log2(largest total / b)) + 1 and at least to 4, b the
    median of the positive widths. 60 steps of expectation maximisation fit it to all
    noisy buckets, 60 more to each class, where the pooled prior counts as 20 buckets.
    More than 2^15 buckets are fitted by every n-th of them, n by their number alone.

    Parameters
    ----------
    noisy : ndarray of float64, shape (buckets,)
        Measured totals, finite.
    widths : ndarray of float64, shape (buckets,)
        Scale of the Laplace noise in each; 0 where the total is exact.
    sizes : ndarray of int64, shape (buckets,)
        Cells in each bucket, at least 1.

    Returns
    -------
    ndarray of float64, shape (buckets,)
        The posterior means.

    Raises
    ------
    InputError
        If the three arrays differ in length.

    Examples
    --------
    >>> noisy = np.array([0.4, -1.2, 0.8, -0.3, 25.0, 61.0])
    >>> widths, sizes = np.ones(6), np.ones(6, dtype=np.int64)
    >>> shrink_towards_zero(noisy, widths, sizes).round(2).tolist()
    [0.24, 0.15, 0.35, 0.15, 24.94, 61.0]
    """
    noisy = np.ascontiguousarray(noisy, dtype=np.float64)
    widths = np.ascontiguousarray(widths, dtype=np.float64)
    sizes = np.ascontiguousarray(whole_numbers(sizes))
    if noisy.ndim != 1 or not noisy.shape == widths.shape == sizes.shape:
        raise InputError(
            "noisy, widths and sizes hold one number per bucket: got shapes "
            f"{noisy.shape}, {widths.shape} and {sizes.shape}; pass three "
            "one-dimensional arrays of one length"
        )
    refuse_infinite(noisy, "noisy totals")
    refuse_infinite(widths, "widths")
    if sizes.size and sizes.min() < 1:
        raise InputError(
            "every bucket has one cell at least", received=f"sizes from {sizes.min()}"
        )
    estimate = noisy.copy()
    measured = np.flatnonzero(widths > 0.0)
    if measured.size == 0:
        return estimate
    own = widths[measured]
    totals, ratios, means, classes, weights = _learnt(noisy, widths, sizes, measured)
    near = np.flatnonzero(totals <= FAR)
    posterior = _posterior_means(
        totals[near], ratios[near], means, weights, classes[near]
    )
    estimate[measured[near]] = posterior * own[near]
    return estimate


def _told_apart(noisy: FloatArray, width: float) -> tuple[FloatArray, IntArray]:
    """Return totals in widths, each once, and at which of them each cell stands.

    Totals below 0 are one with 0, since their posterior is the same, and totals above
    `FAR` one with each other: nobody reads theirs.

    Noise is whole, so that on long lines many cells have the same noisy count. Where
    there are more cells than counts up to `FAR`, they are counted in O(cells), else
    sorted.
    """
    beyond = math.floor(FAR * width) + 1.0
    cut = np.clip(noisy, 0.0, beyond)
    if beyond < noisy.size:
        whole = cut.astype(np.int64)
        if np.array_equal(whole, cut):
            occurs = np.bincount(whole) > 0
            values = np.flatnonzero(occurs).astype(np.float64)
            return values / width, (np.cumsum(occurs) - 1)[whole]
    values, places = np.unique(cut, return_inverse=True)
    return values / width, places


class _Learnt(NamedTuple):
    """Measured totals, and the prior that was fitted to them.

    Attributes
    ----------
    totals : ndarray of float64, shape (buckets,)
        Each total in units of the width of its own noise.
    ratios : ndarray of float64, shape (buckets,)
        The median width over each bucket's own: it brings a mean of the prior, which is
        in median widths, into the unit of the total.
    means : ndarray of float64, shape (components,)
        Means of the exponentials, in median widths.
    classes : ndarray of int64, shape (buckets,)
        Which row of `weights` is the prior of each bucket.
    weights : ndarray of float64, shape (classes, components + 1)
        Shares of the atom at 0 and of each exponential.
    """

    totals: FloatArray
    ratios: FloatArray
    means: FloatArray
    classes: IntArray
    weights: FloatArray


def _learnt(
    noisy: FloatArray, widths: FloatArray, sizes: IntArray, measured: IntArray
) -> _Learnt:
    """Fit the prior to the measured buckets, whose numbers are `measured`."""
    own = widths[measured]
    unit = float(np.median(own))
    totals, ratios = noisy[measured] / own, unit / own
    clipped = np.minimum(totals, LARGEST * ratios)
    means = _prior_means(float((clipped / ratios).max()))
    # The exponent of frexp is one above the binary logarithm: same classes.
    _, exponents = np.frexp(sizes[measured].astype(np.float64))
    _, classes = np.unique(exponents, return_inverse=True)
    weights = _class_weights(clipped, ratios, means, classes)
    return _Learnt(totals, ratios, means, classes, weights)


def evidence_of_shrinkage(
    noisy: FloatArray, widths: FloatArray, sizes: IntArray
) -> FloatArray:
    """Return how likely each total is under the prior of `shrink_towards_zero`.

    Parameters
    ----------
    noisy : ndarray of float64, shape (buckets,)
        Measured totals, finite and at most 2^60 widths.
    widths : ndarray of float64, shape (buckets,)
        Scale of the Laplace noise in each, above 0.
    sizes : ndarray of int64, shape (buckets,)
        Cells in each bucket, at least 1.

    Returns
    -------
    ndarray of float64, shape (buckets,)
        Logarithms of the densities.

    Examples
    --------
    >>> noisy, widths = np.array([0.4, -1.2, 0.8, 25.0]), np.ones(4)
    >>> evidence = evidence_of_shrinkage(noisy, widths, np.ones(4, dtype=np.int64))
    >>> bool(evidence[3] < evidence[0] < np.log(0.5))
    True
    """
    totals, ratios, means, classes, weights = _learnt(
        noisy, widths, sizes, np.arange(noisy.size)
    )
    table = _likelihoods(totals, ratios, means)
    # Rows are relative to the height of the noise, and to e^total below 0.
    likely: FloatArray = np.log(np.einsum("ij,ij->i", table, weights[classes]))
    return likely + np.minimum(totals, 0.0) - np.log(2.0 * widths)
