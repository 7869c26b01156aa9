"""Least-cost pairing of neighbouring cells, exactly, by dynamic programming.

A bucket is one cell, or two cells at most `window` apart; its cost is a whole number of
steps of a public grid, less exact geometric noise. Cells are taken one by one; what is
known of the cells after the current one is which of them an earlier cell has taken:

    cell        i      i+1 .. i+window-1        i+window
    taken?      half   a bit each: state        only by cell i

    free[state], taken[state]     least cost so far if cell i is free, or is taken

Cell i, if free, stays alone or takes a free cell after it. All sums are exact in int64.
The word of a candidate's noise has a place given by the cell and the distance to its
mate alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from blowfish_fast._support.typing import ByteArray, IntArray
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels._arguments import Words, whole_numbers
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.sampling.discrete_laplace import geometric

WIDEST = 8
# Choices of all cells and states, a byte each.
MOST_CHOICES = 2**31
BLOCK = 2**13
# The noise of cell i with its mate at i + distance uses word (distance << 40) + i;
# distance 0 is the cell alone.
DISTANCE_BITS = 40

# Runs of states shorter than this are gone through side by side, not one by one.
SHORT = 4
# Real sums stay below; twice this, plus a cost, still fits 64 bits.
IMPOSSIBLE = np.int64(1 << 61)
# A cell that an earlier one has taken; otherwise the distance to the mate, 0 for none.
TAKEN = -1


@kernel
def _pair_costs(
    totals: IntArray,
    sizes: IntArray,
    parts: IntArray,
    begin: int,
    distance: int,
    grid: int,
    out: IntArray,
) -> None:
    """Fill in the deviation of buckets `distance` apart if merged, in whole steps.

    The step is 2^grid counts. Taken as even inside, two buckets of a and b cells and
    totals s and t deviate by 2 |b s - a t| / (a + b) from their common mean.
    """
    for i in range(out.size):
        near, far = begin + i, begin + i + distance
        if parts[near] != parts[far]:
            out[i] = IMPOSSIBLE
            continue
        both = sizes[near] + sizes[far]
        gap = 2 * abs(sizes[far] * totals[near] - sizes[near] * totals[far])
        whole = gap // both
        if grid > 0:
            out[i] = whole >> grid
        else:
            out[i] = (whole << -grid) + ((gap - whole * both) << -grid) // both


@kernel
def _keep_cheaper(
    free: IntArray, cost: int, distance: int, least: IntArray, way: IntArray
) -> None:
    """Lower `least` where a free mate at `distance` costs less, and note the way."""
    for i in range(least.size):
        paired = free[i] + cost
        cheapest, before = least[i], way[i]
        least[i] = paired if paired < cheapest else cheapest
        way[i] = distance if paired < cheapest else before


@kernel
def _extend_pairings(
    costs: IntArray, free: IntArray, taken: IntArray, choices: ByteArray
) -> None:
    """Carry the least costs by state over a block of cells; note how they came about.

    `costs` has a row for each cell alone, and with the cell 1, 2, ... after it; `free`
    and `taken` hold the least cost by state before the block, and after it on return.
    Bit k - 1 of a state stands for the cell k after the current one. `choices` notes
    what the current cell did in case the furthest cell is not taken: among equal costs
    the first of `TAKEN`, alone, distance 1, 2, ...
    """
    window = costs.shape[0] - 1
    states = free.size
    half = states // 2
    open_end = np.empty(states, dtype=np.int64)
    closed_end = np.empty(states, dtype=np.int64)
    # As wide as the costs, so that both are compared and kept in the same lanes.
    way = np.empty(states, dtype=np.int64)
    for i in range(costs.shape[1]):
        alone = costs[0, i]
        furthest = costs[window, i]
        for state in range(states):
            by_itself = free[state] + alone
            earlier = taken[state]
            better = by_itself < earlier
            open_end[state] = by_itself if better else earlier
            way[state] = 0 if better else TAKEN
            closed_end[state] = free[state] + furthest
        for distance in range(1, window):
            cost = costs[distance, i]
            bit = 1 << (distance - 1)
            stride = 2 * bit
            if bit < SHORT:
                for low in range(bit):
                    least, noted = (
                        open_end[low + bit :: stride],
                        way[low + bit :: stride],
                    )
                    _keep_cheaper(free[low::stride], cost, distance, least, noted)
            else:
                for low in range(0, states, stride):
                    high, end = low + bit, low + stride
                    least, noted = open_end[high:end], way[high:end]
                    _keep_cheaper(free[low:high], cost, distance, least, noted)
        for state in range(states):
            choices[i, state] = way[state]
        # The next cell becomes the current one, and the furthest gets a bit.
        for state in range(half):
            free[state] = min(open_end[2 * state], IMPOSSIBLE)
            taken[state] = min(open_end[2 * state + 1], IMPOSSIBLE)
            free[state + half] = min(closed_end[2 * state], IMPOSSIBLE)
            taken[state + half] = min(closed_end[2 * state + 1], IMPOSSIBLE)


@kernel
def _read_pairing(choices: ByteArray, window: int) -> IntArray:
    """Walk back from the end, where nothing lies beyond, and return every mate."""
    cells, states = choices.shape
    mates = np.arange(cells)
    state, is_taken = 0, 0
    for i in range(cells - 1, -1, -1):
        # As the state was before the step to the next cell.
        reached = state >= states // 2
        state = (2 * state + is_taken) % states
        distance = np.int64(window) if reached else np.int64(choices[i, state])
        is_taken = 0
        if distance < 0:
            is_taken = 1
        elif distance > 0:
            mates[i], mates[i + distance] = i + distance, i
            if not reached:
                state -= 1 << (distance - 1)
    return mates


def window_mates(
    totals: IntArray,
    sizes: IntArray | None = None,
    parts: IntArray | None = None,
    *,
    window: int,
    grid: int,
    price: int,
    pair_price: int | None = None,
    scales: tuple[Fraction, Fraction] | None = None,
    words: Words | None = None,
) -> IntArray:
    """Return the mate of each cell in the cheapest pairing; a cell alone is its own.

    In steps of 2^grid counts, a cell alone costs ``price - noise``, two cells at most
    `window` apart cost ``floor(deviation) + pair_price - noise``. Sums and minimum are
    exact. Among pairings of equal cost the last cell decides: rather taken than alone,
    then by the nearest mate; then the last but one, and so on. It takes O(cells *
    window * 2^window) time and cells * 2^(window - 1) bytes.

    Parameters
    ----------
    totals : ndarray of int64, shape (cells,)
        Not negative; with `price` on the grid, small enough for sums below 2^58.
    sizes : ndarray of int64, shape (cells,), optional
        How many cells each total stands for; 1 if left out.
    parts : ndarray of int64, shape (cells,), optional
        Only cells of one part are paired; all of them if left out.
    window : int
        How far apart two cells may be, from 1 to 8.
    grid : int
        Binary logarithm of the public step.
    price : int
        Price of a bucket of one, in steps.
    pair_price : int, optional
        Price of a bucket of two, in steps; `price` if left out.
    scales : tuple of two Fractions, optional
        Scale of the geometric noise on one and on two, in steps; None for no noise.
    words : callable, optional
        ``words(position, count)``, needed with `scales`: random words, always the same
        ones at a position.

    Returns
    -------
    ndarray of int64, shape (cells,)
        The mates.

    Raises
    ------
    InputError
        If numbers are out of range, or noise has no words.

    Examples
    --------
    >>> window_mates(np.array([3, 9, 4, 8]), window=2, grid=0, price=5)
    array([2, 3, 0, 1])
    """
    totals = np.ascontiguousarray(whole_numbers(totals))
    if totals.ndim != 1 or not 1 <= window <= WIDEST:
        raise InputError(
            f"pairs are looked for among one axis of cells, at most 1 to {WIDEST} "
            f"apart: got shape {totals.shape}, window {window}. Flatten the cells."
        )
    if sizes is None:
        sizes = np.ones(totals.size, dtype=np.int64)
    if parts is None:
        parts = np.zeros(totals.size, dtype=np.int64)
    if not (sizes.shape == parts.shape == totals.shape) or (
        scales is not None and words is None
    ):
        raise InputError(
            f"{totals.size} totals need as many sizes and parts, and scales a source "
            f"of words: got {sizes.shape}, {parts.shape}, words {words!r}."
        )
    if (totals.size and sizes.min() < 1) or not -63 < grid < 63:
        raise InputError(
            "every total stands for one cell at least, and the step lies between "
            f"2^-62 and 2^62: got sizes from {sizes.min(initial=1)}, grid {grid}."
        )
    if scales is not None and len(scales) != 2:
        raise InputError(f"noise has a scale for one and one for two: got {scales!r}.")
    # One state more than window 1 needs, so that the furthest cell is never the next.
    reach = max(window, 2)
    states = 1 << (reach - 1)
    if totals.size * states > MOST_CHOICES:
        raise SizeError(
            f"window {window} on {totals.size:,} cells notes {totals.size * states:,} "
            f"choices; at most 2^31 are held. Use a smaller window."
        )
    free = np.full(states, IMPOSSIBLE)
    taken = np.full(states, IMPOSSIBLE)
    free[0] = 0
    choices = np.empty((totals.size, states), dtype=np.int8)
    for begin in range(0, totals.size, BLOCK):
        end = min(begin + BLOCK, totals.size)
        costs = np.full((reach + 1, end - begin), IMPOSSIBLE)
        costs[0] = price
        for distance in range(1, window + 1):
            existing = costs[distance, : max(0, totals.size - distance - begin)]
            _pair_costs(totals, sizes, parts, begin, distance, grid, existing)
            existing += price if pair_price is None else pair_price
        if scales is not None and words is not None:
            for distance in range(window + 1):
                existing = costs[distance, : max(0, totals.size - distance - begin)]
                ratio = scales[min(distance, 1)].as_integer_ratio()
                position = (distance << DISTANCE_BITS) + begin
                existing -= geometric(words, position, *ratio, existing.size)
        _extend_pairings(costs, free, taken, choices[begin:end])
    return _read_pairing(choices, reach)
