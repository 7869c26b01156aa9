"""Black-box audit of a measurement: many noisy rows at once, on both sides of an edge.

One measurement is drawn a hundred thousand times for each of two neighbours, by the
function that draws it in a release. What is compared is a single number per draw, how
much closer the published rows lie to one neighbour than to the other:

    closeness = sum over rows of rate * (|y - rows of B| - |y - rows of A|)

with squares in place of sizes for Gaussian noise. It is the log-likelihood ratio if the
noise is what was declared: never above epsilon, or rarely above the epsilon that rho
implies at some delta. With less noise, or none on some row, its tails give it away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from fractions import Fraction

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.audit.measurements import RowPrices
from blowfish_fast.measure import handle
from blowfish_fast.measure.budgets import Budget, epsilon_of
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.randomness import Randomness

from .confidence import evidence_from_counts, pilot_size, tail_evidence
from .selections import Finding

CUTS = 12
"""Thresholds of the closeness that make events."""

CHUNK = 2**18

DELTA = Fraction(1, 100)
"""At which epsilons are compared where noise is paid in rho: tails that are seen."""

UNNOISED = 1e6
"""Weight of a row that shows counts and carries no noise."""


def audit_noise(
    name: str,
    measurement: Measurement,
    edge: tuple[int, int],
    *,
    budget: Budget | Fraction,
    samples: int,
    seed: int = 0,
    confidence: float = 0.999,
) -> Finding:
    """Compare what is published of a record at either end of `edge`.

    Parameters
    ----------
    name : str
        What the finding is about.
    measurement : Measurement
        Strategy, scales and buckets as they were declared; its noisy rows are not
        used.
    edge : (int, int)
        Two cells, or a cell and -1 for "absent".
    budget : Budget or Fraction
        What this edge may cost: epsilon, or rho. Rho is compared in the form (epsilon,
        delta), with the least epsilon that it certainly implies at `DELTA`; a lower
        bound above it proves that the edge costs more than rho.
    samples : int
        Draws per side.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(3)
    >>> mechanism, data = bf.Laplace.example(line, bf.policies.Full(line), Fraction(1))
    >>> kept = mechanism.release(data, rng=1).measurements[0]
    >>> audit_noise("laplace", kept, (0, 1), budget=Fraction(1), samples=5000).passed
    True
    """
    pilots, counted = _blocks(measurement, edge, samples, seed)
    subject, paid = f"{name}: {measurement.strategy.kind}", Budget.of(budget)
    if paid.power == 2:
        subject += f", at delta = {float(DELTA):g}"
        epsilon = epsilon_of(paid.amount, DELTA)
        evidence = tail_evidence(
            pilots, counted, delta=float(DELTA), confidence=confidence
        )
        return Finding(subject, epsilon, evidence, samples)
    evidence = evidence_from_counts(
        *((_as_counter(one), _as_counter(two)) for one, two in (pilots, counted)),
        confidence=confidence,
    )
    return Finding(subject, paid.epsilon, evidence, samples)


def _blocks(
    measurement: Measurement, edge: tuple[int, int], samples: int, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Return how many draws fall into each block of the closeness, on both sides.

    Of the pilots, and of the draws that are counted.
    """
    prices = RowPrices(measurement)
    sides = [prices.rows(cell) for cell in edge]
    blank = np.zeros(measurement.scales.rates.size, dtype=np.int64)
    published = [
        measurement.strategy.published(rows, blank, measurement.scales)
        for rows in sides
    ]
    # Doubles, which are multiplied faster.
    spread = prices.draws_to_rows().astype(np.float64)
    weights = _row_weights(measurement, spread)
    drawn = [
        _closeness(measurement, published, side, spread, weights, samples, seed + side)
        for side in (0, 1)
    ]
    named = pilot_size(samples)
    pilots = np.concatenate([one[:named] for one in drawn])
    cuts = np.unique(np.quantile(pilots, np.linspace(0, 1, CUTS), method="nearest"))
    # On a threshold, or between two: atoms of the closeness are events of their own.
    first, second = (
        np.searchsorted(cuts, one, "left") + np.searchsorted(cuts, one, "right")
        for one in drawn
    )
    most = 2 * cuts.size + 1
    return [
        (
            np.bincount(first[part], minlength=most),
            np.bincount(second[part], minlength=most),
        )
        for part in (slice(named), slice(named, None))
    ]


def _as_counter(blocks: IntArray) -> Counter[Hashable]:
    return Counter(
        {block: often for block, often in enumerate(blocks.tolist()) if often}
    )


def _row_weights(measurement: Measurement, spread: FloatArray) -> FloatArray:
    scales = measurement.scales
    rates = scales.rates / float(scales.unit)
    diagonal = np.count_nonzero(spread) == np.count_nonzero(np.diagonal(spread))
    own = diagonal and spread.shape[0] == spread.shape[1]
    weights = np.where(rates > 0, rates, 0.0) if own else np.ones(spread.shape[1])
    return np.where(spread.any(axis=0), weights, UNNOISED)


def _closeness(
    measurement: Measurement,
    published: list[IntArray],
    side: int,
    spread: FloatArray,
    weights: FloatArray,
    samples: int,
    seed: int,
) -> FloatArray:
    """Draw one side many times and return how much closer it is to the first."""
    scales, rng = measurement.scales, Randomness(seed)
    draws = scales.rates.size
    shift = (published[1] - published[0]).astype(np.float64)
    # Rows that no edge moves say nothing.
    moved = np.flatnonzero(shift)
    shift, weights, spread = shift[moved], weights[moved], spread[:, moved]
    closeness = np.empty(samples)
    step = max(1, CHUNK // max(draws, 1))
    for begin in range(0, samples, step):
        size = min(step, samples - begin)
        many = Scales(
            np.tile(scales.rates, size),
            scales.unit,
            np.tile(scales.exact, size),
            scales.power,
        )
        noise = handle._draw(many, rng).reshape(size, draws) @ spread
        away = noise + (shift if side else 0.0)
        apart, near = np.abs(away - shift), np.abs(away)
        closeness[begin : begin + size] = (
            apart**scales.power - near**scales.power
        ) @ weights
    # Sums of equal terms in another order differ in their last bits.
    return np.round(closeness, 9)
