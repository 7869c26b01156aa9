"""Sums above the centre of a window that slides by one cell at a time.

Serves DAWA's first stage, where a bucket costs the distance of its cells from a
centre: their mean (deviation) or one of their order statistics (pinball). A *tally*
counts the window's cells by rank; a pointer parts the ranks above the centre from
the others; the number and the sum of the cells above it are kept up to date.

    rank       1   2   3   4   5   6        window  {10, 30, 30, 90},  mean 40
    value     10  20  30  50  80  90        above: one cell, sum 90
    tally      1   0   2   0   0   1
                             ^ pointer: the lowest rank above the centre

One slide moves the centre a little, so the pointer walks a few ranks. A walk that
has taken too many steps on average ends early; `fenwick_window` takes over.

Each window yields two integers, from which the caller finishes its cost exactly:

    centre      whole                        part
    mean        sum above - count * floor    count * (total - length * floor)
    statistic   sum above - count * centre   total - length * centre

with `floor` the mean rounded down. Then deviation = 2 whole - 2 part / length, and
the pinball cost of level t is whole - (1 - t) part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.kernels._jit import kernel, prefetch

# The state of one sliding window, in the order of a small int64 array.
TOTAL, COUNT, SUM, POINTER, STEPS, WINDOWS, MODE = range(7)
STATE_SIZE = 8

CLOSED, WALKING, EXHAUSTED, TREE = range(4)

# A walk may take this many steps per window on average, and this many per
# distinct value besides: above it the Fenwick tree is cheaper.
STEPS_PER_WINDOW = 48
STEPS_PER_VALUE = 4

# Tallies beyond this many entries leave the nearest cache; fetching ahead pays.
FAR = 32768
AHEAD = 16

MEAN = -1  # in place of the number of cells above an order statistic


class Slides(NamedTuple):
    """What leaves and enters the window: slide i drops ``old[i]``, takes ``new[i]``."""

    old: IntArray
    new: IntArray
    old_ranks: AnyArray
    new_ranks: AnyArray


@kernel
def floor_mean(total: np.int64, length: int, shift: int) -> np.int64:
    """Return ``total // length``; `shift` is its binary logarithm, or negative."""
    if shift >= 0:
        return total >> shift
    return total // length


@kernel
def open_window(
    values: IntArray,
    ranks: AnyArray,
    length: int,
    shift: int,
    above: int,
    table: IntArray,
    tally: AnyArray,
    state: IntArray,
    whole: IntArray,
    part: IntArray,
) -> None:
    """Set the pointer for the window of the first `length` cells, and emit it."""
    distinct = table.size - 2
    for rank in range(distinct + 2):
        tally[rank] = 0
    total = np.int64(0)
    for cell in range(length):
        total += values[cell]
        tally[np.uintp(ranks[cell])] += 1
    count = np.int64(0)
    high = np.int64(0)
    if above < 0:
        centre = floor_mean(total, length, shift)
        pointer = np.int64(1)
        beyond = np.int64(distinct + 1)
        while pointer < beyond:
            middle = (pointer + beyond) >> 1
            if table[middle] <= centre:
                pointer = middle + 1
            else:
                beyond = middle
        for cell in range(length):
            is_above = np.int64(values[cell] > centre)
            count += is_above
            high += (-is_above) & values[cell]
        whole[0] = high - count * centre
        part[0] = count * (total - centre * length)
    else:
        pointer = np.int64(distinct + 1)
        while count + np.int64(tally[pointer - 1]) <= above:
            pointer -= 1
            copies = np.int64(tally[pointer])
            count += copies
            high += copies * table[pointer]
        centre = table[pointer - 1]
        whole[0] = high - count * centre
        part[0] = total - centre * length
    state[TOTAL] = total
    state[COUNT] = count
    state[SUM] = high
    state[POINTER] = pointer
    state[STEPS] = 0
    state[WINDOWS] = 1
    state[MODE] = WALKING


@kernel
def walk_windows(
    slides: Slides,
    length: int,
    shift: int,
    above: int | None,
    table: IntArray,
    tally: AnyArray,
    state: IntArray,
    whole: IntArray,
    part: IntArray,
) -> int:
    """Slide on and emit ``whole.size`` windows; return how many were emitted.

    Around the mean without `above`; else around the order statistic with `above` cells
    over it: at most `above` cells lie at or over the pointer, and more once the rank
    beneath it is added. The compiler sees which and leaves the other branches out.

    The walk ends early after the window that exhausts its steps. Indices are unsigned
    because Numba adds a test for negative ones to every signed, computed index.
    """
    old, new = slides.old, slides.new
    old_ranks, new_ranks = slides.old_ranks, slides.new_ranks
    total = state[TOTAL]
    count = state[COUNT]
    high = state[SUM]
    pointer = state[POINTER]
    steps = state[STEPS]
    allowed = STEPS_PER_VALUE * table.size + STEPS_PER_WINDOW * state[WINDOWS]
    wanted = whole.size
    far = wanted - AHEAD if table.size > FAR else 0
    at_pointer = table[pointer]
    under_pointer = table[pointer - 1]
    centre = under_pointer if above is not None else floor_mean(total, length, shift)
    emitted = wanted
    for i in range(wanted):
        leaving = old[i]
        entering = new[i]
        if i < far:
            prefetch(tally, np.int64(old_ranks[i + AHEAD]))
            prefetch(tally, np.int64(new_ranks[i + AHEAD]))
        if leaving != entering:
            leaving_rank = np.int64(old_ranks[i])
            entering_rank = np.int64(new_ranks[i])
            tally[np.uintp(leaving_rank)] -= 1
            tally[np.uintp(entering_rank)] += 1
            total += entering - leaving
            was_above = np.int64(leaving_rank >= pointer)
            is_above = np.int64(entering_rank >= pointer)
            count += is_above - was_above
            high += ((-is_above) & entering) - ((-was_above) & leaving)
            begun = pointer
            if above is None:
                centre = total >> shift if shift >= 0 else total // length
                while at_pointer <= centre:
                    copies = np.int64(tally[np.uintp(pointer)])
                    count -= copies
                    high -= copies * at_pointer
                    pointer += 1
                    under_pointer = at_pointer
                    at_pointer = table[np.uintp(pointer)]
                while under_pointer > centre:
                    pointer -= 1
                    copies = np.int64(tally[np.uintp(pointer)])
                    count += copies
                    high += copies * under_pointer
                    at_pointer = under_pointer
                    under_pointer = table[np.uintp(pointer - 1)]
            else:
                while count > above:
                    copies = np.int64(tally[np.uintp(pointer)])
                    count -= copies
                    high -= copies * table[np.uintp(pointer)]
                    pointer += 1
                while count + np.int64(tally[np.uintp(pointer - 1)]) <= above:
                    pointer -= 1
                    copies = np.int64(tally[np.uintp(pointer)])
                    count += copies
                    high += copies * table[np.uintp(pointer)]
            if pointer != begun:
                if above is not None:
                    centre = table[np.uintp(pointer - 1)]
                steps += abs(pointer - begun)
                if steps > allowed + STEPS_PER_WINDOW * i:
                    emitted = i + 1
        whole[i] = high - count * centre
        rest = total - centre * length
        part[i] = rest if above is not None else count * rest
        if emitted == i + 1:
            break
    state[TOTAL] = total
    state[COUNT] = count
    state[SUM] = high
    state[POINTER] = pointer
    state[STEPS] = steps
    state[WINDOWS] += emitted
    if emitted < wanted:
        state[MODE] = EXHAUSTED
    return emitted
