"""Sampling and privacy noise in one statement: tails, and parameters that they exclude.

Records were drawn from a population, so their count S has a law that is known but for
a parameter: the population's share p, or a number M of people. Published is T = S + Z,
and of the noise Z only a *ladder* of half-widths is used:

    miss          1      .8      .64     .512   ...   m
    half-width    0      3       5       8      ...   h      P(|Z| > h) <= m

`NoisyCounts.upper_tail` bounds P(S + Z >= T) by the ladder and the law of S alone
(Lemma PN2). All parameters whose bounds on both sides exceed half of the stated miss
form the interval; where there is no noise it is that of Clopper and Pearson.

A release whose measurement followed the data, or whose answers a certificate knows,
has intervals of S in place of a ladder: both ends are tested as they are, without
noise (Lemma PN1). The proofs are in ``docs/proofs/population.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray

from .noise import Spread
from .tails import noise_half_widths, rough_half_widths

RUNG = 0.8
"""Ratio of the misses of two rungs of a ladder."""
LAST_RUNG = 1.0e-3
"""The last rung misses with at most this part of what an interval may miss."""
SLACK = 1.0e-9
"""Rounding that is allowed for in noisy counts, relative to their size."""
TRUNCATED = 1.0e-12
"""Added to hypergeometric tails: what lies beyond the window, and rounding."""
HALVINGS = 52
"""Steps of a bisection between two numbers."""

Chance = Callable[[FloatArray], FloatArray]
"""From places, (queries, rungs), to probabilities of counts at or beyond them."""


def ladder_misses(miss: float) -> FloatArray:
    """Return the misses of a ladder, from 1 down to a small part of `miss`."""
    rungs = math.ceil(math.log(LAST_RUNG * miss) / math.log(RUNG))
    return np.asarray(RUNG ** np.arange(rungs + 1), dtype=np.float64)


class NoisyCounts(NamedTuple):
    """Counts with noise, and what is known of how far the noise has moved them.

    Attributes
    ----------
    low : ndarray of float64, shape (queries,)
        The count that is tested against small parameters.
    high : ndarray of float64, shape (queries,)
        The count that is tested against large ones; the same where there is a ladder.
    halves : ndarray of float64, shape (rungs, queries)
        Half-widths of the noise, from 0 on.
    misses : ndarray of float64, shape (rungs,)
        The probability that each is exceeded, from 1 on.
    miss : float
        What the interval may miss with.
    """

    low: FloatArray
    high: FloatArray
    halves: FloatArray
    misses: FloatArray
    miss: float

    @classmethod
    def with_ladder(
        cls, answers: FloatArray, spread: Spread, miss: float
    ) -> NoisyCounts:
        """Return counts whose noise has a known law.

        Parameters
        ----------
        answers : ndarray of float64, shape (queries,)
            Linear answers, before any fit.
        spread : Spread
            The law of their noise.
        miss : float
            What an interval may miss with.

        Returns
        -------
        NoisyCounts
            The counts, with a ladder.
        """
        misses = ladder_misses(miss)
        halves = np.zeros((misses.size, answers.size))
        for rung in range(1, misses.size):
            halves[rung] = rough_half_widths(spread, float(misses[rung]))
        # A half-width may be a little larger at a larger miss: the bounds differ.
        np.maximum.accumulate(halves, axis=0, out=halves)
        return cls(answers, answers, halves, misses, miss)

    @classmethod
    def between(cls, bounds: FloatArray, miss: float) -> NoisyCounts:
        """Return counts that are known to lie in intervals: Lemma PN1.

        Parameters
        ----------
        bounds : ndarray of float64, shape (queries, 2)
            Intervals of the true counts.
        miss : float
            What the sampling may miss with, beside them.

        Returns
        -------
        NoisyCounts
            The counts, without noise.
        """
        low, high = bounds.T
        return cls(low, high, np.zeros((2, low.size)), np.array([1.0, 0.0]), miss)

    def upper_tail(self, at_least: Chance) -> FloatArray:
        """Return a bound on P(S + Z >= low), from x -> P(S >= x): Lemma PN2."""
        return self._tail(self.low, 1.0, at_least)

    def lower_tail(self, at_most: Chance) -> FloatArray:
        """Return a bound on P(S + Z <= high), from x -> P(S <= x): Lemma PN2."""
        return self._tail(self.high, -1.0, at_most)

    def _tail(self, at: FloatArray, sign: float, chance: Chance) -> FloatArray:
        near, far = self.halves[:-1].T, self.halves[1:].T
        places = at[:, None]
        each = 0.5 * (chance(places - sign * far) + chance(places + sign * near))
        np.maximum.accumulate(each, axis=1, out=each)
        bound = each @ (self.misses[:-1] - self.misses[1:]) + self.misses[-1]
        return np.asarray(bound, dtype=np.float64)


class CountLaw(Protocol):
    """The law of a count in a sample, which grows with its parameter."""

    def at_least(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S >= x) for each query's parameter.

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            The parameter of each query.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """

    def at_most(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S <= x) for each query's parameter.

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            The parameter of each query.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """


class Binomial(NamedTuple):
    """S of `draws` records that are each such with the parameter as probability.

    Attributes
    ----------
    draws : ndarray of float64, shape (queries,)
        How many records were drawn.
    """

    draws: FloatArray

    def at_least(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S >= x).

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            The probability.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        return _binomial_at_least(self.draws[:, None], parameter[:, None], _up(x))

    def at_most(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S <= x), that n - S is at least n - x.

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            The probability.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        draws = self.draws[:, None]
        return _binomial_at_least(draws, 1.0 - parameter[:, None], draws - _down(x))


class Thinned(NamedTuple):
    """S of a number of people, the parameter, each drawn with one public chance.

    Attributes
    ----------
    rate : float
        The chance.
    """

    rate: float

    def at_least(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S >= x).

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            How many people there are.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        chance = np.full((x.shape[0], 1), self.rate)
        return _binomial_at_least(parameter[:, None], chance, _up(x))

    def at_most(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S <= x).

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            How many people there are.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        people, chance = parameter[:, None], np.full((x.shape[0], 1), 1.0 - self.rate)
        return _binomial_at_least(people, chance, people - _down(x))


class PoissonCount(NamedTuple):
    """S of independent events, with the parameter as mean."""

    def at_least(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S >= x).

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            The mean.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        from scipy.special import gammainc

        events = _up(x)
        tail = gammainc(np.maximum(events, 1.0), parameter[:, None])
        return np.where(events <= 0.0, 1.0, tail)

    def at_most(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S <= x).

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            The mean.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        from scipy.special import gammaincc

        events = _down(x)
        tail = gammaincc(np.maximum(events, 0.0) + 1.0, parameter[:, None])
        return np.where(events < 0.0, 0.0, tail)


class Hypergeometric(NamedTuple):
    """S of `draws` people without replacement; of all, the parameter are such.

    The probabilities of counts near the mean are found from the ratios of neighbours,
    which lose no digits however large the population is:

        P(k + 1) / P(k) = (M - k) (n - k) / ((k + 1) (N - M - n + k + 1))

    What lies further than sqrt(n ln(2 / t) / 2) from the mean has at most the
    probability t, by Hoeffding's bound, which holds without replacement too.

    Attributes
    ----------
    population : int
        Everybody.
    draws : ndarray of float64, shape (queries,)
        How many were drawn, of each query.
    """

    population: int
    draws: FloatArray

    def at_least(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S >= x), or slightly more.

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            How many of all people are such.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        places, tails = _up(x), np.empty(x.shape)
        for query in range(places.shape[0]):
            start, law = self._window(int(parameter[query]), int(self.draws[query]))
            beyond = np.append(np.cumsum(law[::-1])[::-1], 0.0)
            inside = np.clip(places[query] - start, 0, law.size).astype(np.int64)
            tails[query] = np.minimum(beyond[inside] + TRUNCATED, 1.0)
        return tails

    def at_most(self, parameter: FloatArray, x: FloatArray) -> FloatArray:
        """Return P(S <= x): of the others at least n - x were drawn.

        Parameters
        ----------
        parameter : ndarray of float64, shape (queries,)
            How many of all people are such.
        x : ndarray of float64, shape (queries, rungs)
            The places.

        Returns
        -------
        ndarray of float64, shape (queries, rungs)
            The probabilities.
        """
        return self.at_least(
            self.population - parameter, self.draws[:, None] - _down(x)
        )

    def _window(self, such: int, draws: int) -> tuple[int, FloatArray]:
        """Return the least count of the window, and the probability of each in it."""
        everybody = self.population
        least, most = max(0, draws + such - everybody), min(draws, such)
        reach = math.ceil(math.sqrt(0.5 * draws * math.log(2.0 / TRUNCATED))) + 1
        mean = draws * such / max(everybody, 1)
        start = max(least, math.floor(mean) - reach)
        stop = min(most, math.ceil(mean) + reach)
        k = np.arange(start, stop, dtype=np.float64)
        above = np.log(such - k) + np.log(draws - k)
        below = np.log(k + 1.0) + np.log(everybody - such - draws + k + 1.0)
        logs = np.append(0.0, np.cumsum(above - below))
        law = np.exp(logs - logs.max())
        return start, law / law.sum()


def excluded_share(counts: NoisyCounts, least: CountLaw, most: CountLaw) -> FloatArray:
    """Return the ends of the probabilities from 0 to 1 that are not excluded.

    Parameters
    ----------
    counts : NoisyCounts
        The counts.
    least : CountLaw
        The law that small probabilities are tested with: of the most draws.
    most : CountLaw
        The law that large ones are tested with: of the fewest draws.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        The lower and the upper end of each.
    """
    least_share, most_share = np.zeros(counts.low.size), np.ones(counts.low.size)
    return _ends(counts, (least, most), (least_share, most_share), whole=False)


def excluded_number(
    counts: NoisyCounts, least: CountLaw, most: CountLaw, largest: float
) -> FloatArray:
    """Return the ends of the whole numbers from 0 to `largest` that are not excluded.

    Parameters
    ----------
    counts : NoisyCounts
        The counts.
    least : CountLaw
        The law that small numbers are tested with.
    most : CountLaw
        The law that large numbers are tested with.
    largest : float
        The largest number there can be; infinite where nobody knows.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        The lower and the upper end of each.
    """
    zero = np.zeros(counts.low.size)
    top = np.full(counts.low.size, largest)
    if math.isinf(largest):
        top = _rejected_from(counts, most)
    return _ends(counts, (least, most), (zero, top), whole=True)


def excluded_mean(counts: NoisyCounts, law: CountLaw) -> FloatArray:
    """Return the ends of the means of events that are not excluded.

    Parameters
    ----------
    counts : NoisyCounts
        The counts.
    law : CountLaw
        Their law.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        The lower and the upper end of each.
    """
    limits = (np.zeros(counts.low.size), _rejected_from(counts, law))
    return _ends(counts, (law, law), limits, whole=False)


def _rejected_from(counts: NoisyCounts, law: CountLaw) -> FloatArray:
    """Return parameters that are too large, found by doubling."""
    reach = np.maximum(counts.high, 0.0) + counts.halves[-1]
    top: FloatArray = np.ceil(reach) + 16.0

    def possible(parameter: FloatArray) -> bool:
        tails = counts.lower_tail(lambda x: law.at_most(parameter, x))
        return bool((tails > counts.miss / 2).any())

    while possible(top):
        top = 2.0 * top
    return top


def _ends(
    counts: NoisyCounts,
    laws: tuple[CountLaw, CountLaw],
    limits: tuple[FloatArray, FloatArray],
    *,
    whole: bool,
) -> FloatArray:
    """Bisect for both ends; outwards to the last rejected number where not whole."""
    least, most = laws

    def too_small(parameter: FloatArray) -> BoolArray:
        tails = counts.upper_tail(lambda x: least.at_least(parameter, x))
        return np.asarray(tails <= counts.miss / 2)

    def too_large(parameter: FloatArray) -> BoolArray:
        tails = counts.lower_tail(lambda x: most.at_most(parameter, x))
        return np.asarray(tails <= counts.miss / 2)

    low = _bisect(too_small, limits[0], limits[1], whole=whole)
    high = _bisect(too_large, limits[1], limits[0], whole=whole)
    # Noise far outside of what is possible rejects everything: the nearest end is left.
    return np.stack([np.minimum(low, high), np.maximum(low, high)], axis=-1)


def _bisect(
    rejected: Callable[[FloatArray], BoolArray],
    outer: FloatArray,
    inner: FloatArray,
    *,
    whole: bool,
) -> FloatArray:
    """Return where rejection ends, seen from `outer`; `outer` where it never begins."""
    begins = rejected(outer)
    never_ends = rejected(inner)
    last, first = outer.astype(np.float64), inner.astype(np.float64)
    gap = float(np.abs(inner - outer).max(initial=0.0))
    steps = math.ceil(math.log2(gap + 1.0)) + 1 if whole else HALVINGS
    for _ in range(steps):
        middle = 0.5 * (last + first)
        if whole:
            # Rounded towards the rejected end, so that the two come to stand side by
            # side.
            middle = np.where(last < first, np.floor(middle), np.ceil(middle))
        out = rejected(middle)
        last, first = np.where(out, middle, last), np.where(out, first, middle)
    # Side by side, a middle is the rejected end itself, and stays it.
    ended = first if whole else last
    return np.where(begins, np.where(never_ends, inner, ended), outer)


def sampling_half_widths(
    spread: Spread, variance: FloatArray, miss: float, steps: FloatArray
) -> FloatArray:
    """Return half-widths of noise and an independent normal variable: PN3, PN18.

    Parameters
    ----------
    spread : Spread
        The law of the noise.
    variance : ndarray of float64, shape (queries,)
        The variance of the normal variable, which stands for the sampling, or a number
        above it.
    miss : float
        The probability that both together exceed the half-width.
    steps : ndarray of float64, shape (queries,)
        How far one record moves what is sampled, at most.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths.
    """
    joint = noise_half_widths(spread.plus(variance), miss)
    return np.minimum(joint, many_steps_half_widths(spread, variance, miss, steps))


FEWEST_STEPS = 30.0
"""A normal law alone is taken from the variance of so many records on.

