"""Best merge of neighbouring noisy cells: squared error plus a price per bucket.

Serves NoiseFirst, which merges cells after the noise was added. Over all partitions of
the line into buckets it minimises the squared distances to the buckets' means plus
`price` for each bucket.

The last bucket's mean is kept open. For every possible mean, one begin of the last
bucket is best; these regions are the pieces:

    mean of the last bucket   -----------|-----------|------->
    best begin                   cell 7      cell 3     cell 7

A new cell adds a parabola to all pieces. The least point of them all is the cost of
the best partition so far; a new bucket may begin after it at that cost plus the price,
and takes over where pieces lie higher. Begins that own no region never return. The
number of pieces stays small in practice (a dozen or so), so the whole is near-linear;
at worst it is quadratic.
"""

from __future__ import annotations

import math

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import as_input, kernel

LEFT, RIGHT, CELLS, MEAN, COST = range(5)
"""What a piece is: its region; size, mean and cost of the last bucket, all told."""


@kernel
def _best_begins(values: FloatArray, price: float) -> IntArray:
    """Return, for each end, where the last bucket of the best partition begins."""
    begins = np.empty(values.size, dtype=np.int64)
    room = 64
    pieces = np.empty((room, 5))
    owners = np.empty(room, dtype=np.int64)
    spare = np.empty((room, 5))
    spare_owners = np.empty(room, dtype=np.int64)
    pieces[0, LEFT] = -np.inf
    pieces[0, RIGHT] = np.inf
    pieces[0, CELLS] = 0.0
    pieces[0, MEAN] = 0.0
    pieces[0, COST] = price
    owners[0] = 0
    count = 1
    for end in range(values.size):
        value = values[end]
        best = 0
        for piece in range(count):
            pieces[piece, CELLS] += 1.0
            off = value - pieces[piece, MEAN]
            pieces[piece, MEAN] += off / pieces[piece, CELLS]
            pieces[piece, COST] += off * (value - pieces[piece, MEAN])
            if pieces[piece, COST] < pieces[best, COST]:
                best = piece
        begins[end] = owners[best]
        # From here on the last bucket may also begin anew, at the same cost whatever
        # its mean.
        anew = pieces[best, COST] + price
        if 2 * count + 1 > room:
            room = 4 * count
            spare = np.empty((room, 5))
            spare_owners = np.empty(room, dtype=np.int64)
        kept = 0
        reached = -np.inf
        for piece in range(count):
            below = anew - pieces[piece, COST]
            if below <= 0.0:
                continue
            reach = math.sqrt(below / pieces[piece, CELLS])
            left = max(pieces[piece, LEFT], pieces[piece, MEAN] - reach)
            right = min(pieces[piece, RIGHT], pieces[piece, MEAN] + reach)
            if left >= right:
                continue
            if left > reached:
                spare[kept, LEFT] = reached
                spare[kept, RIGHT] = left
                spare[kept, CELLS] = 0.0
                spare[kept, MEAN] = 0.0
                spare[kept, COST] = anew
                spare_owners[kept] = end + 1
                kept += 1
            spare[kept, LEFT] = left
            spare[kept, RIGHT] = right
            spare[kept, CELLS] = pieces[piece, CELLS]
            spare[kept, MEAN] = pieces[piece, MEAN]
            spare[kept, COST] = pieces[piece, COST]
            spare_owners[kept] = owners[piece]
            kept += 1
            reached = right
        if reached < np.inf:
            spare[kept, LEFT] = reached
            spare[kept, RIGHT] = np.inf
            spare[kept, CELLS] = 0.0
            spare[kept, MEAN] = 0.0
            spare[kept, COST] = anew
            spare_owners[kept] = end + 1
            kept += 1
        if pieces.shape[0] < room:
            pieces = np.empty((room, 5))
            owners = np.empty(room, dtype=np.int64)
        pieces, spare = spare, pieces
        owners, spare_owners = spare_owners, owners
        count = kept
    return begins


@kernel
def _follow(begins: IntArray) -> IntArray:
    """Return the edges of the best partition, from the last cell back."""
    edges = np.empty(begins.size + 1, dtype=np.int64)
    place = begins.size
    edges[place] = begins.size
    end = begins.size
    while end > 0:
        end = begins[end - 1]
        place -= 1
        edges[place] = end
    return edges[place:].copy()


def merge_buckets(values: AnyArray, price: float) -> IntArray:
    """Return the edges of the partition of least squared error plus prices.

    Parameters
    ----------
    values : (n,) float64
        Finite.
    price : float
        Cost of a bucket. Nothing is merged at 0.

    Returns
    -------
    (k + 1,) int64
        From 0 to n.

    Examples
    --------
    >>> merge_buckets(np.array([1.0, 2.0, 1.0, 9.0, 8.0]), 3.0)
    array([0, 3, 5])
    """
    cells: FloatArray = as_input(values, np.float64)
    if cells.ndim != 1 or cells.size == 0 or not np.isfinite(cells).all():
        raise InputError(
            f"a row of finite values is merged, not shape {cells.shape} or infinities"
        )
    if not price > 0:
        return np.arange(cells.size + 1, dtype=np.int64)
    return _follow(_best_begins(cells, float(price)))
