"""Cheapest grouping of sorted values by the plain recursion."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from statistics import median_low


def group_cost(values, edges, price):
    """Return deviation from the medians plus price, of a grouping."""
    return sum(
        price + sum(abs(one - median_low(values[a:b])) for one in values[a:b])
        for a, b in pairwise(edges)
    )


def least_cost(values, price, largest, stretches=()):
    """Return the least cost of a grouping."""
    least = [0]
    for end in range(1, len(values) + 1):
        first = max([end - largest, 0, *(cut for cut in stretches if cut < end)])
        least.append(
            min(
                least[start] + group_cost(values, [start, end], price)
                for start in range(first, end)
            )
        )
    return least[-1]


def grouping_cost(values, edges, price, shared):
    """Return squared distances from the means, prices and shared costs, exactly."""
    cost = Fraction(0)
    for start, end in pairwise(edges):
        group = [Fraction(one) for one in values[start:end]]
        mean = sum(group) / len(group)
        cost += sum((one - mean) ** 2 for one in group)
        cost += Fraction(price) + Fraction(shared) / len(group)
    return cost


def least_grouping_cost(values, price, shared, stretches=()):
    """Return the least cost of a grouping that crosses no stretch."""
    least = [Fraction(0)]
    for end in range(1, len(values) + 1):
        first = max([0, *(cut for cut in stretches if cut < end)])
        least.append(
            min(
                least[start] + grouping_cost(values, [start, end], price, shared)
                for start in range(first, end)
            )
        )
    return least[-1]
