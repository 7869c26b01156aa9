"""Pinball (quantile) cost of every aligned dyadic window, in exact integers.

Serves the sampled partition (`kernels.dyadic_partition`). For a quantile p/q the
pinball cost of a window is the least sum, over its cells, of p times what the count
has above a centre and q - p times what it lacks below; the best centre is the
p/q-quantile of the counts, which a sorted window shows. A merge sort from the bottom
sorts all windows of one length at a time:

    counts      3 0 | 2 2 | 7 1     | (2 cells missing)
    pairs       0 3 | 2 2 | 1 7     |
    fours       0 2   2 3 | 1 7     .
    all         0 1   2 2   3 7     .     .

Windows lie on the next power of two; a window cut by the end of the domain has the
cells it has, and one beyond the end does not exist. O(n log n) time, O(n) memory.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel


@kernel
def _merge_windows(source: IntArray, target: IntArray, half: int) -> None:
    """Merge sorted windows of `half` cells in pairs, the last ones perhaps cut."""
    cells = source.size
    one = np.uintp(1)
    whole = cells // (2 * half)
    for window in range(whole):
        # From both ends at once: each end writes `half` cells, so no pointer can
        # run out of its window, and nothing depends on a predicted branch.
        left = np.uintp(window * 2 * half)
        right = left + np.uintp(half)
        low = left
        left_end = right
        right_end = right + np.uintp(half)
        high = right_end
        for _ in range(half):
            from_left = source[left]
            from_right = source[right]
            takes_left = from_left <= from_right
            target[low] = from_left if takes_left else from_right
            move = np.uintp(takes_left)
            left += move
            right += one - move
            low += one
            from_left = source[left_end - one]
            from_right = source[right_end - one]
            takes_right = from_left <= from_right
            high -= one
            target[high] = from_right if takes_right else from_left
            move = np.uintp(takes_right)
            right_end -= move
            left_end -= one - move
    first = whole * 2 * half
    middle = min(first + half, cells)
    i = first
    j = middle
    for place in range(first, cells):
        if j == cells or (i < middle and source[i] <= source[j]):
            target[place] = source[i]
            i += 1
        else:
            target[place] = source[j]
            j += 1


@kernel
def _window_costs(
    ordered: IntArray, length: int, numerator: int, denominator: int
) -> IntArray:
    """Return the cost of each sorted window of `length` cells."""
    cells = ordered.size
    costs = np.empty((cells + length - 1) // length, dtype=np.int64)
    for window in range(costs.size):
        counts = ordered[window * length : min((window + 1) * length, cells)]
        rank = (numerator * counts.size + denominator - 1) // denominator
        centre = counts[rank - 1]
        below = np.int64(0)
        for count in counts[:rank]:
            below += count
        above = np.int64(0)
        for count in counts[rank:]:
            above += count
        costs[window] = numerator * (above - (counts.size - rank) * centre) + (
            denominator - numerator
        ) * (rank * centre - below)
    return costs


def count_cap(cells: int, denominator: int) -> int:
    """Return the public count at which cells are cut, so that no cost overflows."""
    return (1 << 60) // (cells * denominator)


def dyadic_quantile_costs(
    x: IntArray, numerator: int, denominator: int
) -> list[IntArray]:
    """Return the integer pinball cost of every aligned dyadic window.

    Parameters
    ----------
    x : (n,) int64
        Counts; below 0 and above ``count_cap(n, denominator)`` they are cut.
    numerator, denominator : int
        The quantile, strictly between 0 and 1.

    Returns
    -------
    list of int64 arrays
        Item k holds, for each window ``[j * 2**k, (j + 1) * 2**k)`` with a cell in
        the domain, `denominator` times its pinball cost: ``ceil(n / 2**k)`` numbers.
        The last item has one.

    Examples
    --------
    >>> import numpy as np
    >>> [costs.tolist() for costs in dyadic_quantile_costs(np.array([3, 0, 2]), 3, 4)]
    [[0, 0, 0], [3, 0], [4]]
    """
    if x.ndim != 1 or x.size == 0:
        raise InputError(f"counts come in one row of cells, but have shape {x.shape}")
    if not 0 < numerator < denominator:
        raise InputError(
            f"a quantile lies strictly between 0 and 1, not {numerator}/{denominator}"
        )
    counts = np.ascontiguousarray(x, dtype=np.int64)
    ordered = np.clip(counts, 0, count_cap(x.size, denominator))
    spare = np.empty_like(ordered)
    costs = [np.zeros(x.size, dtype=np.int64)]
    length = 1
    while length < x.size:
        _merge_windows(ordered, spare, length)
        ordered, spare = spare, ordered
        length *= 2
        costs.append(_window_costs(ordered, length, numerator, denominator))
    return costs
