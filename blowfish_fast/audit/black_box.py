"""Black-box audits: noise, whole releases and time, drawn many times on both sides.

What is compared is one number per draw, how much closer the published rows lie to one
neighbour than to the other (squares in place of sizes for Gaussian noise):

    closeness = sum over rows of rate * (|y - rows of B| - |y - rows of A|)

If the noise is what was declared, it is the log-likelihood ratio: never above epsilon.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.measure import handle
from blowfish_fast.measure.budgets import Budget, epsilon_of
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies.cells_above import ListedCells
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.policies import ABSENT, Policy
from blowfish_fast.release.chosen_release import ChosenTablesRelease
from blowfish_fast.release.file import Release
from blowfish_fast.release.tables_release import TablesRelease
from blowfish_fast.release.wide.sparse_release import SparseRelease

from .confidence import (
    Finding,
    evidence_from_counts,
    pilot_size,
    strongest_evidence,
    tail_evidence,
)
from .grey_box import RowPrices
from .neighbours import Pair

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
    """Compare what is published of a record at either end of an edge.

    Rho is compared as the least epsilon that it certainly implies at `DELTA`. The noisy
    rows of the measurement are not used.

    Parameters
    ----------
    name : str
        What reports call it.
    measurement : Measurement
        The strategy and its noise.
    edge : tuple[int, int]
        Two cells, or a cell and -1 for "absent".
    budget : Budget or Fraction
        What the edge may cost.
    samples : int
        Draws per side.
    seed : int, default 0
        Where chance begins.
    confidence : float, default 0.999
        How surely a violation is one.

    Returns
    -------
    Finding
        What was seen.

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
        *((_as_counter(first), _as_counter(two)) for first, two in (pilots, counted)),
        confidence=confidence,
    )
    return Finding(subject, paid.epsilon, evidence, samples)


