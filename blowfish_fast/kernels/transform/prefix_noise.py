"""Moments of the noise in queries over running totals that were measured.

A query takes a running total at a border as often as its coefficients fall there:

    coefficients      0  0  1  1  1  0        values   -1 at border 2, +1 at border 5
    borders          0  1  2  3  4  5  6
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

    Parameters
    ----------
    pointers : (queries + 1,) int64
        Query `i` owns the borders ``pointers[i]`` up to ``pointers[i + 1]``.
    borders, values : (steps,) int64, float64
        How often the total up to each border counts; no border twice in a query.
    variances, widths : (borders,) float64
        Of the noise at each border; 0 where there is none.
    least : float
        The scale of equal draws.

    Returns
    -------
    (4, queries) float64
        Sum of a_i^2 times the variance; sum of (a_i b_i)^2; largest |a_i b_i|; sum of
        a_i^2 over borders with noise.
    (queries,) int64
        Number of draws where all are of scale `least` and count once, up to their
        sign; otherwise -1.
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
