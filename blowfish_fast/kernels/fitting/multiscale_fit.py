"""Cells from noisy running totals, smoothed on every scale at once.

Running totals have noise of one size, so what a window of 2h cells says about its two
halves has the same noise on every scale:

    totals   s(i)      s(i + h)      s(i + 2h)        2 s(i + h) - s(i) - s(i + 2h)
             |---------|-------------|                = first half less second half
              first half  second half

For each scale a prior of these differences, a mixture of normal laws of many widths and
of exact zeros, is fitted to all windows; each difference is replaced by its posterior
mean. From the whole line, whose total is known, windows are halved down to cells; a
half of two larger windows gets the mean of what both say. Only noisy values are read,
so it costs no privacy.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import refuse_infinite
from blowfish_fast.kernels._jit import kernel

# Sizes of differences are counted in eight bins per doubling, from the exponent and
# the first three binary digits of the number itself.
BIN_SHIFT = 49
FIRST_BIN = (1023 - 8) << 3
BINS = 8 * 72
# A difference has the noise of its middle twice and of its ends once: in variances of
# one total 4 + 1 + 1, less where totals are exact.
KINDS = 7
WIDTHS = 20
ROUNDS = 40


@kernel
def _bin(size: float) -> int:
    """Return the bin of a size, in standard deviations of one total."""
    number = (int(np.float64(size).view(np.int64)) >> BIN_SHIFT) - FIRST_BIN
    return min(max(number, 0), BINS - 2)


@kernel
def _bin_starts() -> FloatArray:
    starts = np.empty(BINS)
    for number in range(BINS):
        starts[number] = np.int64((number + FIRST_BIN) << BIN_SHIFT).view(np.float64)
    starts[0] = 0.0
    return starts


@kernel
def _count(
    values: FloatArray,
    noisy: IntArray,
    origin: int,
    half: int,
    cells: int,
    counts: FloatArray,
) -> None:
    """Count the differences of all windows that meet the line, by kind and size."""
    counts[:] = 0.0
    for start in range(origin - 2 * half + 1, origin + cells):
        kind = 4 * noisy[start + half] + noisy[start] + noisy[start + 2 * half]
        if kind > 0:
            size = abs(
                2.0 * values[start + half] - values[start] - values[start + 2 * half]
            )
            counts[kind, _bin(size)] += 1.0


@kernel
def _kept_parts(counts: FloatArray, starts: FloatArray, factors: FloatArray) -> None:
    """Fit the prior and write which part of a difference is signal, by kind and bin.

    Expectation maximisation over the weights of normal laws with variances 0 and 6 *
    4^k, in variances of one total, where differences were counted.
    """
    widths = np.empty(WIDTHS + 1)
    widths[0] = 0.0
    for number in range(WIDTHS):
        widths[number + 1] = 6.0 * 4.0 ** (number - 4)
    weights = np.full(WIDTHS + 1, 1.0 / (WIDTHS + 1))
    rows = 0
    for kind in range(KINDS):
        for number in range(BINS):
            rows += counts[kind, number] > 0.0
    likelihoods = np.empty((rows, WIDTHS + 1))
    amounts = np.empty(rows)
    row = 0
    total = 0.0
    for kind in range(KINDS):
        for number in range(BINS):
            if counts[kind, number] > 0.0:
                last = min(number + 1, BINS - 1)
                size = 0.5 * (starts[number] + starts[last])
                _fill(size, float(kind), widths, likelihoods[row])
                amounts[row] = counts[kind, number]
                total += amounts[row]
                row += 1
    for _ in range(ROUNDS if total > 0.0 else 0):
        fresh = np.zeros(WIDTHS + 1)
        for entry in range(rows):
            mixed = 0.0
            for number in range(WIDTHS + 1):
                mixed += likelihoods[entry, number] * weights[number]
            for number in range(WIDTHS + 1):
                share = likelihoods[entry, number] * weights[number] / mixed
                fresh[number] += amounts[entry] * share
        for number in range(WIDTHS + 1):
            weights[number] = max(fresh[number] / total, 1e-12)
    likely = np.empty(WIDTHS + 1)
    for kind in range(1, KINDS):
        for number in range(BINS):
            # A difference looks at the start of its bin and at that of the next.
            before = counts[kind, max(number - 1, 0)]
            if counts[kind, number] == 0.0 and before == 0.0:
                continue
            _fill(starts[number], float(kind), widths, likely)
            mixed = 0.0
            signal = 0.0
            for part in range(WIDTHS + 1):
                amount = likely[part] * weights[part]
                mixed += amount
                signal += amount * widths[part] / (widths[part] + kind)
            factors[kind, number] = signal / mixed


@kernel
def _fill(size: float, noise: float, widths: FloatArray, likely: FloatArray) -> None:
    """Write the likelihood of a difference under each law, the largest being 1."""
    largest = -np.inf
    for number in range(widths.size):
        spread = noise + widths[number]
        likely[number] = -0.5 * (size * size / spread + np.log(spread))
        largest = max(largest, likely[number])
    for number in range(widths.size):
        likely[number] = np.exp(likely[number] - largest)


@kernel
def _halve(
    values: FloatArray,
    noisy: IntArray,
    origin: int,
    half: int,
    cells: int,
    starts: FloatArray,
    factors: FloatArray,
    whole: bool,
    larger: FloatArray,
    smaller: FloatArray,
) -> None:
    """Split every window that meets the line; the mean of both goes to each half.

    ``larger[k]`` belongs to the window of 2 * half cells that begins at cell k - 2 *
    half + 1. With `whole`, only windows that hold the whole line are split.
    """
    first = origin - 2 * half + 1
    smaller[:] = 0.0
    for place in range(cells + 2 * half - 1):
        start = first + place
        if whole and (start > origin or start + 2 * half < origin + cells):
            continue
        kind = 4 * noisy[start + half] + noisy[start] + noisy[start + 2 * half]
        turn = 2.0 * values[start + half] - values[start] - values[start + 2 * half]
        if kind > 0:
            size = abs(turn)
            number = _bin(size)
            low, high = starts[number], starts[number + 1]
            part = min(max((size - low) / (high - low), 0.0), 1.0)
            turn *= (1.0 - part) * factors[kind, number] + part * factors[
                kind, number + 1
            ]
        weight = 0.5
        # At the top a half may have one larger window only.
        left = place - half
        if 0 <= left < smaller.size:
            if whole and not _has_both(start, half, origin, cells):
                weight = 1.0
            smaller[left] += weight * 0.5 * (larger[place] + turn)
        weight = 0.5
        right = place
        if right < smaller.size:
            if whole and not _has_both(start + half, half, origin, cells):
                weight = 1.0
            smaller[right] += weight * 0.5 * (larger[place] - turn)


@kernel
def _has_both(start: int, half: int, origin: int, cells: int) -> bool:
    """Return whether a half at `start` lies in two windows that hold the whole line."""
    return (
        start <= origin
        and start + 2 * half >= origin + cells
        and start - half <= origin
        and start + half >= origin + cells
    )


@kernel
def _fit(values: FloatArray, noisy: IntArray, origin: int, cells: int) -> FloatArray:
    starts = _bin_starts()
    counts = np.zeros((KINDS, BINS))
    factors = np.ones((KINDS, BINS))
    half = 1
    while half < cells:
        half *= 2
    larger = np.full(cells + 2 * half - 1, values[origin + cells] - values[origin])
    whole = True
    while half >= 1:
        _count(values, noisy, origin, half, cells, counts)
        _kept_parts(counts, starts, factors)
        smaller = np.empty(cells + half - 1)
        _halve(
            values,
            noisy,
            origin,
            half,
            cells,
            starts,
            factors,
            whole,
            larger,
            smaller,
        )
        larger = smaller
        whole = False
        half //= 2
    return larger


def multiscale_cells(totals: AnyArray, known: BoolArray, variance: float) -> FloatArray:
    """Return smoothed cells from noisy running totals, in O(n log n).

    They add up to nearly the last total; some may be negative.

    Parameters
    ----------
    totals : ndarray, shape (n,)
        Running totals of n cells.
    known : ndarray of bool, shape (n,)
        Which totals have no noise; the last one must be among them.
    variance : float
        Variance of the noise of every other total.

    Returns
    -------
    ndarray of float64, shape (n,)
        The cells.

    Raises
    ------
    InputError
        If shapes differ, a total is not finite, the last total is not known, or the
        variance is no number.

    Examples
    --------
    >>> totals = np.array([9.0, 22.0, 29.0, 40.0, 40.0, 41.0, 39.0, 40.0])
    >>> multiscale_cells(totals, np.arange(8) == 7, 2.0).round(1)
    array([ 9.3, 11.5,  8.2,  9.9,  0.8,  0.6, -0.8,  0.5])
    """
    totals = np.ascontiguousarray(totals, dtype=np.float64)
    known = np.ascontiguousarray(known, dtype=np.bool_)
    if totals.ndim != 1 or totals.size == 0 or known.shape != totals.shape:
        raise InputError(
            "a fit needs one row of running totals and a mark for each; received "
            f"shapes {totals.shape} and {known.shape}"
        )
    refuse_infinite(totals, "running totals")
    if not known[-1]:
        raise InputError("the last running total must be known")
    if not (variance >= 0 and np.isfinite(variance)):
        raise InputError(f"the variance must be a number, 0 or more; got {variance}")
    cells = totals.size
    if variance == 0.0 or known.all():
        return np.diff(totals, prepend=0.0)
    # Beyond both ends totals stay as they are, without noise.
    margin = 2 * (1 << (cells - 1).bit_length())
    unit = np.sqrt(variance)
    values = np.zeros(cells + 1 + 2 * margin)
    values[margin + 1 : margin + 1 + cells] = totals / unit
    values[margin + 1 + cells :] = totals[-1] / unit
    noisy = np.zeros(values.size, dtype=np.int64)
    noisy[margin + 1 : margin + 1 + cells] = ~known
    fitted: FloatArray = _fit(values, noisy, margin, cells) * unit
    return fitted
