from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast.kernels.window_costs.moving_pointer import (
    MEAN,
    STATE_SIZE,
    TOTAL,
    Slides,
    add_cell,
    dense_ranks,
    part_cells,
    plant_tree,
    slide_tree,
)

pytestmark = pytest.mark.kernel

CELLS = st.lists(st.integers(0, 50), min_size=2, max_size=40)


def tree_of(window_ranks, table):
    tally = np.bincount(window_ranks, minlength=table.size).astype(np.int32)
    tree = np.empty(2 * table.size, dtype=np.int64)
    plant_tree(tally, table, tree)
    return tree


@given(CELLS, st.data())
def test_the_tree_knows_what_lies_above(values, data):
    cells = np.array(values)
    ranks, table = dense_ranks(cells)
    length = data.draw(st.integers(1, cells.size))
    tree = tree_of(ranks[:length], table)
    window = np.sort(cells[:length])
    total = np.int64(window.sum())
    for centre in range(52):
        _, count, high = part_cells(tree, table, length, total, np.int64(centre), None)
        assert count == (window > centre).sum()
        assert high == window[window > centre].sum()
    for above in range(length):
        centre, count, high = part_cells(tree, table, length, total, np.int64(0), above)
        assert centre == window[length - 1 - above]
        assert high - count * centre == np.maximum(window - centre, 0).sum()


@given(CELLS)
def test_cells_added_one_by_one_make_the_planted_tree(values):
    ranks, table = dense_ranks(np.array(values))
    tree = np.zeros(2 * table.size, dtype=np.int64)
    for rank, value in zip(ranks, values, strict=True):
        add_cell(tree, table.size - 2, rank, 1, np.int64(value))
    planted = tree_of(ranks, table)
    used = 2 * (table.size - 1)
    np.testing.assert_array_equal(tree[2:used], planted[2:used])


@given(CELLS, st.data())
def test_slides_equal_the_definition(values, data):
    cells = np.array(values)
    ranks, table = dense_ranks(cells)
    length = data.draw(st.integers(1, cells.size))
    above = data.draw(st.one_of(st.just(MEAN), st.integers(0, length - 1)))
    shift = length.bit_length() - 1 if length & (length - 1) == 0 else -1
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    state[TOTAL] = cells[:length].sum()
    whole = np.empty(cells.size - length, dtype=np.int64)
    part = np.empty_like(whole)
    tree = tree_of(ranks[:length], table)
    slide_tree(
        Slides(cells, cells[length:], ranks, ranks[length:]), length, shift, above,
        table, tree, state, whole, part,
    )  # fmt: skip
    for i in range(whole.size):
        window = np.sort(cells[i + 1 : i + 1 + length])
        if above == MEAN:
            centre = window.sum() // length
            expected = (window > centre).sum() * (window.sum() - centre * length)
        else:
            centre = window[length - 1 - above]
            expected = (window - centre).sum()
        assert whole[i] == np.maximum(window - centre, 0).sum()
        assert part[i] == expected
