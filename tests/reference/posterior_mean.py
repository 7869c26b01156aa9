"""Posterior means from the definition: integrals, textbook steps, many digits."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
from scipy.integrate import quad


def integral(function, breaks, scale):
    """Return the integral over ``[breaks[0], breaks[-1]]``, piece by piece.

    `scale` is the least length over which the function falls by a factor e: together
    with its height it tells which pieces are too small to matter. Subnormal values
    never do.
    """
    height = max(function(point) for point in breaks)
    negligible = max(1e-13 * scale * height, 1e-300)
    return sum(
        quad(function, low, high, epsabs=negligible, epsrel=1e-11)[0]
        for low, high in pairwise(breaks)
    )


def mass_and_moment(total, width, mean):
    """Return the integrals of joint density and of s times it, by quadrature.

    The density of the noise is taken relative to its height 1 / (2 width), and to
    e^(total / width) if the total is negative: for s >= 0 that is e^(-s / width), as
    if the total were 0.
    """
    peak = max(total, 0.0)

    def joint(s):
        return np.exp(-s / mean - abs(peak - s) / width) / mean

    # Each exponential is steep near one end of its piece: cut there, coarsely.
    cuts = np.array([1.0, 4.0, 12.0, 50.0])
    steps = np.concatenate([cuts * mean, cuts * width])
    inside = np.sort(np.concatenate([steps, peak - steps]))
    least = 0.01 * min(mean, width)
    breaks = [0.0]
    for cut in inside:
        if cut > breaks[-1] + least and cut < peak - least:
            breaks.append(cut)
    scale = 1 / (1 / mean + 1 / width)
    if peak > 1e-12 * scale:
        breaks.append(peak)
    breaks += list(peak + cuts * scale)
    mass = integral(joint, breaks, scale)
    return mass, integral(lambda s: s * joint(s), breaks, scale)


def mass_and_moment_in_many_digits(total, mean):
    """Return the same for width 1 from antiderivatives, with 150 digits."""
    with mpmath.workdps(150):
        total, mean = mpmath.mpf(total), mpmath.mpf(mean)
        fall = 1 + 1 / mean
        if total <= 0:
            return float(1 / (mean * fall)), float(1 / (mean * fall**2))
        rise = 1 - 1 / mean
        above = mpmath.exp(-total / mean) / fall
        moment = above * (total + 1 / fall)
        low = mpmath.exp(-total)
        if rise == 0:
            below, first = low * total, low * total**2 / 2
        else:
            high = mpmath.exp(-total / mean)
            below = (high - low) / rise
            first = (total * high - below) / rise
        return float((above + below) / mean), float((moment + first) / mean)


def fitted_weights(table, start, beforehand, steps=60):
    """Return the weights after `steps` textbook steps: who owns each bucket."""
    weights = np.array(start)
    for _ in range(steps):
        owners = table * weights
        owners /= owners.sum(axis=1, keepdims=True)
        weights = owners.sum(axis=0) + beforehand
        weights /= weights.sum()
    return weights


def shrunken(noisy, widths, sizes):
    """Return the posterior means, every integral by quadrature."""
    noisy, widths = np.asarray(noisy, float), np.asarray(widths, float)
    estimate = noisy.copy()
    rows = [row for row in range(noisy.size) if widths[row] > 0]
    if not rows:
        return estimate
    unit = np.median(widths[rows])
    top = max(4, np.ceil(np.log2(max(noisy[rows].max() / unit, 1.0))) + 1)
    means = unit * 2.0 ** (np.arange(-2, top + 1) + 0.5)
    masses, moments = np.empty((2, len(rows), means.size + 1))
    for line, row in enumerate(rows):
        masses[line, 0] = np.exp(-max(noisy[row], 0.0) / widths[row])
        moments[line, 0] = 0.0
        for component, mean in enumerate(means):
            found = mass_and_moment(noisy[row], widths[row], mean)
            masses[line, component + 1], moments[line, component + 1] = found
    classes = np.array([int(sizes[row]).bit_length() for row in rows])
    uniform = np.full(means.size + 1, 1 / (means.size + 1))
    pooled = fitted_weights(masses, uniform, np.full(means.size + 1, 0.1))
    for label in set(classes):
        own = classes == label
        weights = pooled
        if len(set(classes)) > 1:
            weights = fitted_weights(masses[own], pooled, 20 * pooled)
        for line in np.flatnonzero(own):
            row = rows[line]
            if noisy[row] <= 60 * widths[row]:
                estimate[row] = moments[line] @ weights / (masses[line] @ weights)
    return estimate
