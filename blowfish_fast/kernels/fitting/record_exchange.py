"""Records exchanged until their tables match given ones.

A record leaves a cell that has too many and becomes a copy of one in a cell that lacks
some, or takes only that cell's values (PrivSyn, Zhang et al. 2021). The generator, two
31-bit congruential ones combined (L'Ecuyer 1988), is the same with and without the
compiler.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import helper, kernel

FIRST_SHARE = 0.6
DECAY = 0.85
"""Part of every gap that is moved in the first sweep, and how it falls."""


def exchange_records(
    columns: npt.NDArray[np.int32],
    sizes: Sequence[int],
    tables: Sequence[tuple[int, ...]],
    goals: Sequence[FloatArray],
    sweeps: int,
    seed: int,
) -> None:
    """Change records in place until their tables come close to `goals`.

    `columns` (attributes, records) holds cell numbers, `tables` the attributes of each
    table and `goals` its wanted counts in C order. O(sweeps x tables x records).
    """
    shape = np.array(sizes, dtype=np.int64)
    records = columns.shape[1]
    if columns.shape[0] != shape.size or not columns.flags.c_contiguous:
        raise InputError("give one contiguous row of cells per attribute")
    for table, goal in zip(tables, goals, strict=True):
        cells = int(np.prod(shape[list(table)]))
        if goal.size != cells or not (goal >= 0).all():
            raise InputError(f"a goal needs {cells} counts of 0 or more")
    state = np.array([seed % 2147483562 + 1, (seed >> 31) % 2147483398 + 1])
    order = np.arange(records)
    for sweep in range(sweeps):
        share = FIRST_SHARE * DECAY**sweep
        _shuffle(order, state)
        for number in _permuted(len(tables), state):
            axes = np.array(tables[number], dtype=np.int64)
            goal = np.ascontiguousarray(goals[number], dtype=np.float64).reshape(-1)
            _exchange(columns, shape[axes], axes, goal, order, share, state)


def _permuted(count: int, state: IntArray) -> IntArray:
    order = np.arange(count)
    _shuffle(order, state)
    return order


@helper
def _draw(state: IntArray) -> float:
    """Return the next number in [0, 1)."""
    state[0] = state[0] * 40014 % 2147483563
    state[1] = state[1] * 40692 % 2147483399
    both = state[0] - state[1]
    if both < 1:
        both += 2147483562
    return float(both - 1) / 2147483562.0


@kernel
def _shuffle(order: IntArray, state: IntArray) -> None:
    for last in range(order.size - 1, 0, -1):
        at = int(_draw(state) * (last + 1))
        kept = order[last]
        order[last] = order[at]
        order[at] = kept


@kernel
def _exchange(
    columns: npt.NDArray[np.int32],
    sides: IntArray,
    table: IntArray,
    goal: FloatArray,
    order: IntArray,
    share: float,
    state: IntArray,
) -> None:
    records, cells = columns.shape[1], goal.size
    code = np.zeros(records, np.int64)
    for part in range(table.size):
        for at in range(records):
            code[at] = code[at] * sides[part] + columns[table[part], at]
    first = np.zeros(cells + 1, np.int64)
    for at in range(records):
        first[code[at] + 1] += 1
    give = np.zeros(cells, np.int64)
    needed = 0
    need = np.zeros(cells, np.int64)
    for cell in range(cells):
        gap = goal[cell] - first[cell + 1]
        if gap > 0:
            need[cell] = int(gap * share + _draw(state))
            needed += need[cell]
        elif gap < 0:
            give[cell] = min(int(-gap * share + _draw(state)), first[cell + 1])
    if needed == 0:
        return
    slots = np.empty(needed, np.int64)
    at = 0
    for cell in range(cells):
        for _ in range(need[cell]):
            slots[at] = cell
            at += 1
    for last in range(needed - 1, 0, -1):
        other = int(_draw(state) * (last + 1))
        kept = slots[last]
        slots[last] = slots[other]
        slots[other] = kept
    # Members of each cell, in any order, for copies.
    for cell in range(cells):
        first[cell + 1] += first[cell]
    members = np.empty(records, np.int64)
    filled = np.zeros(cells, np.int64)
    for at in range(records):
        cell = code[at]
        members[first[cell] + filled[cell]] = at
        filled[cell] += 1
    used = 0
    start = int(_draw(state) * records)
    for step in range(records):
        if used == needed:
            break
        record = order[(start + step) % records]
        if give[code[record]] == 0:
            continue
        give[code[record]] -= 1
        cell = slots[used]
        used += 1
        if filled[cell] > 0 and _draw(state) < 0.5:
            source = members[first[cell] + int(_draw(state) * filled[cell])]
            for axis in range(columns.shape[0]):
                columns[axis, record] = columns[axis, source]
        # A member may have changed meanwhile: the cell itself is set in any case.
        rest = cell
        for part in range(table.size - 1, -1, -1):
            columns[table[part], record] = rest % sides[part]
            rest //= sides[part]
