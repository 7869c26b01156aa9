"""Spread the total of each bucket evenly over its cells.

Threads share the cells, not the buckets, so that one long bucket keeps all of them at
work; a piece begins and ends anywhere within a bucket:

    edges      0       3   4                 9
    totals     6       5   10
    cells      2  2  2 | 5 | 2  2  2  2  2
    pieces     [ first     |   ][ second    ]
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.kernels._arguments import as_input
from blowfish_fast.kernels._jit import kernel

PIECE_CELLS = 2**18
"""A piece has so many cells: two megabytes, which take longer than to hand it over."""


@kernel
def _spread_piece(
    totals: FloatArray,
    edges: IntArray,
    bucket: int,
    begin: int,
    end: int,
    cells: FloatArray,
) -> None:
    """Fill the cells [begin, end), the first of which lies in `bucket`."""
    while begin < end:
        each = totals[bucket] / (edges[bucket + 1] - edges[bucket])
        stop = min(edges[bucket + 1], end)
        for cell in range(begin, stop):
            cells[cell] = each
        begin = stop
        bucket += 1


def spread_evenly(
    totals: FloatArray, edges: IntArray, *, threads: int = 1
) -> FloatArray:
    """Give each cell the total of its bucket over the number of its cells.

    Parameters
    ----------
    totals : ndarray of float64, shape (buckets,)
        The total of each bucket.
    edges : ndarray of int64, shape (buckets + 1,)
        Bucket b holds the cells from ``edges[b]`` up to ``edges[b + 1]``; the edges
        rise strictly from 0.
    threads : int, default 1
        How many threads to use; the result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (cells,)
        The cells.

    Examples
    --------
    >>> spread_evenly(np.array([6.0, 5.0, 10.0]), np.array([0, 3, 4, 9]))
    array([2., 2., 2., 5., 2., 2., 2., 2., 2.])
    """
    totals, edges = as_input(totals, np.float64), as_input(edges, np.int64)
    cells = np.empty(int(edges[-1]))
    begins = np.arange(0, cells.size, PIECE_CELLS)
    buckets = np.searchsorted(edges, begins, side="right") - 1

    def fill(bucket: int, begin: int) -> None:
        end = min(begin + PIECE_CELLS, cells.size)
        _spread_piece(totals, edges, bucket, begin, end, cells)

    pieces = buckets.tolist(), begins.tolist()
    if threads < 2 or begins.size < 2:
        for bucket, begin in zip(*pieces, strict=True):
            fill(bucket, begin)
    else:
        with ThreadPoolExecutor(min(threads, begins.size)) as pool:
            list(pool.map(fill, *pieces))
    return cells