Of Poisson counts with means up to 400, whose variance was read off the count, at most
5.4 % lay outside of 95 % with half a step added, and 59 % where nothing was asked of
the variance: the law of that count, added up.
"""
SMALLEST_STEP = 0.02
"""Noise up to this many standard deviations of the normal variable is one stretch."""
STRETCH = 1.01
"""Ratio of the ends of the stretches behind it."""
WIDENED = 1.5
"""Half-widths up to so many times that of the normal variable are looked at."""
LOOKED_AT = 401
"""How many of them."""
LARGEST_MISS = 0.25
"""Up to this miss the bound of little noise is proved: its half-width is above 1."""


def many_steps_half_widths(
    spread: Spread, variance: FloatArray, miss: float, steps: FloatArray
) -> FloatArray:
    """Return half-widths by Lemma PN18 where the sampling is one of many records.

    What a sample counts moves by steps, and few of them have no normal law: where the
    mean is small, the count is often 0, and so is a variance that is read off it. The
    table of Lemma PN3 allows for half a step of every noisy row, which is room enough
    for that; this bound allows for nothing, and leaves such answers to it.

    Parameters
    ----------
    spread : Spread
        The law of the noise.
    variance : ndarray of float64, shape (queries,)
        The variance of the sampling, or a number above it.
    miss : float
        The probability that both together exceed the half-width.
    steps : ndarray of float64, shape (queries,)
        How far one record moves what is sampled, at most.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths, with half a step; infinite where the variance is less than that
        of 30 steps, or `small_noise_half_widths` is.
    """
    half = small_noise_half_widths(spread, variance, miss) + 0.5 * steps
    return np.where(variance >= FEWEST_STEPS * steps**2, half, np.inf)


def half_step_of_few(variance: FloatArray, steps: FloatArray) -> FloatArray:
    """Return half a step where the variance is that of less than 30, and else 0.

    Of a tenth of a record expected one is drawn in a tenth of all samples, which is
    farther off than the normal law of its variance reaches.

    Parameters
    ----------
    variance : ndarray of float64, shape (queries,)
        The variance of the sampling at the number that is tried.
    steps : ndarray of float64, shape (queries,)
        How far one record moves what is sampled, at most.

    Returns
    -------
    ndarray of float64, shape (queries,)
        What is added to half-widths.
    """
    return np.where(variance < FEWEST_STEPS * steps**2, 0.5 * steps, 0.0)


def variance_of_few(
    above: FloatArray, seen: FloatArray, steps: FloatArray, miss: float
) -> FloatArray:
    """Return a variance that is read off a sample, and no less than few records hide.

    Of a rare kind a sample may hold no record, and then shows no variance. A Poisson
    count of which k was seen has a mean of up to k + z^2 / 2 + z sqrt(k + z^2 / 4), the
    score bound of a normal law, z its distance at the miss:

        seen          0      1      5     10     20     30 steps
        taken       3.8    5.7   11.7   18.3   30     30 or more

    From 30 steps on the variance that was seen counts alone.

    Parameters
    ----------
    above : ndarray of float64, shape (queries,)
        The variance that was seen, from above over its noise.
    seen : ndarray of float64, shape (queries,)
        Its noisy estimate.
    steps : ndarray of float64, shape (queries,)
        How far one record moves what is sampled, at most.
    miss : float
        The miss of the interval in which it is used.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The variances.

    Examples
    --------
    >>> nothing, one = np.zeros(1), np.ones(1)
    >>> round(float(variance_of_few(nothing, nothing, one, 0.05)[0]), 2)
    3.84
    """
    distance = -NormalDist().inv_cdf(min(miss, 1.0) / 2.0)
    square = steps**2
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.where(square > 0.0, np.maximum(seen, 0.0) / square, FEWEST_STEPS)
    part = distance**2 / 4.0
    hidden = count + 2.0 * part + distance * np.sqrt(count + part)
    floor = square * np.minimum(hidden, FEWEST_STEPS)
    return np.asarray(np.maximum(np.maximum(above, 0.0), floor))


@lru_cache(maxsize=256)
def _room_for_noise(miss: float) -> tuple[FloatArray, FloatArray]:
    """Return half-widths h of a standard normal variable, and noise that fits in them.

    Noise of the variance r, whatever its law, leaves h with at most 2 Q(h) + K(h) r, Q
    the upper tail of the normal law: Lemma PN18. So (miss - 2 Q(h)) / K(h) fits beside
    a variance of 1. A smaller variance makes h a larger h' in its own units, and r as
    much larger as the square of h'; what fits is what fits beside all of them.
    """
    from scipy.special import ndtr, ndtri

    least = -float(ndtri(miss / 2.0))
    halves = np.linspace(least, WIDENED * least, LOOKED_AT)[:, None]
    stretches = math.ceil(math.log(4.0 * WIDENED * least / SMALLEST_STEP, STRETCH))
    places = SMALLEST_STEP * STRETCH ** np.arange(stretches + 1)[None, :]
    outside = 2.0 * ndtr(-halves[:, 0])
    # g(z) = P(|G + z| > h) grows with |z|: on a stretch its right end is the largest.
    grown = ndtr(places[:, 1:] - halves) + ndtr(-places[:, 1:] - halves)
    far = ((grown - outside[:, None]) / places[:, :-1] ** 2).max(axis=1)
    # Behind the last stretch g is at most 1.
    last = 1.0 / places[0, -1] ** 2
    # Near 0, half of the second derivative, x d(x) added up at h - z and h + z; it
    # falls from x = 1 on.
    near = 0.5 * sum(
        ends * np.exp(-0.5 * ends**2) / math.sqrt(2.0 * math.pi)
        for ends in (halves[:, 0] - SMALLEST_STEP, halves[:, 0])
    )
    slope = np.maximum(np.maximum(far, near), last)
    squares = halves[:, 0] ** 2
    # Of every h' up to the next one: by how much r has grown there, at most.
    steepest = slope * np.append(squares[1:], 0.0)
    # Of all larger ones: noise inside h' counts as beside this h, all other as a miss.
    steepest[-1] = max(slope[-1] * squares[-1], 1.0)
    beside_each = (miss - outside) / steepest
    beside_all = np.minimum.accumulate(beside_each[::-1])[::-1]
    return halves[:, 0], squares * beside_all


def small_noise_half_widths(
    spread: Spread, variance: FloatArray, miss: float
) -> FloatArray:
    """Return half-widths of a normal variable with little noise beside it: Lemma PN18.

    Parameters
    ----------
    spread : Spread
        The law of the noise, of which the variance alone is read.
    variance : ndarray of float64, shape (queries,)
        The variance of the normal variable, or a number above it.
    miss : float
        The probability that both together exceed the half-width.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths; infinite where the noise is too large for this bound, or the
        miss for its proof.

    Examples
    --------
    Without noise it is that of the normal law:

    >>> silent = Spread(*(np.zeros(1) for _ in range(5)), 1.0, 0)
    >>> round(float(small_noise_half_widths(silent, np.array([4.0]), 0.05)[0]), 2)
    3.92
    """
    if miss > LARGEST_MISS:
        return np.full(variance.shape, np.inf)
    halves, room = _room_for_noise(miss)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0.0, spread.variance / variance, np.inf)
    at = np.searchsorted(room, ratio)
    fits = at < halves.size
    reaches = halves[np.minimum(at, halves.size - 1)] * np.sqrt(variance)
    return np.where(fits, reaches, np.inf)


def _up(x: FloatArray) -> FloatArray:
    """Return the least whole numbers that are x or more, but for rounding."""
    rounded: FloatArray = np.ceil(x - SLACK * (1.0 + np.abs(x)))
    return rounded


def _down(x: FloatArray) -> FloatArray:
    """Return the largest whole numbers that are x or less, but for rounding."""
    rounded: FloatArray = np.floor(x + SLACK * (1.0 + np.abs(x)))
    return rounded


def _binomial_at_least(
    draws: FloatArray, chance: FloatArray, least: FloatArray
) -> FloatArray:
    """Return P(Bin(draws, chance) >= least) for whole numbers."""
    from scipy.special import betainc

    inside = np.clip(least, 1.0, np.maximum(draws, 1.0))
    tail = betainc(inside, np.maximum(draws - inside + 1.0, 1.0), chance)
    return np.where(least <= 0.0, 1.0, np.where(least > draws, 0.0, tail))
