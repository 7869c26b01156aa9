"""Moments of the noise in queries over running totals that were measured.

A query takes the running total at a border as often as its coefficients fall there.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._jit import kernel


@kernel
def border_moments(
    pointers: IntArray,
    borders: IntArray,
    values: FloatArray,
    variances: FloatArray,
    widths: FloatArray,
    least: float,
) -> tuple[FloatArray, IntArray]:
    """Return variance, square, largest part and steps of each query, and its terms.

    Query `i` owns the distinct borders ``pointers[i]`` up to ``pointers[i + 1]`` and
    takes the total up to each `values` times. Terms are the number of draws where all
    have the scale `least` and count once, up to sign; otherwise -1.
    """
    queries = pointers.size - 1
    moments = np.zeros((4, queries))
    terms = np.zeros(queries, dtype=np.int64)
    for query in range(queries):
        for at in range(pointers[query], pointers[query + 1]):
            size, width = abs(values[at]), widths[borders[at]]
            if size == 0.0 or width == 0.0:
                continue
            moments[0, query] += size * size * variances[borders[at]]
            moments[1, query] += (size * width) ** 2
            moments[2, query] = max(moments[2, query], size * width)
            moments[3, query] += size * size
            if size != 1.0 or width != least:
                terms[query] = -1
            elif terms[query] >= 0:
                terms[query] += 1
    return moments, terms


@kernel
def range_borders(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return ranges whose end cells count in part as `border_moments` takes queries.

    A range takes the totals before and after its first cell and its last one.
    """
    pointers = np.arange(0, 4 * first.size + 1, 4)
    borders = np.empty(4 * first.size, dtype=np.int64)
    values = np.empty(4 * first.size)
    for query in range(first.size):
        at, start, end = 4 * query, first_fraction[query], last_fraction[query]
        left, right = first[query], last[query]
        borders[at], borders[at + 1] = left, left + 1
        borders[at + 2], borders[at + 3] = right, right + 1
        # Where the ends are one cell or neighbours, the two inner borders are one.
        apart = right > left + 1
        inner = 1.0 if apart else (end if right > left else 0.0)
        values[at], values[at + 1] = -start, start - inner
        values[at + 2] = 1.0 - end if apart else 0.0
        values[at + 3] = end if right > left else 0.0
    return pointers, borders, values
