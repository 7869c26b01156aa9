"""Least-cost partition by the plain recursion, over exact costs and recorded noise."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from sortedcontainers import SortedList

from blowfish_fast.kernels.sampling.discrete_laplace import subtract_geometric

from .window_deviation import deviation
from .window_pinball import pinball


def hashed_words(seed):
    """Return a source of words: the position, mixed (splitmix64)."""

    def words(position, count):
        high, low = divmod(position, 2**64)
        state = (seed + high * 0xD1342543DE82EF95 + low) % 2**64
        word = np.arange(count, dtype=np.uint64) + np.uint64(state)
        word *= np.uint64(0x9E3779B97F4A7C15)
        word ^= word >> np.uint64(30)
        word *= np.uint64(0xBF58476D1CE4E5B9)
        word ^= word >> np.uint64(27)
        word *= np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))

    return words


def bucket_cost(cells, step, quantile=None):
    """Return the deviation or pinball cost, rounded down to whole steps."""
    cost = deviation(cells) if quantile is None else pinball(cells, *quantile)
    return floor(cost / Fraction(step))


def recorded_noise(words, position, scale, step):
    """Return the one draw that belongs to a position, in steps."""
    row = np.zeros(1, dtype=np.int64)
    subtract_geometric(row, words, position, scale / step)
    return -int(row[0])


def cheapest(cells, costs):
    """Return boundaries and cost of the best partition.

    `costs` maps (start, end) to the cost of a candidate. Ties go to the longest last
    bucket.
    """
    least = [0]
    last = [0]
    for end in range(1, cells + 1):
        candidates = [
            (least[start] + costs[start, end], start)
            for start in range(end)
            if (start, end) in costs
        ]
        cost, start = min(candidates)
        least.append(cost)
        last.append(start)
    boundaries = [cells]
    while boundaries[-1] > 0:
        boundaries.append(last[boundaries[-1]])
    return boundaries[::-1], least[cells]


def candidate_costs(
    cells, lengths, prices, step, *, scales=None, words=None, name=None, quantile=None
):
    """Return the cost of every candidate bucket, in steps.

    `prices` and `scales` go by position in `lengths`; the noise of a candidate is the
    draw at word (name << 40) + end, `name` being that position unless given.
    """
    costs = {}
    for index, length in enumerate(lengths):
        price = round(prices[index] / step)
        for end in range(length, len(cells) + 1):
            cost = bucket_cost(cells[end - length : end], step, quantile) + price
            if scales is not None:
                position = ((index if name is None else name(length)) << 40) + end
                cost -= recorded_noise(words, position, scales[index], step)
            costs[end - length, end] = cost
    return costs


def powers_up_to(cells):
    return [1 << level for level in range(cells.bit_length())]


def interval_costs(cells, step):
    """Return the floored deviation of all intervals from one sorted list per end."""
    costs = {}
    for end in range(1, len(cells) + 1):
        window = SortedList()
        for start in range(end - 1, -1, -1):
            window.add(int(cells[start]))
            mean = Fraction(sum(window), len(window))
            above = window[window.bisect_right(mean) :]
            exact = 2 * (sum(above) - len(above) * mean)
            costs[start, end] = floor(exact / Fraction(step))
    return costs
