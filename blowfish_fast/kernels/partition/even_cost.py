"""Least total cost of a grid over all its partitions by halving, in whole numbers.

Serves the test that chooses between rectangles and an adaptive grid: what no affordable
partition makes even. From single cells up, a rectangle of the lattice is one bucket or
two halves along either axis, whichever costs least:

    best(node) = min(weight * cost + price,  two halves by rows,  two halves by columns)
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.kernels.window_costs.rectangle_costs import dyadic_rectangle_costs

WEIGHT_BITS = 16
"""A level weight of 1, as a whole number of bits."""


def counts_within(counts: IntArray) -> IntArray:
    """Cut counts at the public 2^42 / cells, so that no sum leaves 62 bits."""
    return np.minimum(counts, 2**42 // max(counts.size, 1))


def price_within(price: float, cells: int) -> int:
    """Return a price in units of 2^-18 records, cut at 2^60 / cells."""
    return min(round(max(price, 0.0) * 2.0 ** (WEIGHT_BITS + 2)), 2**60 // cells)


def least_even_cost(
    counts: IntArray,
    level_weights: list[list[float]],
    price: int,
    *,
    threads: int = 1,
) -> int:
    """Return the least sum of weighted pinball costs and prices, times 2^18, exactly.

    `counts` from `counts_within`; ``level_weights[i][j]`` in [0, 1], for buckets of 2^i
    by 2^j cells, is rounded down to a multiple of 2^-16; the price is in units of 2^-18
    records. One record more changes the result by -2^16 at least and 3 * 2^16 at most.
    O(n) after the costs, which take O(n log(rows) log(columns)).
    """
    costs = dyadic_rectangle_costs(counts, 3, 4, threads=threads)
    best: list[list[IntArray]] = []
    for tall, row in enumerate(costs):
        best.append([])
        for wide, cost in enumerate(row):
            weight = int(level_weights[tall][wide] * 2**WEIGHT_BITS)
            least = weight * cost + price
            if tall:
                np.minimum(least, _pairs(best[tall - 1][wide], 0), out=least)
            if wide:
                np.minimum(least, _pairs(best[tall][wide - 1], 1), out=least)
            best[tall].append(least)
    return int(best[-1][-1][0, 0])


def _pairs(values: IntArray, axis: int) -> IntArray:
    """Add neighbours along an axis; the last one stands alone if it has none."""
    return np.add.reduceat(values, np.arange(0, values.shape[axis], 2), axis=axis)
