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
