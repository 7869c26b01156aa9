"""Sums and differences along a binary tree: the Haar transform, for any length.

The n cells of an axis are the leaves of a heap: node v has the children 2v and 2v + 1.
Leaves differ in depth by one at most, the deeper ones to the left.

              1                row 0    sum of all cells
          2       3            row v    sum below 2v less the sum below 2v + 1
        4   5   6   7
       8 9                     5 cells: the leaves 8 9 5 6 7, in this order

The sums below 2v and 2v + 1 are half of (sum below v) plus, and less, (row v), so this
inverse is the least-squares estimate whatever noise each row carries (Lemma PR8). On a
grid the rows of the axes are multiplied: functions here go along all axes, one after
another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    SUMS_BELOW,
    as_input,
    largest_size,
    refuse_odd_variances,
    refuse_wide_sums,
    whole_numbers,
)
from blowfish_fast.kernels._jit import kernel

ROUGH_BITS = 32
"""Bits that are left out where only the size of a sum is asked: the rest of 2^31 rates
still adds up within 64 bits."""


def deepest_leaves(cells: int) -> tuple[int, int]:
    """Return the first node number of the deepest leaves, and how many there are.

    They hold the first cells; the others sit in the nodes from `cells` on.
    """
    first = 1 << (int(cells) - 1).bit_length()
    return first, 2 * int(cells) - first


@kernel
def _leaf(cell: int, cells: int, first: int, deepest: int) -> int:
    """Return the node that holds a cell."""
    return first + cell if cell < deepest else cells + cell - deepest


@kernel
def _combine(values: AnyArray, first: int, deepest: int, factor: Any) -> AnyArray:
    """Go up the trees: each node takes `factor` times the sum of its children."""
    before, cells, after = values.shape
    rows = np.empty_like(values)
    sums = np.empty((2 * cells, after), dtype=values.dtype)
    for block in range(before):
        for cell in range(cells):
            node = _leaf(cell, cells, first, deepest)
            for place in range(after):
                sums[node, place] = values[block, cell, place]
        for node in range(cells - 1, 0, -1):
            for place in range(after):
                left = sums[2 * node, place]
                right = sums[2 * node + 1, place]
                sums[node, place] = factor * (left + right)
                rows[block, node, place] = factor * (left - right)
        for place in range(after):
            rows[block, 0, place] = sums[1, place]
    return rows


@kernel
def _divide(
    rows: AnyArray, first: int, deepest: int, factor: Any, sign: Any
) -> AnyArray:
    """Go down the trees: children take `factor` times node plus and `sign` row."""
    before, cells, after = rows.shape
    values = np.empty_like(rows)
    sums = np.empty((2 * cells, after), dtype=rows.dtype)
    for block in range(before):
        for place in range(after):
            sums[1, place] = rows[block, 0, place]
        for node in range(1, cells):
            for place in range(after):
                total = sums[node, place]
                row = rows[block, node, place]
                sums[2 * node, place] = factor * (total + row)
                sums[2 * node + 1, place] = factor * (total + sign * row)
        for cell in range(cells):
            node = _leaf(cell, cells, first, deepest)
            for place in range(after):
                values[block, cell, place] = sums[node, place]
    return values


@kernel
def _worst_move(rates: IntArray, times: int) -> int:
    """Return the heaviest move; leaves weigh nothing, a meeting node several times."""
    cells = rates.size
    heaviest = np.zeros(2 * cells, dtype=np.int64)
    worst = 0
    for node in range(cells - 1, 0, -1):
        left, right = heaviest[2 * node], heaviest[2 * node + 1]
        worst = max(worst, times * rates[node] + left + right)
        heaviest[node] = rates[node] + max(left, right)
    return worst


def _along_axes(step: Callable[..., AnyArray], array: AnyArray, *how: Any) -> AnyArray:
    """Apply `step` to every axis in turn, each seen as the middle one of three."""
    if array.ndim == 0 or array.size == 0:
        raise InputError(
            f"every axis needs at least one cell; received shape {array.shape}"
        )
    shape = array.shape
    for axis, cells in enumerate(shape):
        before = int(np.prod(shape[:axis], dtype=np.int64))
        flat = as_input(array, array.dtype).reshape(before, cells, -1)
        array = step(flat, *deepest_leaves(cells), *how)
    return array.reshape(shape)


def haar_rows(counts: IntArray) -> IntArray:
    """Return the sums and differences of whole counts, exactly. O(cells) per axis.

    Counts whose sum may leave 64 bits are refused.

    >>> haar_rows(np.array([5, 1, 2, 0]))
    array([8, 4, 4, 2])
    """
    whole = whole_numbers(counts)
    refuse_wide_sums(whole, "counts")
    return _along_axes(_combine, whole, 1)


def haar_cells(rows: AnyArray) -> FloatArray:
    """Return the cells that have these rows: the inverse of `haar_rows`.

    >>> haar_cells(np.array([8.0, 4.0, 4.0, 2.0]))
    array([5., 1., 2., 0.])
    """
    return _along_axes(_divide, np.asarray(rows, dtype=np.float64), 0.5, -1.0)


def haar_coefficients(query: FloatArray) -> FloatArray:
    """Return how much of each row enters a query answered from `haar_cells`.

    >>> haar_coefficients(np.array([1.0, 1.0, 0.0, 0.0]))
    array([0.5, 0.5, 0. , 0. ])
    """
    return _along_axes(_combine, np.asarray(query, dtype=np.float64), 0.5)


def haar_cell_variances(variances: FloatArray) -> FloatArray:
    """Return the variance of every cell of `haar_cells`, given that of every row.

    >>> haar_cell_variances(np.ones(4))
    array([0.375, 0.375, 0.375, 0.375])
    """
    rows = np.asarray(variances, dtype=np.float64)
    refuse_odd_variances(rows)
    return _along_axes(_divide, rows, 0.25, 1.0)


def haar_path_sums(rates: IntArray) -> IntArray:
    """Return, for every cell, the sum of rates over the rows that count it.

    Rates of which such a sum may leave 64 bits are refused.

    >>> haar_path_sums(np.array([1, 10, 100, 1000]))
    array([ 111,  111, 1011, 1011])
    """
    whole = whole_numbers(rates)
    # Along each axis a cell is counted by the sum of all and a row for each level.
    counting = math.prod(1 + (side - 1).bit_length() for side in whole.shape if side)
    if largest_size(whole) * counting >= SUMS_BELOW:
        _refuse_wide_path(_along_axes(_divide, _leading_bits(whole), 1, 1).max())
    return _along_axes(_divide, whole, 1, 1)


def _leading_bits(rates: IntArray) -> IntArray:
    """Return the leading bits of the sizes of rates, rounded up."""
    # The size of -2^63 is no int64; what is shifted out of it is.
    leading: IntArray = np.abs(rates >> ROUGH_BITS) + 1
    return leading


def _refuse_wide_path(leading: int) -> None:
    """Refuse rates whose largest sum, in units of 2^32, does not fit 64 bits."""
    if int(leading) >= 2 ** (63 - ROUGH_BITS):
        raise InputError(
            "rates are so large that the sum of those that one record pays does not "
            "fit 64 bits",
            way_out="Count them in coarser units",
            code="sums_beyond_64_bits",
        )


def haar_worst_move(rates: IntArray, power: int = 1) -> int:
    """Return the largest sum of rates that a record pays for a change of its cell.

    The row of the node where the ways of the two cells meet changes by two and pays
    2^`power` times its rate; the rows below it on either way change by one (Lemmas PR3,
    PR11).

    Parameters
    ----------
    rates : ndarray of int64, shape (cells,)
        Whole rate of each row, not negative.
    power : int, default 1
        1 for rates of epsilon, 2 for rates of rho, which grow with the square.

    Returns
    -------
    int
        The largest sum over all pairs of cells.

    Raises
    ------
    InputError
        If the rates are no list, one is negative, the largest sum does not fit 64
        bits, or the power is another number.

    Examples
    --------
    >>> haar_worst_move(np.array([1, 10, 100, 1000]))
    2000
    """
    flat = np.ascontiguousarray(whole_numbers(rates))
    if flat.ndim != 1 or flat.size == 0:
        raise InputError(f"rates of one axis are a list; received shape {flat.shape}")
    if power not in (1, 2):
        raise InputError(f"power is 1 or 2, received {power}")
    # Read without a sign, negative rates are the largest: one pass tells both.
    largest = int(flat.view(np.uint64).max())
    if largest >= 2**63:
        raise InputError(f"rates are not negative; received {flat.min()} among them")
    # The meeting node pays several times, and each way has a row for each level.
    paying = 2**power + 2 * (flat.size - 1).bit_length()
    if largest * paying >= SUMS_BELOW:
        _refuse_wide_path(_worst_move(_leading_bits(flat), 2**power))
    return int(_worst_move(flat, 2**power))
