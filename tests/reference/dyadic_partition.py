"""Laws of the sampled partition by enumeration of all derivations.

A law maps a partition (the tuple of its bucket starts) to a number.
"""

from __future__ import annotations

import itertools

import mpmath

from . import exponential_choice
from .aligned_costs import pinball_cost


def _combine(left, right):
    joined = {}
    for first, first_weight in left.items():
        for second, second_weight in right.items():
            joined[first + second] = first_weight * second_weight
    return joined


def _add(law, partition, weight):
    law[partition] = law.get(partition, mpmath.mpf(0)) + weight


def with_outliers(start, end, chances):
    """Yield partitions of a run and their weights.

    `chances` are those of each cell, to be one of the rest and to stand alone.
    """
    for alone in itertools.product((0, 1), repeat=end - start):
        weight = mpmath.fprod(
            pair[one] for pair, one in zip(chances, alone, strict=True)
        )
        places = [start + cell for cell, one in enumerate(alone) if one]
        cuts = {start, *places, *(place + 1 for place in places)} - {end}
        yield tuple(sorted(cuts)), weight


def intended_law(
    x,
    rate,
    penalty,
    quantile=(3, 4),
    base=(0.49, 0.49, 0.02),
    length_weights=None,
    outliers=None,
):
    """Return the law that the documentation states, in real numbers."""
    cells = len(x)
    levels = (cells - 1).bit_length()
    factors = [1] * (levels + 1) if length_weights is None else length_weights

    def bucket(start, level):
        inside = [int(count) for count in x[start : start + (1 << level)]]
        if not inside:
            return mpmath.mpf(1)
        cost = mpmath.mpf(pinball_cost(inside, *quantile)) / quantile[1]
        return mpmath.exp(-mpmath.mpf(rate) * (factors[level] * cost + penalty))

    def law_of(start, height):
        half = (1 << height) // 2
        if height == 0:
            return {(start,): bucket(start, 0)}
        if start + half >= cells:
            return law_of(start, height - 1)
        halves = _combine(law_of(start, height - 1), law_of(start + half, height - 1))
        law = {partition: base[1] * weight for partition, weight in halves.items()}
        _add(law, (start,), base[0] * bucket(start, height))
        shares = [mpmath.mpf(2) ** -k for k in range(height)]
        for k in range(height):
            starts = range(start, min(start + 2 * half, cells), 1 << k)
            weight = mpmath.fprod(bucket(window, k) for window in starts)
            share = base[2] * shares[k] / mpmath.fsum(shares)
            _add(law, tuple(starts), share * weight)
        if outliers is not None and height >= outliers.height:
            end = min(start + 2 * half, cells)
            for part in outliers.shares:
                alone = mpmath.mpf(part.numerator) / part.denominator
                paid = mpmath.exp(-2 * mpmath.mpf(rate) * penalty)
                record = mpmath.mpf(rate) * quantile[0] / quantile[1]
                chances = [
                    ((1 - alone) * mpmath.exp(-record * int(count)), alone * paid)
                    for count in x[start:end]
                ]
                first = outliers.weight * mpmath.exp(-mpmath.mpf(rate) * penalty)
                for partition, weight in with_outliers(start, end, chances):
                    _add(law, partition, first * weight)
        return law

    law = law_of(0, levels)
    total = mpmath.fsum(law.values())
    return {partition: weight / total for partition, weight in law.items()}


def stored_law(rows, cells, fraction_bits, runs=()):
    """Return the law of the walk, given each node's stored log-weights.

    `rows` maps a heap number to the log-weights of that node's choices, `runs` has for
    each share the log-weights of every cell, kept and alone.
    """
    levels = (cells - 1).bit_length()

    def law_of(node, height):
        start = (node << height) - (1 << levels)
        half = (1 << height) // 2
        if height == 0:
            return {(start,): mpmath.mpf(1)}
        if start + half >= cells:
            return law_of(2 * node, height - 1)
        chances = exponential_choice.probabilities(rows[node], fraction_bits)
        halves = _combine(
            law_of(2 * node, height - 1), law_of(2 * node + 1, height - 1)
        )
        law = {partition: chances[1] * weight for partition, weight in halves.items()}
        _add(law, (start,), chances[0])
        end = min(start + 2 * half, cells)
        for k, chance in enumerate(chances[2 : 2 + height]):
            _add(law, tuple(range(start, end, 1 << k)), chance)
        for kind, chance in enumerate(chances[2 + height :]):
            pairs = [
                exponential_choice.probabilities(row, fraction_bits)
                for row in runs[kind][start:end]
            ]
            for partition, weight in with_outliers(start, end, pairs):
                _add(law, partition, chance * weight)
        return law

    return law_of(1, levels)


def largest_log_ratio(law, other):
    """Return the largest |ln P(partition) / P'(partition)|."""
    assert law.keys() == other.keys()
    return max(abs(mpmath.log(law[key] / other[key])) for key in law)
