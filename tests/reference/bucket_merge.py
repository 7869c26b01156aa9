"""Least squared error plus prices over all partitions, by the plain recursion."""

from __future__ import annotations

import numpy as np


def cost(values, edges, price):
    """Return the cost of one partition."""
    parts = np.split(np.asarray(values, dtype=np.float64), edges[1:-1])
    return sum(np.square(part - part.mean()).sum() + price for part in parts)


def least_cost(values, price):
    """Return the least cost over all partitions."""
    best = [0.0]
    for end in range(1, len(values) + 1):
        best.append(
            min(
                best[start] + cost(values[start:end], [0, end - start], price)
                for start in range(end)
            )
        )
    return best[-1]