def _blocks(
    measurement: Measurement, edge: tuple[int, int], samples: int, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Return how many pilots, and draws that count, are in each block of closeness."""
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
    pilots = np.concatenate([side[:named] for side in drawn])
    cuts = np.unique(np.quantile(pilots, np.linspace(0, 1, CUTS), method="nearest"))
    # On a threshold, or between two: atoms of the closeness are events of their own.
    first, second = (
        np.searchsorted(cuts, side, "left") + np.searchsorted(cuts, side, "right")
        for side in drawn
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


def audit_release(
    mechanism: Mechanism,
    pair: tuple[Any, Any],
    *,
    event: Callable[[Release], Hashable],
    samples: int,
    seed: int = 0,
    confidence: float = 0.999,
) -> Finding:
    """Compare an event of whole releases on two neighbouring data sets.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    pair : tuple[object, object]
        The two data sets.
    event : Callable[[Release], Hashable]
        What is read off a release.
    samples : int
        Releases per side.
    seed : int, default 0
        Where chance begins.
    confidence : float, default 0.999
        How surely a violation is one.

    Returns
    -------
    Finding
        What was seen.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(2)
    >>> mechanism, _ = bf.Laplace.example(line, bf.policies.AddRemove(line), 1)
    >>> found = audit_release(
    ...     mechanism,
    ...     (np.array([3, 0]), np.array([2, 0])),
    ...     event=lambda release: bool(release.estimate[0] > 2),
    ...     samples=200,
    ... )
    >>> found.passed
    True
    """
    # Both sides from different seeds, so that they are independent.
    sides = [
        [
            event(mechanism.release(counts, rng=seed + side * samples + number))
            for number in range(samples)
        ]
        for side, counts in enumerate(pair)
    ]
    evidence = strongest_evidence(*sides, confidence=confidence)
    return Finding(mechanism.name, mechanism.epsilon, evidence, samples)


def audit_edge(
    mechanism: Mechanism, edge: tuple[int, int], *, samples: int, confidence: float
) -> Finding:
    """Compare whole releases by what they say about the two cells of an edge.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    edge : tuple[int, int]
        Two cells, or a cell and -1 for "absent".
    samples : int
        Releases per side.
    confidence : float
        How surely a violation is one.

    Returns
    -------
    Finding
        What was seen.
    """
    domain = mechanism.domain
    background: IntArray = (2 * np.arange(domain.size) >= domain.size) * 4
    first, second = (
        Histogram(domain, counts.reshape(domain.shape))
        for counts in Pair(tuple(background.tolist()), edge).sides
    )
    watched = [cell for cell in edge if cell != ABSENT]

    def event(release: Any) -> Hashable:
        if isinstance(release, ChosenTablesRelease):
            # A table that was not measured is one of the model.
            release = release.fitted(*release.asked[-1])
        elif isinstance(release, TablesRelease):
            release = release.table(*release.asked[-1])
        if isinstance(release, SparseRelease):
            return _heights(release.listed, watched)
        shown = getattr(release, "centers", None)
        values = (
            release.estimate.reshape(-1)[watched] - background[watched]
            if shown is None
            else np.asarray(shown).reshape(-1)[:2]
        )
        coarse = np.clip(np.floor(values / 2.0), -2, 2).astype(int)
        return tuple(coarse.tolist()), release.details.get("buckets")

    return audit_release(
        mechanism,
        (first, second),
        event=event,
        samples=samples,
        confidence=confidence,
    )


def _heights(listed: ListedCells, watched: list[int]) -> tuple[int, ...]:
    """Return how far some cells lie above the threshold: 0 if not listed, at most 2."""
    noisy_counts = dict(zip(listed.keys.tolist(), listed.noisy.tolist(), strict=True))
    least = listed.threshold - 1
    return tuple(min(max(noisy_counts.get(cell, 0) - least, 0), 2) for cell in watched)


EXCESS = Fraction(5, 100)
"""What is planted: five hundredths of epsilon too much."""


class Power(NamedTuple):
    """How many of the planted excesses were seen.

    Attributes
    ----------
    seen : int
        How many were seen.
    planted : int
        How many were planted.
    samples : int
        Samples per side of each audit.
    excess : Fraction
        By which part epsilon was exceeded.
    """

    seen: int
    planted: int
    samples: int
    excess: Fraction

    @property
    def share(self) -> float:
        """Part of the plants that were seen."""
        return self.seen / self.planted

    def __str__(self) -> str:
        return (
            f"an excess of {float(100 * self.excess):g} % was seen {self.seen} times "
            f"out of {self.planted} ({self.samples:,} samples per side)"
        )


def detection_power(
    measurement: Measurement,
    policy: Policy,
    edge: tuple[int, int],
    *,
    samples: int,
    trials: int,
    excess: Fraction = EXCESS,
    confidence: float = 0.999,
) -> Power:
    """Calibrate a measurement to 1 + excess, and count the audits that notice.

    Parameters
    ----------
    measurement : Measurement
        A measurement whose noise is known.
    policy : Policy
        What is secret.
    edge : tuple[int, int]
        The edge that is audited.
    samples : int
        Samples per side of each audit.
    trials : int
        How many audits.
    excess : Fraction, default EXCESS
        By which part epsilon is exceeded.
    confidence : float, default 0.999
        How surely a violation is one.

    Returns
    -------
    Power
        How many noticed.
    """
    epsilon = Fraction(1)
    scales = measurement.strategy.scales(policy, epsilon * (1 + excess))
    planted = measurement.with_scales(scales)
    seen = sum(
        not audit_noise(
            "planted",
            planted,
            edge,
            budget=epsilon,
            samples=samples,
            seed=2 * trial,
            confidence=confidence,
        ).passed
        for trial in range(trials)
    )
    return Power(seen, trials, samples, excess)


DRAWS = 1024
SCALE = (20, 1)
STANDARD_ERRORS = 3.0


class Timing(NamedTuple):
    """The correlation of batch time and size of the noise.

    Attributes
    ----------
    correlation : float
        The correlation.
    batches : int
        How many batches were timed.
    """

    correlation: float
    batches: int

    @property
    def standard_errors(self) -> float:
        """How many standard errors the correlation is away from 0."""
        return abs(self.correlation) * math.sqrt(self.batches - 1)

    @property
    def passed(self) -> bool:
        """Whether it is within three standard errors of 0."""
        return self.standard_errors <= STANDARD_ERRORS

    def __str__(self) -> str:
        return (
            f"correlation of batch time and noise {self.correlation:+.4f}, "
            f"{self.standard_errors:.1f} standard errors from 0 ({self.batches:,} "
            f"batches of {DRAWS:,} draws)"
        )


def timing_correlation(batches: int) -> Timing:
    """Time so many batches of secure noise and compare time with noise.

    Times of a busy machine drift, but the noise does not drift with them, so the
    standard error of the rank correlation is one over the root of the number of
    batches.
    """
    from scipy.stats import spearmanr

    rng = Randomness()
    rng.laplace(*SCALE, size=DRAWS)
    times = np.empty(batches)
    sizes = np.empty(batches)
    for batch in range(batches):
        start = time.perf_counter_ns()
        noise = rng.laplace(*SCALE, size=DRAWS, threads=1)
        times[batch] = time.perf_counter_ns() - start
        sizes[batch] = float(np.abs(noise).sum())
    return Timing(float(spearmanr(times, sizes).statistic), batches)
