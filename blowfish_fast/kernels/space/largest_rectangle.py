"""The largest sum, in size, of any rectangle of a grid of whole numbers.

Serves certificates about every range or rectangle. For each pair of rows the columns
between them are added up, and one pass along the columns (Kadane 1984) finds the
stretch of the largest and of the least sum:

    rows 1 .. 3    4 -7  2  5 -1        best stretch 2 + 5 = 7, least -7

O(rows^2 columns); a row of cells is a grid of one row.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.kernels._jit import as_input, kernel


@kernel
def _largest_sum(cells: IntArray) -> int:
    rows, columns = cells.shape
    best = 0
    totals = np.zeros(columns, dtype=np.int64)
    for top in range(rows):
        totals[:] = 0
        for bottom in range(top, rows):
            high, low = 0, 0
            for column in range(columns):
                totals[column] += cells[bottom, column]
                high = max(high + totals[column], 0)
                low = min(low + totals[column], 0)
                best = max(best, high, -low)
    return best


def largest_rectangle_sum(cells: IntArray) -> int:
    """Return the largest absolute sum over all rectangles of a line or a grid.

    Sums of all cells must fit int64.
    """
    grid = np.atleast_2d(np.asarray(cells, dtype=np.int64))
    if grid.shape[0] > grid.shape[1]:
        grid = grid.T
    return int(_largest_sum(as_input(grid, np.int64)))
