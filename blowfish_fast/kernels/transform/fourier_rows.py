"""Cosine and sine sums of counts in whole numbers, and how far one record moves them.

Cosines are rounded once, to whole multiples of 2^-14, so every sum is an exact integer:

    rows   total | cosines 1 | sines 1 | cosines 2 | sines 2 | ...

    4 cells, counts 5 1 2 0, in steps of 2^-14 = 1/16384:
           8     | 3 * 16384 | 16384   | 6 * 16384 | none

since the cosines of frequency 1 are 1 0 -1 0 and its sines 0 1 0 -1. With an even
number of cells the last frequency, cells / 2, alternates between 1 and -1 and has no
sines. O(cells * frequencies), all from one table.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

STEP_BITS = 14


def circle_table(cells: int) -> AnyArray:
    """Return cosines and sines of the multiples of 2 pi / cells, in steps of 2^-14.

    Exactly symmetric; in 16 bits, so that a million cells stay near the processor.
    """
    if cells < 1:
        raise InputError(f"a circle has at least one cell, not {cells}")
    places = np.arange(cells)
    near = np.minimum(places, cells - places)
    angles = 2.0 * np.pi * near / cells
    step = float(1 << STEP_BITS)
    table = np.empty((cells, 2), dtype=np.int16)
    table[:, 0] = np.rint(np.cos(angles) * step)
    sines = np.rint(np.sin(angles) * step)
    table[:, 1] = np.where(2 * places > cells, -sines, sines)
    return table


@kernel
def _circle_sums(
    even: IntArray, odd: IntArray, table: AnyArray, sums: IntArray
) -> None:
    cells = np.uintp(table.shape[0])
    for row in range(sums.shape[0]):
        frequency = np.uintp(row + 1)
        place = np.uintp(0)
        cosine_sum = np.int64(0)
        sine_sum = np.int64(0)
        for cell in range(even.size):
            cosine_sum += np.int64(table[place, 0]) * even[cell]
            sine_sum += np.int64(table[place, 1]) * odd[cell]
            place += frequency
            if place >= cells:
                place -= cells
        sums[row, 0] = cosine_sum
        sums[row, 1] = sine_sum


def circle_sums(counts: IntArray, frequencies: int) -> IntArray:
    """Return cosine and sine sums of frequencies 1, 2, .. in steps of 2^-14.

    They are exact for counts that add up to less than 2^48; beyond, they are right up
    to multiples of 2^64.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells,)
        Counts along a circle of cells.
    frequencies : int
        How many frequencies, at most half the number of cells.

    Returns
    -------
    ndarray of int64, shape (frequencies, 2)
        The cosine sum and the sine sum of each frequency.

    Raises
    ------
    InputError
        If there are more frequencies than the cells have.
    """
    if counts.ndim != 1 or not 0 <= frequencies <= counts.size // 2:
        raise InputError(
            f"a row of n cells has frequencies up to n / 2; received shape "
            f"{counts.shape} and {frequencies}"
        )
    sums = np.empty((frequencies, 2), dtype=np.int64)
    # Cells at one distance from cell 0, to the left and to the right, share a cosine
    # and have opposite sines.
    half = counts.size // 2 + 1
    even = np.array(counts[:half], dtype=np.int64)
    odd = even.copy()
    mirrored = counts[: (counts.size - 1) // 2 : -1][: (counts.size - 1) // 2]
    even[1 : mirrored.size + 1] += mirrored
    odd[1 : mirrored.size + 1] -= mirrored
    with np.errstate(over="ignore"):
        _circle_sums(even, odd, circle_table(counts.size), sums)
    return sums


@kernel
def _heaviest_column(sizes: AnyArray, frequencies: int) -> int:
    cells = np.uintp(sizes.size)
    heaviest = np.int64(0)
    # The other half of the circle mirrors this one.
    for cell in range(sizes.size // 2 + 1):
        step = np.uintp(cell)
        place = np.uintp(0)
        column = np.int64(0)
        for _ in range(frequencies):
            place += step
            if place >= cells:
                place -= cells
            column += np.int64(sizes[place])
        heaviest = max(heaviest, column)
    return int(heaviest)


def heaviest_column(cells: int, frequencies: int) -> int:
    """Return the most that one record changes in all sums of `circle_sums` together.

    It is the largest sum, over the cells, of the absolute values of the cosines and
    sines.

    Parameters
    ----------
    cells : int
        Number of cells.
    frequencies : int
        Number of frequencies.

    Returns
    -------
    int
        The sum, in steps of 2^-14.
    """
    if frequencies == 0:
        return 0
    # At most the root of 2 times 2^14, which still fits 16 bits.
    sizes = np.abs(circle_table(cells)).sum(axis=1, dtype=np.int16)
    return int(_heaviest_column(sizes, frequencies))


@kernel
def _largest_turn(half_sines: FloatArray, frequencies: int, longest: int) -> float:
    cells = np.uintp(half_sines.size)
    largest = 0.0
    for distance in range(1, longest + 1):
        step = np.uintp(distance)
        place = np.uintp(0)
        turn = 0.0
        for _ in range(frequencies):
            place += step
            if place >= cells:
                place -= cells
            turn += half_sines[place]
        largest = max(largest, turn)
    return largest


def largest_turn(cells: int, frequencies: int, longest: int) -> float:
    """Return the largest sum of ``|sin(pi f d / cells)|`` over the frequencies f.

    A record that moves by d cells changes the cosine and the sine of frequency f by at
    most 2 sqrt(2) |sin(pi f d / cells)| together: Lemma EF4.

    Parameters
    ----------
    cells : int
        Number of cells.
    frequencies : int
        Number of frequencies.
    longest : int
        The longest move; the largest sum over d from 1 to it is returned.

    Returns
    -------
    float
        The sum.
    """
    half_sines = np.sin(np.pi * np.arange(cells) / cells)
    # Distances beyond half the circle repeat those below.
    return float(_largest_turn(half_sines, frequencies, min(longest, cells // 2)))
