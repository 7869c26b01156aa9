"""Least-cost partition for costs that the caller has worked out.

`least_cost_partition` knows two costs of a bucket. Whoever has another one hands over a
table of costs and the lengths that buckets may have:

    place e        0    1    2    3    4
    length 1       -    5    1    1    5     costs[0, e]: the bucket [e - 1, e)
    length 2       -    -    6    1    6     costs[1, e]: the bucket [e - 2, e)

    least[e] = min over k of least[e - lengths[k]] + costs[k, e]

    least          0    5    6    6   11     so: [0, 1) 5, [1, 3) 1, [3, 4) 5

Entries left of their first possible end (shown as -) are never read. The table is that
of the noise of the C entry ``blowfish_least_cost_partition``: place e belongs to the
bucket that ends before cell e, and place 0 is empty.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import whole_numbers
from blowfish_fast.kernels._jit import kernel

# Sums of int64 costs along a partition stay below this.
LARGEST_SUM = 1 << 62

# No buckets of the lengths end here.
UNREACHED = -1


@kernel
def _cheapest_ends(
    costs: AnyArray, lengths: IntArray, least: AnyArray, chosen: IntArray
) -> None:
    """Fill ``least[e]`` and the row of its last bucket, ``chosen[e]``, end by end."""
    for end in range(1, least.size):
        chosen[end] = UNREACHED
        # From long to short, and only what is cheaper replaces: ties go to the longest.
        for row in range(lengths.size - 1, -1, -1):
            start = end - lengths[row]
            if start < 0 or chosen[start] == UNREACHED:
                continue
            total = least[start] + costs[row, end]
            if chosen[end] == UNREACHED or total < least[end]:
                least[end] = total
                chosen[end] = row


def least_cost_partition_of_costs(
    costs: AnyArray, lengths: IntArray, noise: AnyArray | None = None
) -> IntArray:
    """Return the boundaries of the cheapest partition for costs of the caller's own.

    Among partitions of equal cost the one with the longest last bucket wins, then the
    longest last but one, and so on. It takes O(cells lengths) time and memory.

    Parameters
    ----------
    costs : ndarray of int64 or float64, shape (lengths, cells + 1)
        ``costs[k, e]`` is what the bucket ``[e - lengths[k], e)`` costs, prices
        included; not read where ``lengths[k] > e``. Whole numbers are added up exactly,
        floats as floats are.
    lengths : ndarray of int64, shape (lengths,)
        The lengths that buckets may have, increasing.
    noise : ndarray, shape of `costs`, optional
        Subtracted from the costs: whole numbers from whole numbers, or floats. None for
        no noise, and then the partition reads the data: it is not private. For a
        private one draw `geometric` noise of scale (how far one record moves this cost,
        plus how far it moves the costliest other one) / epsilon for *every* candidate,
        on whole costs, and clamp nothing.

    Returns
    -------
    ndarray of int64, shape (buckets + 1,)
        The boundaries, from 0 to the number of cells.

    Raises
    ------
    InputError
        If the shapes differ, a cost that is read is no number or infinite, sums would
        leave 64 bits, or no buckets of these lengths fill the cells.

    Examples
    --------
    >>> costs = np.array([[0, 5, 1, 1, 5], [0, 0, 6, 1, 6]])
    >>> least_cost_partition_of_costs(costs, [1, 2])
    array([0, 1, 3, 4])
    """
    sizes = whole_numbers(lengths)
    table = _as_table(costs, "costs")
    cells = table.shape[1] - 1
    increasing = sizes.ndim == 1 and sizes.size > 0 and sizes[0] >= 1
    if not increasing or (np.diff(sizes) <= 0).any() or sizes.size != len(table):
        raise InputError(
            "lengths are whole numbers from 1 that increase, one for a row of costs: "
            f"got {sizes.reshape(-1).tolist()[:8]} for {len(table)} rows"
        )
    # What lies before the first end of its length is not read, whatever it holds.
    unread = np.arange(cells + 1) < sizes[:, None]
    table = np.where(unread, 0, table)
    if noise is not None:
        drawn = _as_table(noise, "noise")
        if drawn.shape != table.shape:
            raise InputError(
                f"noise has the shape of costs, {table.shape}: got {drawn.shape}"
            )
        table = _less_noise(table, np.where(unread, 0, drawn), cells)
    _check_sums(table, cells)
    least = np.zeros(cells + 1, dtype=table.dtype)
    chosen = np.zeros(cells + 1, dtype=np.int64)
    _cheapest_ends(table, sizes, least, chosen)
    if chosen[cells] == UNREACHED:
        raise InputError(
            f"no buckets of lengths {sizes.tolist()[:8]} fill {cells} cells; let "
            "buckets have 1 cell, too"
        )
    boundaries = [cells]
    while boundaries[-1] > 0:
        boundaries.append(int(boundaries[-1] - sizes[chosen[boundaries[-1]]]))
    return np.array(boundaries[::-1], dtype=np.int64)


def _as_table(given: AnyArray, name: str) -> AnyArray:
    """Return a table of int64 or of float64."""
    table = np.asarray(given)
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "iuf":
        raise InputError(
            f"{name} are numbers of shape (lengths, cells + 1), place e for the bucket "
            f"that ends before cell e: got {table.dtype} of shape {table.shape}"
        )
    if table.dtype.kind == "u" and table.size and int(table.max()) >= LARGEST_SUM:
        raise InputError(f"{name} lie below 2^62: got {int(table.max())}")
    kind = np.float64 if table.dtype.kind == "f" else np.int64
    return np.ascontiguousarray(table, dtype=kind)


def _less_noise(table: AnyArray, drawn: AnyArray, cells: int) -> AnyArray:
    """Subtract; whole numbers only while no difference can leave 64 bits."""
    _check_sums(table, cells)
    _check_sums(drawn, cells)
    return table - drawn


def _check_sums(table: AnyArray, cells: int) -> None:
    """Refuse what cannot be added up along a partition."""
    if table.dtype.kind == "f":
        if not np.isfinite(table).all():
            raise InputError(
                "costs and noise must be finite: got an infinity or not-a-number"
            )
        return
    # Exact in Python's integers: the smallest int64 has no positive counterpart.
    largest = max(abs(int(table.max())), abs(int(table.min())))
    if largest * cells >= LARGEST_SUM:
        raise InputError(
            f"whole costs are added up in 64 bits: {cells} cells allow up to "
            f"{(LARGEST_SUM - 1) // cells}: got {largest}. Use a coarser grid or floats"
        )
