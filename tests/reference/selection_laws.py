"""Exact laws of the private choices of the baselines, from their definitions.

Every path of every choice is written out, on a handful of cells. Costs are exact
fractions rounded down to the public grid, as the proof pages say; probabilities are
kept as logarithms, so that rare choices keep their digits. A law maps what is chosen to
the logarithm of its probability.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
from scipy.special import logsumexp


def log_chances(costs, rate, prior=None):
    """Return log-probabilities of the exponential mechanism: exp(-rate * cost)."""
    weights = [-float(rate * (cost - min(costs))) for cost in costs]
    if prior is not None:
        weights = [one + other for one, other in zip(weights, prior, strict=True)]
    total = logsumexp(weights)
    return [one - total for one in weights]


def summed(paths):
    """Add up the probabilities of paths, pairs of a choice and a log-probability."""
    law = {}
    for choice, chance in paths:
        law[choice] = np.logaddexp(law.get(choice, -math.inf), chance)
    return law


def largest_log_ratio(first, second):
    """Return how far two laws are apart; infinite if one knows other choices."""
    if first.keys() != second.keys():
        return math.inf
    return max(abs(first[one] - second[one]) for one in first)


def labels_between(edges):
    """Return the bucket of each cell."""
    return tuple(
        number
        for number, (start, end) in enumerate(itertools.pairwise(edges))
        for _ in range(start, end)
    )


# EFPA: how many frequencies are kept.


def dropped_norm(counts, kept):
    """Return the L2 norm of the coefficients above a frequency, unit-length rows."""
    cells = len(counts)
    energy = mpmath.mpf(0)
    for frequency in range(kept + 1, cells // 2 + 1):
        angles = [2 * mpmath.pi * frequency * cell / cells for cell in range(cells)]
        alone = 2 * frequency == cells
        unit = mpmath.sqrt(mpmath.mpf(1 if alone else 2) / cells)
        waves = (mpmath.cos,) if alone else (mpmath.cos, mpmath.sin)
        for wave in waves:
            row = sum(
                count * wave(angle) for count, angle in zip(counts, angles, strict=True)
            )
            energy += (unit * row) ** 2
    return mpmath.sqrt(energy)


def frequencies_law(counts, noise, epsilon, *, moves):
    """Return the law of the highest frequency kept.

    The cost is the root of dropped energy and public noise energy, in steps of 1/64;
    it moves by the norm of the change of the counts and the rounding of a transform.
    """
    costs = [
        int(mpmath.floor(64 * mpmath.hypot(dropped_norm(counts, kept), one)))
        for kept, one in enumerate(noise)
    ]
    norm = Fraction(141422, 100000) if moves else Fraction(1)
    sensitivity = math.ceil(64 * (norm + Fraction(1, 128)))
    chances = log_chances(costs, Fraction(epsilon) / (2 * sensitivity))
    return dict(enumerate(chances))


# P-HP: cuts in two, level by level, then how many.


def deviation(cells, bits):
    """Return the distances from the mean, rounded down to multiples of 2^-bits."""
    mean = Fraction(sum(cells), len(cells))
    exact = sum(abs(one - mean) for one in cells)
    return math.floor(exact * 2**bits)


def bisection_law(counts, *, price, levels, epsilon, stop_share=Fraction(1, 2), bits=8):
    """Return the law of the buckets; `epsilon` pays for one record added or removed."""
    for_number = stop_share * epsilon
    for_level = (epsilon - for_number) / levels
    rates = [part / 4 / 2**bits for part in (for_level, for_number)]
    priced = round(price * 2**bits)

    @cache
    def cost(start, end):
        return deviation(counts[start:end], bits) + priced

    @cache
    def options(start, end):
        """List what may become of a cluster, with log-probabilities."""
        middles = [(), *((middle,) for middle in range(start + 1, end))]
        costs = [
            sum(cost(*pair) for pair in itertools.pairwise([start, *middle, end]))
            for middle in middles
        ]
        return list(zip(middles, log_chances(costs, rates[0]), strict=True))

    def drawn(clusters, cuts, level, chance):
        """Yield all ways to cut, with the order in which the cuts were made."""
        if level == levels or not clusters:
            yield cuts, chance
            return
        for made in itertools.product(*(options(*cluster) for cluster in clusters)):
            new = [middle for middles, _ in made for middle in middles]
            below = []
            for (start, end), (middles, _) in zip(clusters, made, strict=True):
                edges = [start, *middles, end] if middles else []
                below += itertools.pairwise(edges)
            divisible = [pair for pair in below if pair[1] - pair[0] > 1]
            together = chance + sum(one for _, one in made)
            yield from drawn(divisible, [*cuts, *new], level + 1, together)

    def paths():
        for cuts, chance in drawn([(0, len(counts))], [], 0, 0.0):
            kept = [[0, *sorted(cuts[:n]), len(counts)] for n in range(len(cuts) + 1)]
            costs = [
                sum(cost(*pair) for pair in itertools.pairwise(edges)) for edges in kept
            ]
            numbers = log_chances(costs, rates[1])
            for edges, one in zip(kept, numbers, strict=True):
                yield labels_between(edges), chance + one

    return summed(paths())


# StructureFirst: borders drawn from the last to the first.


def squared_error(cells, bits):
    """Return the squared distances from the mean, down to multiples of 2^-bits."""
    mean = Fraction(sum(cells), len(cells))
    return math.floor(sum((one - mean) ** 2 for one in cells) * 2**bits)


def k_buckets_law(counts, *, buckets, largest, epsilon, reach=None, bits=8):
    """Return the law of the buckets; `epsilon` pays for one record added or removed."""
    cut = [min(one, largest) for one in counts]
    reach = 2 * largest if reach is None else reach
    rate = Fraction(epsilon) / ((buckets - 1) * reach) / 2**bits

    @cache
    def error(start, end):
        return squared_error(cut[start:end], bits)

    @cache
    def least(rest, end):
        if rest == 1:
            return error(0, end)
        return min(
            least(rest - 1, middle) + error(middle, end)
            for middle in range(rest - 1, end)
        )

    def drawn(rest, edges, chance):
        if rest == 0:
            yield labels_between([0, *edges]), chance
            return
        offered = list(range(rest, edges[0]))
        costs = [least(rest, border) + error(border, edges[0]) for border in offered]
        prior = [math.log(math.comb(border - 1, rest - 1)) for border in offered]
        chances = log_chances(costs, rate, prior)
        for border, one in zip(offered, chances, strict=True):
            yield from drawn(rest - 1, [border, *edges], chance + one)

    return summed(drawn(buckets - 1, [len(counts)], 0.0))


# MWEM: the query that is answered worst.


def query_errors(counts, queries, estimated):
    """Return how far estimates are off; a query is a row of whole coefficients."""
    answers = [
        sum(one * count for one, count in zip(query, counts, strict=True))
        for query in queries
    ]
    return [abs(a - round(b)) for a, b in zip(answers, estimated, strict=True)]


def worst_query_law(counts, queries, estimated, *, epsilon, reach):
    """Return the law of the query chosen, by weights exp(epsilon error / 2 reach)."""
    errors = query_errors(counts, queries, estimated)
    rate = Fraction(epsilon) / (2 * reach)
    chances = log_chances([-one for one in errors], rate)
    return dict(enumerate(chances))


def noisy_max_law(scores, scale):
    """Return the law of the largest score after Laplace noise, by integration."""
    low, high = min(scores) - 50 * scale, max(scores) + 50 * scale
    points = np.linspace(low, high, 100_001)
    below = []
    density = []
    for score in scores:
        off = (points - score) / scale
        density.append(np.exp(-np.abs(off)) / (2 * scale))
        half = 0.5 * np.exp(-np.abs(off))
        below.append(np.where(off < 0, half, 1 - half))
    law = {}
    for number in range(len(scores)):
        others = np.prod([one for j, one in enumerate(below) if j != number], axis=0)
        law[number] = math.log(np.trapezoid(density[number] * others, points))
    return law


# AHP: clusters of noisy counts.


def log_noise(most, scale):
    """Return ln P(Z = z) of discrete Laplace noise for z from -most to most."""
    ratio = math.exp(-1 / scale)
    places = np.abs(np.arange(-most, most + 1))
    return places * math.log(ratio) + math.log((1 - ratio) / (1 + ratio))


def clusters_law(counts, noise_on_cells, draws, clusters_of, scale, most):
    """Return the law of what `clusters_of` makes of noisy counts, and what is left out.

    Every draw is written out from -most to most; `noise_on_cells` says what a vector of
    draws adds to the cells.
    """
    chances = log_noise(most, scale)
    paths = []
    for drawn in itertools.product(range(-most, most + 1), repeat=draws):
        noisy = np.array(counts) + noise_on_cells(np.array(drawn))
        chance = sum(chances[one + most] for one in drawn)
        paths.append((clusters_of(tuple(noisy.tolist())), chance))
    law = summed(paths)
    return law, 1 - math.exp(logsumexp(list(law.values())))
