"""What a fit leaves of the error of a hierarchy, tried on public shapes.

Fits know that no cell is negative, and they gain more with some trees than with others:
of two plans the one with the smaller variance may have the larger error when its
release is fitted. So plans that are close are tried on four generated lines, with noise
of their own scales. No data are read, and the draws come from a fixed key: trying is
free, and has the same outcome everywhere.

    spikes  .  |   . |     eight cells with nearly all records
    hill    ..:!|!:..      one smooth hill
    ranks   .|.:.!.:|.     every cell its own height, the k-th largest 1/k
    steps   --__-=__--     stretches of different lengths and heights
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import Scales
from blowfish_fast.policies import Policy

from .ordered_hierarchy import OrderedHierarchy

Asked = Literal["ranges", "prefixes", "identity"]
"""Of which queries the squared error is compared: "ranges", all ranges; "prefixes", all
running totals; "identity", all single cells."""

SMALL = Fraction(1, 100)
"""The epsilon or rho at which plans are tried: noise is nearly continuous there."""

MASSES = (300.0, 30_000.0)
"""Records of each line that is tried, as multiples of the scale of the noise on one
count. A line of few records is mostly noise, one of many is mostly counts."""

TRIALS = 8
"""Draws for each line and each number of records."""

KEY = 41
"""The seed from which the noise of all trials is drawn."""

SPIKES = 8
"""Cells that hold nearly all records of the line of spikes."""

STEPS = 32
"""Stretches of the line of steps."""

SCATTER = 2_654_435_761
"""A prime near 2^32 times 0.618, the golden ratio. Its multiples, modulo 2^32, put
cells in an order that looks random and is the same everywhere."""


def fitted_part(
    strategy: OrderedHierarchy, policy: Policy, asked: Asked, power: int = 1
) -> float:
    """Return the squared error after the fit over that before, on public shapes.

    Both errors are those of the same draws, which makes their quotient far steadier
    than either. The geometric mean over shapes and numbers of records is returned.

    Parameters
    ----------
    strategy : OrderedHierarchy
        The plan.
    policy : Policy
        The policy, without constraints, that sets the noise.
    asked : {"ranges", "prefixes", "identity"}
        Whose errors are compared.
    power : int, default 1
        1 for epsilon, 2 for rho.

    Returns
    -------
    float
        The quotient, mostly below 1.
    """
    scales = strategy.scales(policy, Budget(SMALL, power))
    # Noise of sensitivity 1: of scale 1 / epsilon, or of variance 1 / (2 rho).
    width = float(1 / SMALL) if power == 1 else math.sqrt(float(1 / SMALL) / 2.0)
    generator = np.random.Generator(np.random.PCG64(KEY))
    logs = []
    for mass in MASSES:
        for shape in public_shapes(strategy.cells):
            counts = np.rint(shape * mass * width).astype(np.int64)
            rows = strategy.rows(counts)
            after = before = 0.0
            for _ in range(TRIALS):
                noisy = rows + _noise(scales, generator)
                fitted = strategy.increasing(noisy, scales)
                after += _squared_error(fitted - counts, asked)
                before += _squared_error(strategy.infer(noisy, scales) - counts, asked)
            logs.append(math.log(after / before))
    return math.exp(math.fsum(logs) / len(logs))


def _noise(scales: Scales, generator: np.random.Generator) -> IntArray:
    """Return draws that only a forecast uses: exact noise comes from elsewhere."""
    widths = scales.widths
    if scales.power == 1:
        draws = generator.laplace(size=widths.size)
    else:
        draws = generator.standard_normal(widths.size)
    return np.rint(widths * draws).astype(np.int64)


def _squared_error(errors: FloatArray, asked: Asked) -> float:
    """Return the mean square over all queries of one kind, from errors of cells.

    The error of a range is the difference of two running sums of errors. Over all pairs
    of sums, the mean square of their differences is twice the variance of the sums, so
    no pair has to be listed.
    """
    if asked == "identity":
        return float(errors @ errors) / errors.size
    sums = np.append(0.0, np.cumsum(errors))
    if asked == "prefixes":
        return float(sums @ sums) / sums.size
    return 2.0 * float(sums.var())


def public_shapes(cells: int) -> list[FloatArray]:
    """Return the four lines, each with a sum of 1."""
    place = np.arange(cells)
    # The numbers 0 .. cells - 1 in an order that looks random.
    shuffled = np.argsort(place * SCATTER % 2**32, kind="stable")
    spikes = np.zeros(cells)
    spikes[shuffled[:SPIKES]] = 1.0 / np.arange(1.0, min(SPIKES, cells) + 1.0)
    hill = np.exp(-0.5 * ((place / cells - 0.4) / 0.12) ** 2) + 0.01
    ranks = 1.0 / (1.0 + shuffled)
    # Lengths of 1 to 7 parts and heights of 1.5^-6 to 1.5^6; 5 and 11 have no common
    # factor with 7 and 13, so that neither repeats soon.
    ends = np.cumsum(1.0 + np.arange(STEPS) * 5 % 7)
    step = np.searchsorted(ends, (place + 0.5) / cells * ends[-1])
    steps = 1.5 ** (step * 11 % 13 - 6.0)
    return [shape / shape.sum() for shape in (spikes, hill, ranks, steps)]
